//! Recording what passes a node into a file: `docs/trace.md`.
//!
//! A [`Tracer`] is handed to whatever sees TLPs or bytes of links. It notes
//! them with the time; records are made of that when the node has nothing to
//! do, in memory that was there before, and a thread writes them out. A node
//! never waits for it: what does not fit is lost and counted in the file.

mod recorder;
mod tapped;
#[cfg(test)]
mod tests;
mod timestamps;
mod writer;

pub use tapped::{Tapped, TlpObserver};

use crate::clock::Clock;
use recorder::Recorder;
use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use switch::tunnel;
use wire::tlp::Tlp;
use wire::trace::{LinkState, NodeRole, NvmeEvent, Tap};
use wire::{Duration, Instant};

/// Pause between the echoes that tell how the clocks of two nodes differ.
const ECHO: Duration = Duration::from_ms(100);
/// Later than every clock says.
const NEVER: Instant = Instant::from_ps(u64::MAX);
/// Set in the numbers of these echoes; the rest is the sender's time in ns.
const ECHO_MARK: u64 = 1 << 63;

/// Where and how to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file; what it held is gone.
    pub path: PathBuf,
    /// Keep only about this many bytes of the end, beside the beginning.
    pub ring: Option<u64>,
    /// Bytes kept of the payload of each TLP. Without it all, but for what
    /// devices write ([`wire::trace::SnapLength`]).
    pub snap: Option<u16>,
}

/// What became of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes written, each time they were.
    pub bytes: u64,
    /// Records that were lost, for the file was too slow.
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
    /// One that does nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// One that records with the times of `clock`. `instance` is a number
    /// that no other trace has.
    ///
    /// # Errors
    /// If the file cannot be written, or there is no thread to be had.
    pub fn create(
        settings: &Settings,
        role: NodeRole,
        instance: u64,
        clock: Clock,
    ) -> io::Result<Self> {
        let recorder = RefCell::new(Recorder::create(settings, role, instance, clock)?);
        // Nodes with one clock have nothing to compare.
        let first = if clock.is_scripted() { NEVER } else { Instant::ZERO };
        Ok(Self(Some(Rc::new(Shared { recorder, next_echo: Cell::new(first) }))))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
        self.0.as_ref().map(|shared| work(&mut shared.recorder.borrow_mut()))
    }

    /// A TLP passes `tap`, `up` if towards the host.
    pub fn tlp(&self, tap: Tap, up: bool, tlp: &Tlp) {
        self.with(|recorder| recorder.tlp(tap, up, tlp));
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The time of the recording node's clock, if anything is recorded.
    pub fn time(&self) -> Option<Instant> {
        self.with(Recorder::time)
    }

    /// All that `next` yields has happened now in the drive behind the port,
    /// but the first of it at `first`, if that is given.
    pub fn events(&self, first: Option<Instant>, next: impl FnMut() -> Option<NvmeEvent>) {
        self.with(|recorder| recorder.events(first, next));
    }

    /// All that `next` yields has happened now at this node's end of link
    /// `tap`.
    pub fn frames(&self, tap: Tap, next: impl FnMut() -> Option<tunnel::Report>) {
        self.with(|recorder| recorder.frames(tap, next));
    }

    /// The TCP connection of link `tap` stands.
    pub fn connected(&self, tap: Tap) {
        self.with(|recorder| recorder.link(tap, LinkState::Connected));
    }

    /// Link `tap` is gone.
    pub fn down(&self, tap: Tap, why: impl ToString) {
        self.with(|recorder| recorder.link(tap, LinkState::Down(&why.to_string())));
    }

    /// A turn of the node is over, and if it is `idle` there is time to make
    /// records of what was pending. Writes out what has waited long enough.
    /// Yields when to call again at the latest, so that a node that is killed
    /// loses little.
    pub fn tick(&self, now: Instant, idle: bool) -> Option<Instant> {
        self.with(|recorder| recorder.tick(now, idle)).flatten()
    }

    /// The number of an echo to send on every link now, if one is due.
    pub fn echo_due(&self, now: Instant) -> Option<u64> {
        let shared = self.0.as_ref().filter(|shared| now >= shared.next_echo.get())?;
        shared.next_echo.set(now + ECHO);
        Some(now.as_ns() | ECHO_MARK)
    }

    /// Closes the file; later records go nowhere.
    ///
    /// # Errors
    /// What went wrong with the file, ever.
    pub fn finish(&self) -> io::Result<Report> {
        self.with(Recorder::finish).unwrap_or_else(|| Ok(Report::default()))
    }
}
