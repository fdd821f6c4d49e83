//! Converts notes to records in its own thread, because following NVMe and hashing payloads takes
//! longer than sending TLPs.

use super::recorder::{Batch, FLUSH, Note, Notes};
use super::writer::Chunk;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use wire::Instant;
use wire::tlp::Tlp;
use wire::trace::{CHUNK_HEADER, LinkState, Payloads, Record, Tap, encode_tlp};

/// Bytes of chunks in memory.
pub(super) const MEMORY: usize = 8 << 20;
/// Bytes of a chunk; smaller in rings below eight of them.
const CHUNK: usize = 1 << 20;
/// The smallest chunk holds the longest record several times.
const SMALLEST: usize = 32 << 10;

/// Bytes per chunk of a file, or of a ring of `ring` bytes.
pub(super) fn chunk_size(ring: Option<u64>) -> usize {
    ring.map_or(CHUNK, |size| CHUNK.min(size as usize / 8).max(SMALLEST))
}

/// The state of the thread. The thread never waits for the writer: records without room are
/// counted.
#[derive(Debug)]
pub(super) struct Encoder {
    payloads: Payloads,
    /// The current chunk, with room for its header.
    buffer: Vec<u8>,
    most: usize,
    start_ns: u64,
    last_ns: u64,
    /// Records lost before this chunk, and since it is full or recording is stopped.
    lost_before: u32,
    lost_now: u32,
    /// Records lost while recording was not stopped.
    lost: u64,
    /// Whether recording is stopped. Records are then encoded but not written, because later
    /// payloads depend on them.
    stopped: bool,
    /// As `Writer::failed`.
    failed: Arc<AtomicBool>,
    to_writer: SyncSender<Chunk>,
    from_writer: Receiver<Vec<u8>>,
}

impl Encoder {
    pub(super) fn new(
        payloads: Payloads,
        most: usize,
        failed: Arc<AtomicBool>,
        to_writer: SyncSender<Chunk>,
        from_writer: Receiver<Vec<u8>>,
    ) -> Self {
        Self {
            payloads,
            buffer: vec![0; CHUNK_HEADER],
            most,
            start_ns: 0,
            last_ns: 0,
            lost_before: 0,
            lost_now: 0,
            lost: 0,
            stopped: false,
            failed,
            to_writer,
            from_writer,
        }
    }

    /// Encodes until the recorder has ended; returns the number of lost records.
    pub(super) fn run(mut self, batches: &Receiver<Batch>, empty: &SyncSender<Notes>) -> u64 {
        for Batch { mut notes, flush } in batches {
            for (at, note) in notes.drain(..) {
                self.record_note(at, note);
            }
            let _ = empty.try_send(notes);
            if flush {
                self.flush();
            }
        }
        if self.buffer.len() > CHUNK_HEADER {
            let last = self.chunk();
            let _ = self.to_writer.send(last);
        }
        self.lost
    }

    fn record_note(&mut self, at: Instant, note: Note) {
        match note {
            Note::Tlp(tap, up, tlp) => {
                tlp.singles().for_each(|single| self.record_tlp(at, tap, up, &single));
            }
            Note::Frame(tap, frame) => self.record(at, Record::of_frame(tap, &frame)),
            Note::Event(event) => self.record(at, Record::Nvme { tap: Tap::FUNCTION, event }),
            Note::Connected(tap, goes_on) => {
                let state = if goes_on { LinkState::Returned } else { LinkState::Connected };
                self.record(at, Record::Link { tap, state });
            }
            Note::Lost(tap, why, goes_on) => {
                let (down, waits) = (LinkState::Down(&why), LinkState::Interrupted(&why));
                self.record(at, Record::Link { tap, state: if goes_on { waits } else { down } });
            }
            Note::NotPushed(commands) => {
                for (reason, commands) in commands.iter() {
                    self.record(at, Record::NotPushed { reason: reason as u8, commands });
                }
            }
            Note::Fault(tap, text) => self.record(at, Record::Fault { tap, text: &text }),
            Note::Recording(on) => {
                // Set first, because the writer may fail with the chunk passed on below.
                self.stopped = !on;
                self.failed.fetch_and(!on, Ordering::Relaxed);
                self.flush();
            }
        }
    }

    /// Passes on the present records.
    fn flush(&mut self) {
        if self.buffer.len() > CHUNK_HEADER {
            self.hand_over();
        }
    }

    fn record_tlp(&mut self, at: Instant, tap: Tap, up: bool, tlp: &Tlp) {
        let kept = self.payloads.kept_of(up, tlp);
        if let Some(delta) = self.begin(at, kept.max_record_length(tlp)) {
            encode_tlp(tap, up, tlp, &kept, delta, &mut self.buffer);
        }
    }

    fn record(&mut self, at: Instant, record: Record<'_>) {
        self.payloads.link(&record);
        if let Some(delta) = self.begin(at, record.max_length()) {
            record.encode(delta, &mut self.buffer);
        }
    }

    /// Makes room for the next record; returns the time since the previous record in nanoseconds,
    /// or `None` if the new record is lost.
    fn begin(&mut self, at: Instant, room: usize) -> Option<u64> {
        self.stopped |= self.failed.load(Ordering::Relaxed);
        if self.stopped {
            self.lost_now = self.lost_now.saturating_add(1);
            return None;
        }
        if self.buffer.len() == CHUNK_HEADER {
            self.lost_before = self.lost_before.saturating_add(std::mem::take(&mut self.lost_now));
        }
        let fits = self.lost_now == 0 && self.buffer.len() + room <= self.most;
        let due = at > Instant::from_ns(self.start_ns) + FLUSH && self.buffer.len() > CHUNK_HEADER;
        let handed_over = (!fits || due) && self.hand_over();
        if !fits && !handed_over {
            self.lost_now = self.lost_now.saturating_add(1);
            self.lost += 1;
            return None;
        }
        // Timestamps may step back a little. Chunks must not: readers sort them by their start.
        let at = at.as_ns().max(self.last_ns);
        if self.buffer.len() == CHUNK_HEADER {
            (self.start_ns, self.last_ns) = (at, at);
        }
        Some(at - std::mem::replace(&mut self.last_ns, at))
    }

    /// Passes the chunk to the writer; `false` if the writer has returned no memory.
    fn hand_over(&mut self) -> bool {
        let Ok(mut next) = self.from_writer.try_recv() else { return false };
        next.clear();
        next.resize(CHUNK_HEADER, 0);
        let full = self.chunk();
        self.buffer = next;
        // The channel has room for all chunks.
        self.to_writer.try_send(full).is_ok()
    }

    /// Takes the full chunk; a new one begins.
    fn chunk(&mut self) -> Chunk {
        let bytes = std::mem::take(&mut self.buffer);
        let chunk = Chunk { start_ns: self.start_ns, lost: self.lost_before, bytes };
        self.lost_before = std::mem::take(&mut self.lost_now);
        chunk
    }
}
