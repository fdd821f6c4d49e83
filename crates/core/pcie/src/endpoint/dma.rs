//! The DMA engine: splits reads into requests and reassembles completions in any order.

use super::DmaError;
use crate::errors::Errors;
use crate::split;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::tlp::{Completion, MemoryRequest, Status, Tlp};
use wire::{Arena, Bdf, Duration, Instant, Tag};

/// One DMA read of the device.
#[derive(Debug)]
struct Read {
    id: u64,
    address: u64,
    length: usize,
    /// Bytes already requested.
    requested: usize,
    /// Number of requests that wait for completions.
    outstanding: usize,
    buffer: BytesMut,
    /// The payload, not copied, if one completion has all bytes of the read.
    whole: Option<Bytes>,
    error: Option<DmaError>,
}

/// One request on the link.
#[derive(Clone, Copy, Debug)]
struct Pending {
    /// The slot of the request's read. `None` after a reset or timeout: the tag is then quarantined
    /// until the last completion arrives or a timeout passes.
    slot: Option<usize>,
    /// Next byte expected, as an offset in the read.
    offset: usize,
    left: usize,
    sent: Option<Instant>,
    /// Whether an earlier process sent the request. Its completions are not counted as errors.
    earlier: bool,
}

/// The DMA engine of an endpoint.
#[derive(Debug)]
pub(super) struct Engine {
    reads: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Slots of the reads with bytes that were not requested yet, in order.
    unsent: VecDeque<usize>,
    tags: Vec<Option<Pending>>,
    /// Unused tags, least recently used first, so that a late completion does not match a new
    /// request.
    free_tags: VecDeque<u16>,
    in_flight: usize,
    done: VecDeque<(u64, Result<Bytes, DmaError>)>,
    /// Memory for reads with several completions.
    arena: Arena,
}

/// How long a tag stays quarantined if software has disabled the completion timeout: 50 ms, the
/// upper end of the default range.
const QUARANTINE: Duration = Duration::from_ms(50);

/// Size of a block of memory for reads in bytes.
const BLOCK: usize = 256 << 10;

/// Limits that software may change between requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub requester: Bdf,
    /// Largest request in bytes: a power of two.
    pub request: usize,
    /// The maximum number of requests in flight.
    pub in_flight: usize,
    /// Number of tags that may be used.
    pub tags: usize,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            reads: Vec::new(),
            free: Vec::new(),
            unsent: VecDeque::new(),
            tags: Vec::new(),
            free_tags: VecDeque::new(),
            in_flight: 0,
            done: VecDeque::new(),
            arena: Arena::new(BLOCK),
        }
    }
}

impl Engine {
    pub(super) fn read(&mut self, id: u64, address: u64, length: usize) {
        let read = Read {
            id,
            address,
            length,
            requested: 0,
            outstanding: 0,
            buffer: BytesMut::new(),
            whole: None,
            error: None,
        };
        if length == 0 || address.checked_add(length as u64).is_none() {
            let result =
                if length == 0 { Ok(Bytes::new()) } else { Err(DmaError::UnsupportedRequest) };
            self.done.push_back((id, result));
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.reads.push(None);
            self.reads.len() - 1
        });
        self.reads[slot] = Some(read);
        self.unsent.push_back(slot);
    }

    /// Fails a read without sending a request.
    pub(super) fn fail(&mut self, id: u64, error: DmaError) {
        self.done.push_back((id, Err(error)));
    }

    pub(super) fn finished(&mut self) -> Option<(u64, Result<Bytes, DmaError>)> {
        self.done.pop_front()
    }

    /// Whether a read has bytes that were not requested yet.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether the limits admit another request.
    pub(super) fn has_request(&self, limits: Limits) -> bool {
        !self.unsent.is_empty() && self.in_flight < limits.in_flight
    }

    /// Makes the next request, if the limits admit one.
    pub(super) fn next_request(&mut self, limits: Limits) -> Option<Tlp> {
        let slot = *self.unsent.front()?;
        if self.in_flight >= limits.in_flight {
            return None;
        }
        let tag = self.take_tag(limits.tags)?;
        let read = self.reads[slot].as_mut().expect("an unsent read has its slot");
        let at = read.address + read.requested as u64;
        let (at, bytes) = split::pieces(at, read.length - read.requested, limits.request).next()?;
        let (slot, offset) = (Some(slot), read.requested);
        self.tags[usize::from(tag)] =
            Some(Pending { slot, offset, left: bytes, sent: None, earlier: false });
        read.requested += bytes;
        read.outstanding += 1;
        if read.requested == read.length || read.error.is_some() {
            read.requested = read.length;
            self.unsent.pop_front();
        }
        self.in_flight += 1;
        let request = MemoryRequest::for_bytes(limits.requester, Tag::truncate(tag), at, bytes);
        Some(Tlp::memory_read(request.expect("pieces obey the 4 KiB rule")))
    }

    fn take_tag(&mut self, limit: usize) -> Option<u16> {
        if let Some(at) = self.free_tags.iter().position(|tag| usize::from(*tag) < limit) {
            return self.free_tags.remove(at);
        }
        if self.tags.len() >= limit {
            return None;
        }
        self.tags.push(None);
        Some(self.tags.len() as u16 - 1)
    }

    /// Starts the completion timer of a request that is sent now.
    pub(super) fn sent(&mut self, now: Instant, tag: Tag) {
        if let Some(Some(pending)) = self.tags.get_mut(usize::from(tag.get())) {
            pending.sent = Some(now);
        }
    }

    /// Takes a completion, or a run of them.
    pub(super) fn complete(&mut self, c: Completion, tlp: &Tlp, errors: &mut Errors) {
        let index = usize::from(c.tag.get());
        let packets = tlp.packets() as u64;
        let Some(Some(pending)) = self.tags.get(index).copied() else {
            errors.unexpected_completion += packets;
            return;
        };
        let Some(slot) = pending.slot else {
            errors.unexpected_completion += if pending.earlier { 0 } else { packets };
            self.complete_quarantined(index, pending, c, tlp.payload());
            return;
        };
        let outcome = if tlp.poisoned {
            errors.poisoned += 1;
            Err(DmaError::Poisoned)
        } else {
            match c.status {
                Status::Success => self.store(slot, pending, c, tlp, errors),
                Status::CompleterAbort => Err(DmaError::CompleterAbort),
                _ => Err(DmaError::UnsupportedRequest),
            }
        };
        match outcome {
            Ok(bytes) if bytes < pending.left => {
                self.tags[index] = Some(Pending {
                    offset: pending.offset + bytes,
                    left: pending.left - bytes,
                    ..pending
                });
            }
            Ok(_) => self.retire(index, slot, None),
            Err(error) => self.retire(index, slot, Some(error)),
        }
    }

    /// Stores the payload of a completion or of a run. Returns its number of bytes.
    fn store(
        &mut self,
        slot: usize,
        pending: Pending,
        c: Completion,
        tlp: &Tlp,
        errors: &mut Errors,
    ) -> Result<usize, DmaError> {
        let lead = usize::from(c.lower_address & 3);
        let bytes = tlp.payload().saturating_sub(lead).min(pending.left);
        let read = self.reads[slot].as_mut().expect("a pending tag has its read");
        let expected = (read.address + pending.offset as u64) as u8 & 0x7f;
        if bytes == 0 || usize::from(c.byte_count) != pending.left || c.lower_address != expected {
            errors.malformed += 1;
            // The later packets of the run match no read.
            errors.unexpected_completion += tlp.packets() as u64 - 1;
            return Err(DmaError::CompleterAbort);
        }
        if bytes == read.length && tlp.run.is_none() {
            read.whole = Some(tlp.data.slice(lead..lead + bytes));
            return Ok(bytes);
        }
        let buffer = &mut read.buffer;
        if buffer.is_empty() {
            *buffer = self.arena.buffer(read.length);
        }
        let (mut at, mut left) = (pending.offset, bytes);
        for piece in tlp.pieces() {
            let piece = if at == pending.offset { &piece[lead..] } else { piece };
            let piece = &piece[..piece.len().min(left)];
            let end = at + piece.len();
            // Completions mostly arrive in order.
            if at == buffer.len() {
                buffer.extend_from_slice(piece);
            } else {
                buffer.resize(buffer.len().max(end), 0);
                buffer[at..end].copy_from_slice(piece);
            }
            (at, left) = (end, left - piece.len());
        }
        Ok(bytes)
    }

    fn retire(&mut self, tag: usize, slot: usize, error: Option<DmaError>) {
        self.free_tag(tag);
        self.end_request(slot, error);
    }

    fn end_request(&mut self, slot: usize, error: Option<DmaError>) {
        self.in_flight -= 1;
        let read = self.reads[slot].as_mut().expect("a pending tag has its read");
        read.outstanding -= 1;
        if let Some(error) = error {
            read.error.get_or_insert(error);
            // The rest of a failed read is not requested.
            if read.requested < read.length {
                read.requested = read.length;
                self.unsent.retain(|s| *s != slot);
            }
        }
        if read.outstanding == 0 && read.requested == read.length {
            self.finish(slot);
        }
    }

    fn finish(&mut self, slot: usize) {
        let read = self.reads[slot].take().expect("only a read that is there ends");
        self.free.push(slot);
        let result = match (read.error, read.whole) {
            (Some(error), _) => Err(error),
            (None, Some(whole)) => Ok(whole),
            (None, None) => Ok(read.buffer.freeze()),
        };
        self.done.push_back((read.id, result));
    }

    fn free_tag(&mut self, tag: usize) {
        self.tags[tag] = None;
        self.free_tags.push_back(tag as u16);
    }

    /// Stops making requests. Reads with bytes that were not requested yet fail with `error` after
    /// the completions in flight.
    pub(super) fn stop(&mut self, error: DmaError) {
        for slot in std::mem::take(&mut self.unsent) {
            let read = self.reads[slot].as_mut().expect("an unsent read has its slot");
            read.requested = read.length;
            read.error.get_or_insert(error);
            if read.outstanding == 0 {
                self.finish(slot);
            }
        }
    }

    /// Drops every read and quarantines tags in flight: old completions may still
    /// arrive (PCIe Base 4.0, section 6.6.2).
    pub(super) fn reset(&mut self) {
        let old = std::mem::take(self);
        self.tags = old.tags;
        self.free_tags = old.free_tags;
        for tag in 0..self.tags.len() {
            match &mut self.tags[tag] {
                Some(pending) if pending.sent.is_some() => pending.slot = None,
                Some(_) => self.free_tag(tag),
                None => {}
            }
        }
    }

    /// The tags of requests, with the number of bytes that their completions still bring.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (u16, usize)> {
        let pending = |(tag, pending): (usize, &Option<Pending>)| {
            Some((tag as u16, pending.as_ref().filter(|one| one.sent.is_some())?.left))
        };
        self.tags.iter().enumerate().filter_map(pending)
    }

    /// Quarantines the tags of an earlier process.
    pub(super) fn quarantine(&mut self, now: Instant, tags: &[(u16, usize)]) {
        let count = tags.iter().map(|(tag, _)| usize::from(*tag) + 1).max().unwrap_or(0);
        self.tags = vec![None; count];
        for (tag, left) in tags {
            let (slot, offset, sent) = (None, 0, Some(now));
            let pending = Pending { slot, offset, left: *left, sent, earlier: true };
            self.tags[usize::from(*tag)] = Some(pending);
        }
        self.free_tags =
            (0..count as u16).filter(|tag| self.tags[usize::from(*tag)].is_none()).collect();
    }

    /// Handles a completion for a quarantined tag. The last completion frees the tag.
    fn complete_quarantined(&mut self, tag: usize, pending: Pending, c: Completion, bytes: usize) {
        let left = pending.left.saturating_sub(bytes - usize::from(c.lower_address & 3).min(bytes));
        if c.status != Status::Success || bytes == 0 || left == 0 {
            self.free_tag(tag);
        } else {
            self.tags[tag] = Some(Pending { left, ..pending });
        }
    }

    /// Times out the requests that were sent at least `limit` ago; none with `None`. Frees
    /// quarantined tags whose time has passed.
    pub(super) fn expire(&mut self, now: Instant, limit: Option<Duration>, errors: &mut Errors) {
        for tag in 0..self.tags.len() {
            let Some(pending) = self.tags[tag] else { continue };
            if pending.deadline(limit).is_none_or(|at| at > now) {
                continue;
            }
            match pending.slot {
                Some(slot) => {
                    errors.completion_timeout += 1;
                    // The completion may only be late, so the tag is quarantined for the same time
                    // again.
                    self.tags[tag] = Some(Pending { slot: None, sent: Some(now), ..pending });
                    self.end_request(slot, Some(DmaError::Timeout));
                }
                None => self.free_tag(tag),
            }
        }
    }

    /// When the next request or quarantined tag times out.
    pub(super) fn deadline(&self, limit: Option<Duration>) -> Option<Instant> {
        if self.free_tags.len() == self.tags.len() {
            return None;
        }
        self.tags.iter().flatten().filter_map(|pending| pending.deadline(limit)).min()
    }
}

impl Pending {
    fn deadline(&self, limit: Option<Duration>) -> Option<Instant> {
        let limit = limit.or(self.slot.is_none().then_some(QUARANTINE))?;
        Some(self.sent? + limit)
    }
}
