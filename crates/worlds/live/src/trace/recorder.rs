//! Notes TLPs, frames and events with their time, and passes the notes on in batches.

use super::encoder::{Encoder, MEMORY, chunk_size};
use super::timestamps::Timestamps;
use super::writer::{Layout, OnError, Writer};
use super::{Report, Settings};
use crate::TraceSwitch;
use crate::clock::Clock;
use node::push::NotPushed;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;
use switch::tunnel;
use wire::frame::FrameReport;
use wire::tlp::Tlp;
use wire::trace::{Header, NodeRole, NvmeEvent, Payloads, Tap};
use wire::{Duration, Instant};

/// The longest time that notes wait.
pub(super) const FLUSH: Duration = Duration::from_ms(100);
/// Bytes kept at the beginning of a ring: only the enumeration and the creation of the queues
/// explain the TLPs.
const HEAD: u64 = 1 << 20;
/// Consecutive TLPs that share a timestamp: reading the clock costs as much as the rest of a note.
const RUN: u8 = 8;
/// Notes of a batch. They hold payloads and received bytes; waking the encoder costs more than a
/// note.
const BATCH: usize = 256;
/// Batches in memory.
const BATCHES: usize = 4;

/// A packet or an event.
#[derive(Debug)]
pub(super) enum Note {
    /// A TLP, or a run of them.
    Tlp(Tap, bool, Tlp),
    Frame(Tap, FrameReport),
    Event(NvmeEvent),
    /// A connection is established, and whether it may carry a session on.
    Connected(Tap, bool),
    /// A connection is lost: the cause, and whether its session waits for another one.
    Lost(Tap, String, bool),
    NotPushed(Box<NotPushed>),
    Fault(Tap, String),
    /// Recording is started again (`true`) or stopped (`false`).
    Recording(bool),
}

/// Notes in the order of time.
pub(super) type Notes = Vec<(Instant, Note)>;

/// Notes for the encoder.
#[derive(Debug)]
pub(super) struct Batch {
    pub notes: Notes,
    /// Whether the records must be written at once.
    pub flush: bool,
}

/// The last timestamp, and the TLPs that share it.
#[derive(Clone, Copy, Debug)]
struct ClockRead {
    at: Instant,
    /// Where the TLPs pass, and their direction.
    run: (Tap, bool),
    left: u8,
}

/// The node's side of a trace. One thread encodes records (`Encoder`), another one writes them.
#[derive(Debug)]
pub(super) struct Recorder {
    pub timestamps: Timestamps,
    last_read: ClockRead,
    notes: Notes,
    /// The time of the oldest note that has not been flushed.
    since: Option<Instant>,
    stopped: bool,
    /// As `Writer::failed`.
    failed: Arc<AtomicBool>,
    /// The thread; `None` once the trace is finished.
    encoder: Option<Running>,
}

#[derive(Debug)]
struct Running {
    batches: SyncSender<Batch>,
    /// Returns the memory of notes.
    empty: Receiver<Notes>,
    /// Returns the number of lost records.
    encoder: JoinHandle<u64>,
    writer: JoinHandle<io::Result<u64>>,
}

impl Recorder {
    /// Begins a file. Error: as `open(2)` and `write(2)`.
    pub(super) fn create(
        settings: &Settings,
        role: NodeRole,
        instance: u64,
        clock: Clock,
        payloads: Payloads,
        on_error: OnError,
    ) -> io::Result<Self> {
        let file = File::create(&settings.path)?;
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            role,
            ring: settings.ring.is_some(),
            instance,
            start_unix_ns: (unix.as_nanos() as u64).saturating_sub(clock.now().as_ns()),
            snap: settings.snap.unwrap_or(0),
            key: settings.key.check(),
            clock: "CLOCK_MONOTONIC, nanoseconds since the node's start".into(),
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        file.write_all_at(&bytes, 0)?;
        let next = bytes.len() as u64;
        let ring = settings.ring.map(|size| (next + HEAD.min(size), size));
        let failed = Arc::new(AtomicBool::new(false));
        let writer =
            Writer { file, layout: Layout { next, ring }, failed: failed.clone(), on_error };
        let size = chunk_size(settings.ring);
        let count = MEMORY / size;
        let (chunks, full) = sync_channel(count);
        let (back, returned) = sync_channel(count);
        for _ in 1..count {
            let _ = back.try_send(Vec::with_capacity(size));
        }
        let encoder = Encoder::new(payloads, size, failed.clone(), chunks, returned);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let writer = thread("trace-writer").spawn(move || writer.write(&full, &back))?;
        let (batches, noted) = sync_channel(BATCHES);
        let (emptied, empty) = sync_channel(BATCHES + 1);
        let encoder = thread("trace").spawn(move || encoder.run(&noted, &emptied))?;
        Ok(Self {
            timestamps: Timestamps::new(clock),
            last_read: ClockRead { at: Instant::ZERO, run: (Tap::ROOT_PORT, false), left: 0 },
            notes: Vec::with_capacity(BATCH),
            since: None,
            stopped: false,
            failed,
            encoder: Some(Running { batches, empty, encoder, writer }),
        })
    }

    /// Notes a TLP, or a run, that passes.
    pub(super) fn tlp(&mut self, tap: Tap, up: bool, tlp: &Tlp) {
        let at = self.now(tap, up);
        self.note(at, Note::Tlp(tap, up, tlp.clone()));
    }

    /// As [`Tracer::events`](super::Tracer::events).
    pub(super) fn events(
        &mut self,
        first: Option<Instant>,
        mut next: impl FnMut() -> Option<NvmeEvent>,
    ) {
        let Some(mut event) = next() else { return };
        let now = self.timestamps.now();
        // Later TLPs get a new timestamp.
        self.last_read.left = 0;
        let mut at = first.unwrap_or(now);
        loop {
            self.note(at, Note::Event(event));
            at = now;
            match next() {
                Some(more) => event = more,
                None => return,
            }
        }
    }

    /// As [`Tracer::frames`](super::Tracer::frames), with one timestamp for all.
    pub(super) fn frames(&mut self, tap: Tap, mut next: impl FnMut() -> Option<tunnel::Report>) {
        let mut at = None;
        while let Some(report) = next() {
            if let tunnel::Report::Frame(_, frame) = report {
                let at = *at.get_or_insert_with(|| self.timestamps.now());
                self.note(at, Note::Frame(tap, frame));
            }
        }
    }

    /// Adds a note with the present time.
    pub(super) fn happens(&mut self, note: Note) {
        let now = self.timestamps.now();
        self.note(now, note);
    }

    /// The timestamp for the next of several consecutive TLPs.
    fn now(&mut self, tap: Tap, up: bool) -> Instant {
        if self.last_read.left == 0 || self.last_read.run != (tap, up) {
            self.last_read = ClockRead { at: self.timestamps.now(), run: (tap, up), left: RUN };
        }
        self.last_read.left -= 1;
        self.last_read.at
    }

    fn note(&mut self, at: Instant, note: Note) {
        self.notes.push((at, note));
        self.since.get_or_insert(at);
        if self.notes.len() == BATCH {
            self.send(false);
        }
    }

    /// Passes the notes on. Waits only while the encoder has `BATCHES` batches; the encoder needs
    /// only processor time.
    fn send(&mut self, flush: bool) {
        let Some(running) = &self.encoder else { return self.notes.clear() };
        let next = running.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let notes = std::mem::replace(&mut self.notes, next);
        let _ = running.batches.send(Batch { notes, flush });
        if flush {
            self.since = None;
        }
    }

    /// As [`Tracer::switch`](super::Tracer::switch).
    pub(super) fn switch(&mut self, switch: TraceSwitch) -> Option<bool> {
        let records = !(self.stopped || self.failed.load(Ordering::Relaxed));
        let starts = match switch {
            TraceSwitch::Toggle => !records,
            TraceSwitch::Start => true,
            TraceSwitch::Stop => false,
        };
        if starts == records {
            return None;
        }
        self.failed.store(false, Ordering::Relaxed);
        self.stopped = !starts;
        self.happens(Note::Recording(starts));
        self.send(true);
        Some(starts)
    }

    /// As [`Tracer::tick`](super::Tracer::tick).
    pub(super) fn tick(&mut self, now: Instant, idle: bool) -> Option<Instant> {
        // The turn ends the run.
        self.last_read.left = 0;
        if idle {
            self.timestamps.follow(now);
        }
        let due = self.since? + FLUSH;
        if now < due {
            return Some(due);
        }
        self.send(true);
        None
    }

    /// Writes all remaining records. Later notes are dropped. Error: the first error of the file
    /// since it was opened.
    pub(super) fn finish(&mut self) -> io::Result<Report> {
        self.send(true);
        let Some(running) = self.encoder.take() else { return Ok(Report::default()) };
        drop(running.batches);
        let panicked = |_| io::Error::other("a thread of the trace panicked");
        let lost = running.encoder.join().map_err(panicked)?;
        let bytes = running.writer.join().map_err(panicked)??;
        Ok(Report { bytes, lost })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
