//! Records a node's traffic into a file: `docs/trace.md`.
//!
//! Code that sees TLPs or frames of links has a [`Tracer`], which notes them with the time. One
//! thread encodes the notes as records, another one writes them. A node never waits for the file:
//! records without room are dropped and counted in the file.

mod encoder;
mod recorder;
mod tapped;
#[cfg(test)]
mod tests;
mod timestamps;
mod writer;

pub use tapped::{Tapped, TlpObserver};
pub use writer::OnError;

use crate::TraceSwitch;
use crate::clock::Clock;
use node::faults::Fault;
use node::push::NotPushed;
use recorder::{Note, Recorder};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use switch::tunnel;
use wire::tlp::Tlp;
use wire::trace::{Follower, NodeRole, NvmeEvent, PayloadKey, Payloads, Tap};
use wire::{Duration, Instant};

/// The interval of the echoes that measure the difference of two nodes' clocks.
const ECHO: Duration = Duration::from_ms(100);
/// Bit that is set in the numbers of clock echoes; the other bits are the sender's time in ns.
const ECHO_MARK: u64 = 1 << 63;

/// Settings of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file; its old contents are lost.
    pub path: PathBuf,
    /// Keeps only the beginning and about this many bytes of the end.
    pub ring: Option<u64>,
    /// The most bytes of a payload in the file.
    pub snap: Option<u16>,
    /// The key of the hashes of omitted payloads.
    pub key: PayloadKey,
}

/// The result of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes written; bytes of a ring that are written again count again.
    pub bytes: u64,
    /// Records dropped because the file was too slow.
    pub lost: u64,
}

#[derive(Debug)]
struct Shared {
    recorder: RefCell<Recorder>,
    next_echo: Cell<Instant>,
}

/// Records, or does nothing. Clones record into the same file.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Rc<Shared>>);

impl Tracer {
    /// A tracer that does nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// A tracer that records with the times of `clock`. `instance` is a number that no other trace
    /// has. It keeps the payloads that `follower` selects, or all with `None`. `on_error` is called
    /// in another thread when the file cannot be written; then recording stops.
    ///
    /// # Errors
    /// If the file cannot be written, or no thread can be started.
    pub fn create(
        settings: &Settings,
        role: NodeRole,
        instance: u64,
        clock: Clock,
        follower: Option<Box<dyn Follower>>,
        on_error: OnError,
    ) -> io::Result<Self> {
        let payloads = Payloads::new(follower, settings.key, settings.snap);
        let recorder = Recorder::create(settings, role, instance, clock, payloads, on_error)?;
        let recorder = RefCell::new(recorder);
        // Nodes that share a clock need no clock comparison.
        let first = if clock.is_scripted() { Instant::MAX } else { Instant::ZERO };
        Ok(Self(Some(Rc::new(Shared { recorder, next_echo: Cell::new(first) }))))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
        self.0.as_ref().map(|shared| work(&mut shared.recorder.borrow_mut()))
    }

    /// Records a TLP or a run that passes `tap`, towards the host if `up`.
    pub fn tlp(&self, tap: Tap, up: bool, tlp: &Tlp) {
        self.with(|recorder| recorder.tlp(tap, up, tlp));
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The time of the recording node's clock, if anything is recorded.
    pub fn time(&self) -> Option<Instant> {
        self.with(|recorder| recorder.timestamps.now())
    }

    /// Records the events that `next` returns, which happened now in the drive behind the port.
    /// `first` is the time of the first event, if given.
    pub fn events(&self, first: Option<Instant>, next: impl FnMut() -> Option<NvmeEvent>) {
        self.with(|recorder| recorder.events(first, next));
    }

    /// Records the frames that `next` returns, which passed now at this node's end of link `tap`.
    pub fn frames(&self, tap: Tap, next: impl FnMut() -> Option<tunnel::Report>) {
        self.with(|recorder| recorder.frames(tap, next));
    }

    /// Records that the connection of link `tap` is established.
    pub fn connected(&self, tap: Tap, goes_on: bool) {
        self.with(|recorder| recorder.happens(Note::Connected(tap, goes_on)));
    }

    /// Records that link `tap` has lost its connection; if the session `goes_on`, it waits for
    /// another one.
    pub fn lost(&self, tap: Tap, why: impl ToString, goes_on: bool) {
        self.with(|recorder| recorder.happens(Note::Lost(tap, why.to_string(), goes_on)));
    }

    /// Records that a fault at `tap` began to act.
    pub fn fault(&self, tap: Tap, fault: &Fault) {
        self.with(|recorder| recorder.happens(Note::Fault(tap, fault.to_string())));
    }

    /// Ends a turn of the node, which is `idle` if it would sleep. Passes on notes that have waited
    /// long enough. Returns when to call again at the latest, so that a killed node loses little.
    pub fn tick(&self, now: Instant, idle: bool) -> Option<Instant> {
        self.with(|recorder| recorder.tick(now, idle)).flatten()
    }

    /// The number of an echo to send on every link, if one is due.
    pub fn echo_due(&self, now: Instant) -> Option<u64> {
        let shared = self.0.as_ref().filter(|shared| now >= shared.next_echo.get())?;
        shared.next_echo.set(now + ECHO);
        Some(now.as_ns() | ECHO_MARK)
    }

    /// Records the counters of commands that a host node did not push.
    pub fn not_pushed(&self, commands: &NotPushed) {
        self.with(|recorder| recorder.happens(Note::NotPushed(Box::new(*commands))));
    }

    /// Stops recording, or starts again after a gap in the file. Returns whether it records now;
    /// `None` without a change.
    pub fn switch(&self, switch: TraceSwitch) -> Option<bool> {
        self.with(|recorder| recorder.switch(switch)).flatten()
    }

    /// Closes the file; later records are dropped.
    ///
    /// # Errors
    /// The first error of the file since it was opened.
    pub fn finish(&self) -> io::Result<Report> {
        self.with(Recorder::finish).unwrap_or_else(|| Ok(Report::default()))
    }
}
