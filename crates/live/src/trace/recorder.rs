//! Records in memory until the writer takes them.

use super::stamps::Stamps;
use super::writer::{self, Chunk, Place};
use super::{Report, Settings};
use crate::clock::Clock;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;
use switch::tunnel;
use wire::frame::FrameReport;
use wire::tlp::Tlp;
use wire::trace::{
    CHUNK_HEADER, Header, LinkState, NodeRole, NvmeEvent, Record, SnapLength, Tap, encode_tlp,
    max_record_length,
};
use wire::{Duration, Instant};

/// Bytes of a chunk; rings below eight of them have smaller ones. Waking the
/// writer disturbs the node more than recording does, so it is done rarely.
const CHUNK: usize = 1 << 20;
/// The smallest chunk holds the longest record several times.
const SMALLEST: usize = 32 << 10;
/// Chunks in memory: 8 MiB.
const CHUNKS: usize = 8;
/// A chunk waits this long at most while anything happens.
const FLUSH: Duration = Duration::from_ms(100);
/// Bytes at the front of a ring that are kept: without the enumeration and
/// the creation of the queues nobody can tell what the TLPs mean.
const HEAD: u64 = 1 << 20;
/// TLPs in a row that share a look at the clock: it costs as much as the rest
/// of a record.
const ROW: u8 = 8;

/// Sightings that wait while the node is busy: they hold on to the payloads
/// and to what was received.
const MOST_SEEN: usize = 256;
/// Records made before an idle node looks again whether anything has come:
/// about a microsecond.
const PIECE: usize = 8;

/// What was seen. It becomes a record when the node has nothing else to do:
/// making one takes longer than sending the next TLP.
#[derive(Debug)]
enum Seen {
    Tlp(Tap, bool, Tlp),
    Frame(Tap, FrameReport),
    Event(NvmeEvent),
    /// There is a record of it.
    Settled,
}

/// The last look at the clock, and for whom it is good.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    /// What passes now, which way.
    row: (Tap, bool),
    left: u8,
}

#[derive(Debug)]
pub(super) struct Recorder {
    stamps: Stamps,
    look: Look,
    seen: Vec<(Instant, Seen)>,
    /// How many of them there are records of.
    settled: usize,
    keep: SnapLength,
    /// The chunk that is filled, with room for its header.
    buffer: Vec<u8>,
    most: usize,
    start_ns: u64,
    last_ns: u64,
    /// Lost before this chunk, and since it is full.
    lost_before: u32,
    lost_now: u32,
    lost: u64,
    full: Option<SyncSender<Chunk>>,
    empty: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl Recorder {
    /// Begins a file.
    ///
    /// # Errors
    /// As `open(2)` and `write(2)`.
    pub fn create(
        settings: &Settings,
        role: NodeRole,
        instance: u64,
        clock: Clock,
    ) -> io::Result<Self> {
        let file = File::create(&settings.path)?;
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            role,
            ring: settings.ring.is_some(),
            instance,
            start_unix_ns: (unix.as_nanos() as u64).saturating_sub(clock.now().as_ns()),
            snap: settings.snap.unwrap_or(0),
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
            let _ = back.try_send(fresh(most));
        }
        let place = Place { next, ring };
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || writer::write(&file, place, &chunks, &back))?;
        Ok(Self {
            stamps: Stamps::new(clock),
            look: Look { at: Instant::ZERO, row: (Tap::ROOT_PORT, false), left: 0 },
            seen: Vec::with_capacity(MOST_SEEN),
            settled: 0,
            keep: SnapLength::new(settings.snap),
            buffer: fresh(most),
            most,
            start_ns: 0,
            last_ns: 0,
            lost_before: 0,
            lost_now: 0,
            lost: 0,
            full: Some(full),
            empty,
            thread: Some(thread),
        })
    }

    /// A TLP passes.
    pub fn tlp(&mut self, tap: Tap, up: bool, tlp: &Tlp) {
        let at = self.now(tap, up);
        self.note(at, Seen::Tlp(tap, up, tlp.clone()));
    }

    /// The time now.
    pub fn time(&mut self) -> Instant {
        self.stamps.now()
    }

    /// As [`Tracer::events`](super::Tracer::events).
    pub fn events(&mut self, first: Option<Instant>, mut next: impl FnMut() -> Option<NvmeEvent>) {
        let Some(mut event) = next() else { return };
        let now = self.stamps.now();
        // TLPs behind it look anew.
        self.look.left = 0;
        let mut at = first.unwrap_or(now);
        loop {
            self.note(at, Seen::Event(event));
            at = now;
            match next() {
                Some(more) => event = more,
                None => return,
            }
        }
    }

    /// As [`Tracer::frames`](super::Tracer::frames): one look at the clock will
    /// do.
    pub fn frames(&mut self, tap: Tap, mut next: impl FnMut() -> Option<tunnel::Report>) {
        let mut at = None;
        while let Some(report) = next() {
            if let tunnel::Report::Frame(frame) = report {
                let at = *at.get_or_insert_with(|| self.stamps.now());
                self.note(at, Seen::Frame(tap, frame));
            }
        }
    }

    /// The time, for the next of a row of TLPs.
    fn now(&mut self, tap: Tap, up: bool) -> Instant {
        if self.look.left == 0 || self.look.row != (tap, up) {
            self.look = Look { at: self.stamps.now(), row: (tap, up), left: ROW };
        }
        self.look.left -= 1;
        self.look.at
    }

    /// Keeps what was seen until the node has nothing better to do.
    fn note(&mut self, at: Instant, seen: Seen) {
        if self.seen.len() == MOST_SEEN {
            self.settle(MOST_SEEN);
        }
        self.seen.push((at, seen));
    }

    /// Makes records of the next `most` sightings, in their order.
    fn settle(&mut self, most: usize) {
        for _ in 0..most {
            let Some((at, seen)) = self.seen.get_mut(self.settled) else { break };
            self.settled += 1;
            let at = *at;
            match std::mem::replace(seen, Seen::Settled) {
                Seen::Tlp(tap, up, tlp) => self.record_tlp(at, tap, up, &tlp),
                Seen::Frame(tap, frame) => self.record(at, Record::of_frame(tap, &frame)),
                Seen::Event(event) => {
                    self.record(at, Record::Nvme { tap: Tap::FUNCTION, event });
                }
                Seen::Settled => unreachable!("taken once"),
            }
        }
        // The same memory again and again stays near the processor.
        if self.settled == self.seen.len() {
            self.seen.clear();
            self.settled = 0;
        }
    }

    fn record_tlp(&mut self, now: Instant, tap: Tap, up: bool, tlp: &Tlp) {
        let keep = self.keep.payload_of(tlp, up);
        let room = max_record_length(tlp.wire_length());
        if let Some(delta) = self.begin(now, room) {
            encode_tlp(tap, up, tlp, keep, delta, &mut self.buffer);
        }
    }

    /// A link begins anew, or ends.
    pub fn link(&mut self, tap: Tap, state: LinkState<'_>) {
        self.settle(MOST_SEEN);
        let now = self.stamps.now();
        self.record(now, Record::Link { tap, state });
    }

    fn record(&mut self, now: Instant, record: Record<'_>) {
        if let Some(delta) = self.begin(now, record.max_length()) {
            record.encode(delta, &mut self.buffer);
        }
    }

    /// Room for a record that is about to be written: the time since the one
    /// before it, in nanoseconds; `None` if it is lost.
    fn begin(&mut self, now: Instant, room: usize) -> Option<u64> {
        let fits = self.lost_now == 0 && self.buffer.len() + room <= self.most;
        let due = now > Instant::from_ns(self.start_ns) + FLUSH && self.buffer.len() > CHUNK_HEADER;
        let handed_over = (!fits || due) && self.hand_over();
        if !fits && !handed_over {
            self.lost_now += 1;
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

    /// As [`Tracer::tick`](super::Tracer::tick).
    pub fn tick(&mut self, now: Instant, idle: bool) -> Option<Instant> {
        // A turn of the node is over: no row goes on.
        self.look.left = 0;
        if idle {
            self.settle(PIECE);
            self.stamps.follow(now);
        }
        if !self.seen.is_empty() {
            return Some(now);
        }
        let due = Instant::from_ns(self.start_ns) + FLUSH;
        if self.buffer.len() <= CHUNK_HEADER || now >= due && self.hand_over() {
            return None;
        }
        // If the writer is behind, the next record or turn will do.
        (now < due).then_some(due)
    }

    /// Gives the chunk to the writer; `false` if the writer has not handed
    /// any memory back.
    fn hand_over(&mut self) -> bool {
        let Ok(mut next) = self.empty.try_recv() else { return false };
        next.clear();
        next.resize(CHUNK_HEADER, 0);
        let bytes = std::mem::replace(&mut self.buffer, next);
        let chunk = Chunk { start_ns: self.start_ns, lost: self.lost_before, bytes };
        self.lost_before = std::mem::take(&mut self.lost_now);
        // There is room for as many as there are.
        self.full.as_ref().is_some_and(|full| full.try_send(chunk).is_ok())
    }

    /// Writes out what is left. Later records go nowhere.
    ///
    /// # Errors
    /// What went wrong with the file, ever.
    pub fn finish(&mut self) -> io::Result<Report> {
        self.settle(MOST_SEEN);
        let Some(full) = self.full.take() else { return Ok(Report::default()) };
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

fn fresh(most: usize) -> Vec<u8> {
    // Touched, so that no page is missing when it is needed.
    let mut bytes = vec![1; most];
    bytes.clear();
    bytes.resize(CHUNK_HEADER, 0);
    bytes
}
