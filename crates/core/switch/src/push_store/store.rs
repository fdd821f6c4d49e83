//! The pushed bytes in front of the functions of a port, and the completions of reads.

use super::held::Held;
use super::{Invalid, Rule};
use bytes::{Bytes, BytesMut};
use pcie::endpoint::ForeignState;
use pcie::{Ready, split};
use std::collections::VecDeque;
use wire::Bdf;
use wire::push::{Push, Record, message};
use wire::tlp::{Class, MAX_PAYLOAD, MemoryRequest, Packet, Tlp, TraceId};

/// The maximum number of functions behind a port for which bytes are kept. It is the maximum number
/// of functions of one device (PCIe Base 4.0, section 6.13, ARI).
const MOST_FUNCTIONS: usize = 256;
/// The maximum number of followed queues, for all functions together.
const MOST_QUEUES: usize = 4096;
/// The maximum number of kept pieces, for all functions together.
const MOST_PIECES: usize = 8192;
/// Bytes of a message that announces a queue, about.
const QUEUE: usize = 128;
/// While at least this number of completions waits for the function, no further reads are accepted.
const MOST_REPLIES: usize = 256;

/// Counters of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of reads that were answered from pushed bytes.
    pub hits: u64,
    /// Number of reads that were passed on to the host; zero-length reads do not count.
    pub misses: u64,
    /// Number of bytes taken from messages.
    pub pushed_bytes: u64,
    /// Number of bytes of the reads that were answered from pushed bytes.
    pub hit_bytes: u64,
    /// Number of bytes that were invalidated or evicted before the function read them.
    pub unused_bytes: u64,
    /// Number of malformed messages with farlane's vendor ID.
    pub malformed: u64,
}

impl Counters {
    /// Name and value of each counter, in a fixed order.
    pub fn list(&self) -> [(&'static str, u64); 6] {
        let Self { hits, misses, pushed_bytes, hit_bytes, unused_bytes, malformed } = *self;
        [
            ("hits", hits),
            ("misses", misses),
            ("pushed_bytes", pushed_bytes),
            ("hit_bytes", hit_bytes),
            ("unused_bytes", unused_bytes),
            ("malformed", malformed),
        ]
    }
}

/// Properties of the completions with which the host would answer reads of the function.
#[derive(Clone, Copy, Debug)]
struct Completer {
    id: Bdf,
    size: usize,
    digest: bool,
}

/// The state of one function.
#[derive(Debug)]
struct Kept<R> {
    function: Bdf,
    completer: Completer,
    held: Held,
    rule: R,
}

/// The pushed bytes in front of the functions behind a port. Each byte answers at most one read by
/// its function. Messages of the host invalidate bytes; writes of the function also do, as [`Rule`]
/// decides.
#[derive(Debug)]
pub struct Store<R> {
    capacity: usize,
    /// The initial rule of a function.
    rule: R,
    functions: Vec<Kept<R>>,
    replies: VecDeque<Tlp>,
    /// Number of pieces added so far.
    order: u64,
    counters: Counters,
}

impl<R: Rule> Store<R> {
    /// A store of at most `capacity` bytes, which evicts the oldest bytes first. With 0, the store
    /// accepts no messages. Each function starts with a copy of `rule`.
    pub fn new(capacity: usize, rule: R) -> Self {
        Self {
            capacity,
            rule,
            functions: Vec::new(),
            replies: VecDeque::new(),
            order: 0,
            counters: Counters::default(),
        }
    }

    fn kept(&mut self, function: Bdf) -> Option<&mut Kept<R>> {
        self.functions.iter_mut().find(|kept| kept.function == function)
    }

    /// Counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of bytes kept now.
    pub fn bytes(&self) -> usize {
        self.functions.iter().map(|kept| kept.held.bytes).sum()
    }

    /// Drops everything, because the function was reset or the link is lost. Returns the trace IDs
    /// of the reads whose completions are dropped.
    pub fn clear(&mut self) -> impl Iterator<Item = TraceId> {
        self.counters.unused_bytes += self.bytes() as u64;
        self.functions.clear();
        self.replies.drain(..).map(|reply| reply.trace_id)
    }

    /// Messages with which another store follows the same queues. The bytes are not kept: they are in
    /// the host's memory too.
    pub fn save(&self) -> Bytes {
        let mut saved = BytesMut::with_capacity(QUEUE * self.functions.len());
        for Kept { function, completer, rule, .. } in &self.functions {
            for queue in rule.followed() {
                let mut record = BytesMut::with_capacity(QUEUE);
                Record::Queue(queue).encode(&mut record);
                let Completer { id, size, digest } = *completer;
                message(id, *function, size, digest, record.freeze()).encode(&mut saved);
            }
        }
        saved.freeze()
    }

    /// Takes what was saved.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn restore(&mut self, mut saved: Bytes) -> Result<(), ForeignState> {
        while !saved.is_empty() {
            self.take(Tlp::decode(&mut saved).map_err(|_| ForeignState)?);
        }
        Ok(())
    }

    /// Takes a TLP from the host; returns the TLP if it is for the function.
    pub fn take(&mut self, tlp: Tlp) -> Option<Tlp> {
        if self.capacity == 0 {
            return Some(tlp);
        }
        match Push::decode(&tlp) {
            None => return Some(tlp),
            Some(Ok(push)) => self.push(push),
            // All bytes are dropped, because the malformed message may have contained
            // invalidations.
            Some(Err(_)) => {
                self.counters.malformed += 1;
                self.counters.unused_bytes += self.bytes() as u64;
                self.functions.clear();
            }
        }
        None
    }

    fn push(&mut self, push: Push) {
        let Push { target, completer, completion_size, digest, records } = push;
        let completer = Completer { id: completer, size: completion_size, digest };
        if let Some(kept) = self.kept(target) {
            kept.completer = completer;
        } else if self.functions.len() < MOST_FUNCTIONS {
            let (held, rule) = (Held::default(), self.rule.clone());
            self.functions.push(Kept { function: target, completer, held, rule });
        } else {
            return;
        }
        records.for_each(|record| self.record(target, record));
    }

    fn record(&mut self, target: Bdf, record: Record) {
        let queues =
            |store: &Self| -> usize { store.functions.iter().map(|kept| kept.rule.queues()).sum() };
        let room = matches!(record, Record::Queue(_)) && queues(self) < MOST_QUEUES;
        let kept = self.functions.iter_mut().find(|kept| kept.function == target);
        let Some(Kept { held, rule, .. }) = kept else { return };
        let unused = match record {
            Record::Bytes { queue, command, address, bytes } => {
                return self.insert(target, (queue, command), address, bytes);
            }
            Record::Queue(queue) => {
                let ended = held.end_queue(queue.id);
                rule.set_queue(queue.id, room.then_some(queue));
                ended
            }
            Record::EndCommand { queue, command } => held.end_command((queue, command)),
            Record::EndQueue(queue) => {
                rule.set_queue(queue, None);
                held.end_queue(queue)
            }
            Record::EndRange { address, length } => {
                held.remove(address..address.saturating_add(length))
            }
            Record::EndAll => {
                rule.clone_from(&self.rule);
                std::mem::take(held).bytes
            }
        };
        self.counters.unused_bytes += unused as u64;
    }

    fn insert(&mut self, target: Bdf, command: (u16, u16), address: u64, bytes: Bytes) {
        let length = bytes.len();
        self.counters.pushed_bytes += length as u64;
        let (capacity, order) = (self.capacity, self.order);
        let Some(Kept { held, rule, .. }) = self.kept(target) else { return };
        if held.append(address, &bytes, command) {
            return self.evict();
        }
        let mut unused = held.remove(address..address + length as u64);
        let keep = length <= capacity && rule.follows(command.0);
        if keep {
            held.insert(address, bytes, command, order);
        } else {
            unused += length;
        }
        self.counters.unused_bytes += unused as u64;
        self.order += 1;
        self.evict();
    }

    /// Evicts the oldest pieces until the other pieces are within the limits.
    fn evict(&mut self) {
        let pieces =
            |store: &Self| -> usize { store.functions.iter().map(|kept| kept.held.count()).sum() };
        while self.bytes() > self.capacity || pieces(self) > MOST_PIECES {
            let all = self.functions.iter_mut().map(|kept| &mut kept.held);
            let oldest = all.filter_map(|held| held.oldest().map(|oldest| (oldest, held)));
            let Some(((_, range), held)) = oldest.min_by_key(|((order, _), _)| *order) else {
                return;
            };
            self.counters.unused_bytes += held.remove(range) as u64;
        }
    }

    /// Takes a TLP from the function; returns the TLP if it is for the host. If the store answers a
    /// read, [`pop`](Self::pop) returns the completions; with `whole`, a single completion.
    pub fn answer(&mut self, tlp: Tlp, whole: bool) -> Option<Tlp> {
        match tlp.packet {
            Packet::MemoryRead(request) => self.read(tlp, request, whole),
            Packet::MemoryWrite(request) => {
                self.write(&tlp, request);
                Some(tlp)
            }
            _ => Some(tlp),
        }
    }

    fn read(&mut self, tlp: Tlp, request: MemoryRequest, whole: bool) -> Option<Tlp> {
        // A zero-length read is a flush (PCIe Base 4.0, section 2.2.5), which the host must answer.
        if self.capacity == 0 || request.first_be == 0 {
            return Some(tlp);
        }
        let (start, length) = (request.first_byte(), request.byte_count());
        let solid = MemoryRequest::for_bytes(request.requester, request.tag, start, length);
        let end = start.checked_add(length as u64).filter(|_| solid == Some(request));
        let found = self
            .kept(request.requester)
            .zip(end)
            .and_then(|(kept, end)| Some((kept.completer, kept.held.take_range(start..end)?)));
        let Some((completer, data)) = found else {
            self.counters.misses += 1;
            return Some(tlp);
        };
        self.counters.hits += 1;
        self.counters.hit_bytes += length as u64;
        let size = if whole { MAX_PAYLOAD } else { completer.size };
        let replies = split::completions(&tlp, completer.id, size, false, data);
        self.replies.extend(replies.map(|reply| Tlp { digest: completer.digest, ..reply }));
        // The last completion has the trace ID of the read.
        if let Some(last) = self.replies.back_mut() {
            last.trace_id = tlp.trace_id;
        }
        None
    }

    fn write(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let Some(Kept { held, rule, .. }) = self.kept(request.requester) else { return };
        let before = held.bytes;
        rule.write(tlp, request, &mut |invalid| {
            match invalid {
                Invalid::Command(command) => held.end_command(command),
                Invalid::Range(range) => held.remove(range),
            };
        });
        self.counters.unused_bytes += (before - held.bytes) as u64;
    }

    /// The next completion of an answered read.
    pub fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        if ready.has(Class::Completion) { self.replies.pop_front() } else { None }
    }

    /// Whether [`pop`](Self::pop) would return a completion.
    pub fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Whether further reads of the function are accepted.
    pub fn takes_reads(&self) -> bool {
        self.replies.len() < MOST_REPLIES
    }
}
