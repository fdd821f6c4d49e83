//! Keeps records in memory until the writer takes them.

use super::timestamps::Timestamps;
use super::writer::{Chunk, Layout, OnError, Writer};
use super::{Report, Settings};
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
use wire::trace::{
    CHUNK_HEADER, Header, LinkState, NodeRole, NvmeEvent, Payloads, Record, Tap, encode_tlp,
};
use wire::{Duration, Instant};

/// Bytes of a chunk; smaller in rings below eight of them. Waking the writer disturbs the node
/// more than recording does, so it is rare.
const CHUNK: usize = 1 << 20;
/// The smallest chunk holds the longest record several times.
const SMALLEST: usize = 32 << 10;
/// Chunks in memory: 8 MiB.
const CHUNKS: usize = 8;
/// The longest time that a chunk waits while anything is recorded.
const FLUSH: Duration = Duration::from_ms(100);
/// Bytes kept at the beginning of a ring: only the enumeration and the creation of the queues
/// explain the TLPs.
const HEAD: u64 = 1 << 20;
/// Consecutive TLPs that share a timestamp: reading the clock costs as much as the rest of a
/// record.
const RUN: u8 = 8;

/// Observations that wait while the node is busy: they hold payloads and received bytes.
const MAX_PENDING: usize = 256;
/// Records made before an idle node checks for input again, and payload bytes in them, which take
/// a hash: some microseconds at most.
const PIECE: (usize, usize) = (8, 4096);
/// All of them.
const EVERYTHING: (usize, usize) = (MAX_PENDING, usize::MAX);

/// An observation. It becomes a record when the node is idle: making a record takes longer than
/// sending the next TLP.
#[derive(Debug)]
enum Observation {
    Tlp(Tap, bool, Tlp),
    Frame(Tap, FrameReport),
    Event(NvmeEvent),
    /// Already recorded.
    Recorded,
}

/// The last timestamp, and the TLPs that share it.
#[derive(Clone, Copy, Debug)]
struct ClockRead {
    at: Instant,
    /// Where the TLPs pass, and whether upwards.
    run: (Tap, bool),
    left: u8,
}

#[derive(Debug)]
pub(super) struct Recorder {
    pub timestamps: Timestamps,
    last_read: ClockRead,
    pending: Vec<(Instant, Observation)>,
    /// How many of them are recorded.
    recorded: usize,
    payloads: Payloads,
    /// The current chunk, with room for its header.
    buffer: Vec<u8>,
    most: usize,
    start_ns: u64,
    last_ns: u64,
    /// Records lost before this chunk, and since it is full or recording is stopped.
    lost_before: u32,
    lost_now: u32,
    /// Those that were lost while recording was not stopped.
    lost: u64,
    /// Records are not kept, but the payloads of later ones depend on them.
    stopped: bool,
    /// As [`Writer::failed`].
    failed: Arc<AtomicBool>,
    to_writer: Option<SyncSender<Chunk>>,
    from_writer: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl Recorder {
    /// Begins a file. Error: as `open(2)` and `write(2)`.
    pub fn create(
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
        let most = settings.ring.map_or(CHUNK, |size| CHUNK.min(size as usize / 8).max(SMALLEST));
        let (full, chunks) = sync_channel(CHUNKS);
        let (back, empty) = sync_channel(CHUNKS);
        for _ in 1..CHUNKS {
            let _ = back.try_send(new_buffer(most));
        }
        let failed = Arc::new(AtomicBool::new(false));
        let layout = Layout { next, ring };
        let writer = Writer { file, layout, failed: failed.clone(), on_error };
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || writer.write(&chunks, &back))?;
        Ok(Self {
            timestamps: Timestamps::new(clock),
            last_read: ClockRead { at: Instant::ZERO, run: (Tap::ROOT_PORT, false), left: 0 },
            pending: Vec::with_capacity(MAX_PENDING),
            recorded: 0,
            payloads,
            buffer: new_buffer(most),
            most,
            start_ns: 0,
            last_ns: 0,
            lost_before: 0,
            lost_now: 0,
            lost: 0,
            stopped: false,
            failed,
            to_writer: Some(full),
            from_writer: empty,
            thread: Some(thread),
        })
    }

    /// A TLP passes.
    pub fn tlp(&mut self, tap: Tap, up: bool, tlp: &Tlp) {
        let at = self.now(tap, up);
        self.note(at, Observation::Tlp(tap, up, tlp.clone()));
    }

    /// As [`Tracer::events`](super::Tracer::events).
    pub fn events(&mut self, first: Option<Instant>, mut next: impl FnMut() -> Option<NvmeEvent>) {
        let Some(mut event) = next() else { return };
        let now = self.timestamps.now();
        // Later TLPs get a new timestamp.
        self.last_read.left = 0;
        let mut at = first.unwrap_or(now);
        loop {
            self.note(at, Observation::Event(event));
            at = now;
            match next() {
                Some(more) => event = more,
                None => return,
            }
        }
    }

    /// As [`Tracer::frames`](super::Tracer::frames), with one timestamp for all.
    pub fn frames(&mut self, tap: Tap, mut next: impl FnMut() -> Option<tunnel::Report>) {
        let mut at = None;
        while let Some(report) = next() {
            if let tunnel::Report::Frame(frame) = report {
                let at = *at.get_or_insert_with(|| self.timestamps.now());
                self.note(at, Observation::Frame(tap, frame));
            }
        }
    }

    /// The time of the next TLP of a run.
    fn now(&mut self, tap: Tap, up: bool) -> Instant {
        if self.last_read.left == 0 || self.last_read.run != (tap, up) {
            self.last_read = ClockRead { at: self.timestamps.now(), run: (tap, up), left: RUN };
        }
        self.last_read.left -= 1;
        self.last_read.at
    }

    /// Keeps an observation until the node is idle.
    fn note(&mut self, at: Instant, pending: Observation) {
        if self.pending.len() == MAX_PENDING {
            self.record_pending(EVERYTHING);
        }
        self.pending.push((at, pending));
    }

    /// Makes records of the next `most` observations, in order, with about so many payload bytes.
    fn record_pending(&mut self, (most, mut bytes): (usize, usize)) {
        for _ in 0..most {
            let Some((at, pending)) = self.pending.get_mut(self.recorded) else { break };
            self.recorded += 1;
            let at = *at;
            match std::mem::replace(pending, Observation::Recorded) {
                Observation::Tlp(tap, up, tlp) => {
                    self.record_tlp(at, tap, up, &tlp);
                    bytes = bytes.saturating_sub(tlp.data.len());
                }
                Observation::Frame(tap, frame) => self.record(at, Record::of_frame(tap, &frame)),
                Observation::Event(event) => {
                    self.record(at, Record::Nvme { tap: Tap::FUNCTION, event });
                }
                Observation::Recorded => unreachable!("taken once"),
            }
            if bytes == 0 {
                break;
            }
        }
        // Reused memory stays in the cache.
        if self.recorded == self.pending.len() {
            self.pending.clear();
            self.recorded = 0;
        }
    }

    fn record_tlp(&mut self, now: Instant, tap: Tap, up: bool, tlp: &Tlp) {
        let kept = self.payloads.kept_of(up, tlp);
        if let Some(delta) = self.begin(now, kept.max_record_length(tlp)) {
            encode_tlp(tap, up, tlp, &kept, delta, &mut self.buffer);
        }
    }

    /// Records that a link is established or down.
    pub fn link(&mut self, tap: Tap, state: LinkState<'_>) {
        self.record_pending(EVERYTHING);
        let now = self.timestamps.now();
        self.record(now, Record::Link { tap, state });
    }

    /// Records what a host node did not push.
    pub fn not_pushed(&mut self, commands: &NotPushed) {
        self.record_pending(EVERYTHING);
        let now = self.timestamps.now();
        for (reason, commands) in commands.iter() {
            self.record(now, Record::NotPushed { reason: reason as u8, commands });
        }
    }

    fn record(&mut self, now: Instant, record: Record<'_>) {
        self.payloads.link(&record);
        if let Some(delta) = self.begin(now, record.max_length()) {
            record.encode(delta, &mut self.buffer);
        }
    }

    /// Makes room for the next record; returns the time since the one before it, in
    /// nanoseconds, or `None` if the record is lost.
    fn begin(&mut self, now: Instant, room: usize) -> Option<u64> {
        if self.is_stopped() {
            self.lost_now = self.lost_now.saturating_add(1);
            return None;
        }
        if self.buffer.len() == CHUNK_HEADER {
            self.lost_before = self.lost_before.saturating_add(std::mem::take(&mut self.lost_now));
        }
        let fits = self.lost_now == 0 && self.buffer.len() + room <= self.most;
        let due = now > Instant::from_ns(self.start_ns) + FLUSH && self.buffer.len() > CHUNK_HEADER;
        let handed_over = (!fits || due) && self.hand_over();
        if !fits && !handed_over {
            self.lost_now = self.lost_now.saturating_add(1);
            self.lost += 1;
            return None;
        }
        let now = now.as_ns();
        if self.buffer.len() == CHUNK_HEADER {
            (self.start_ns, self.last_ns) = (now, now);
        }
        let delta = now.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now);
        Some(delta)
    }

    /// As [`Tracer::toggle`](super::Tracer::toggle).
    pub fn toggle(&mut self) -> bool {
        self.record_pending(EVERYTHING);
        // First: the writer may fail with the chunk that is handed over.
        self.stopped = !self.is_stopped();
        if !self.stopped {
            self.failed.store(false, Ordering::Relaxed);
        }
        if self.buffer.len() > CHUNK_HEADER {
            self.hand_over();
        }
        !self.stopped
    }

    fn is_stopped(&self) -> bool {
        self.stopped || self.failed.load(Ordering::Relaxed)
    }

    /// As [`Tracer::tick`](super::Tracer::tick).
    pub fn tick(&mut self, now: Instant, idle: bool) -> Option<Instant> {
        // The turn ends the run.
        self.last_read.left = 0;
        if idle {
            self.record_pending(PIECE);
            self.timestamps.follow(now);
        }
        if !self.pending.is_empty() {
            return Some(now);
        }
        let due = Instant::from_ns(self.start_ns) + FLUSH;
        if self.buffer.len() <= CHUNK_HEADER || now >= due && self.hand_over() {
            return None;
        }
        // If the writer is behind, try again with the next record or turn.
        (now < due).then_some(due)
    }

    /// Passes the chunk to the writer; `false` if the writer has returned no memory.
    fn hand_over(&mut self) -> bool {
        let Ok(mut next) = self.from_writer.try_recv() else { return false };
        next.clear();
        next.resize(CHUNK_HEADER, 0);
        let bytes = std::mem::replace(&mut self.buffer, next);
        let chunk = Chunk { start_ns: self.start_ns, lost: self.lost_before, bytes };
        self.lost_before = std::mem::take(&mut self.lost_now);
        // The channel holds all chunks.
        self.to_writer.as_ref().is_some_and(|full| full.try_send(chunk).is_ok())
    }

    /// Writes out the rest. Later records are dropped.
    /// Error: the first error of the file since it was opened.
    pub fn finish(&mut self) -> io::Result<Report> {
        self.record_pending(EVERYTHING);
        let Some(full) = self.to_writer.take() else { return Ok(Report::default()) };
        let bytes = std::mem::take(&mut self.buffer);
        self.most = 0;
        if bytes.len() > CHUNK_HEADER {
            let chunk = Chunk { start_ns: self.start_ns, lost: self.lost_before, bytes };
            let _ = full.send(chunk);
        }
        drop(full);
        let written = self.thread.take().map(JoinHandle::join);
        let bytes = match written {
            Some(Ok(result)) => result?,
            _ => 0,
        };
        Ok(Report { bytes, lost: self.lost })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn new_buffer(most: usize) -> Vec<u8> {
    // Written once, so that later writes cause no page fault.
    let mut bytes = vec![1; most];
    bytes.clear();
    bytes.resize(CHUNK_HEADER, 0);
    bytes
}
