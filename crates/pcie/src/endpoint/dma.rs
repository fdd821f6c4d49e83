//! The DMA engine: reads split into requests, completions put together again,
//! in whatever order they come.

use super::DmaError;
use crate::errors::Errors;
use crate::split;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::tlp::{Completion, MemoryRequest, Status, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

/// One read of the device's own code.
#[derive(Debug)]
struct Read {
    id: u64,
    address: u64,
    length: usize,
    /// Bytes for which requests were made.
    requested: usize,
    /// Requests that wait for completions.
    outstanding: usize,
    buffer: BytesMut,
    /// The only completion, kept without a copy if it is everything.
    whole: Option<Bytes>,
    error: Option<DmaError>,
}

/// One request on the link.
#[derive(Clone, Copy, Debug)]
struct Pending {
    slot: usize,
    /// Next byte expected, as an offset in the read.
    offset: usize,
    left: usize,
    sent: Option<Instant>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Engine {
    reads: Vec<Option<Read>>,
    free: Vec<usize>,
    /// Slots of reads with bytes not requested yet, in order.
    unsent: VecDeque<usize>,
    tags: Vec<Option<Pending>>,
    free_tags: Vec<u16>,
    in_flight: usize,
    done: VecDeque<(u64, Result<Bytes, DmaError>)>,
}

/// The settings that software may change between requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub requester: Bdf,
    /// Bytes a request: a power of two.
    pub request: usize,
    /// Requests in flight, tags included.
    pub in_flight: usize,
}

impl Engine {
    pub fn read(&mut self, id: u64, address: u64, length: usize) {
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

    /// Fails a read before anything was sent.
    pub fn refuse(&mut self, id: u64, error: DmaError) {
        self.done.push_back((id, Err(error)));
    }

    pub fn finished(&mut self) -> Option<(u64, Result<Bytes, DmaError>)> {
        self.done.pop_front()
    }

    /// The next request, if there is one to make.
    pub fn next_request(&mut self, limits: Limits) -> Option<Tlp> {
        let slot = *self.unsent.front()?;
        if self.in_flight >= limits.in_flight {
            return None;
        }
        let tag = self.take_tag(limits.in_flight)?;
        let read = self.reads[slot].as_mut().expect("an unsent read has its slot");
        let at = read.address + read.requested as u64;
        let (at, bytes) = split::pieces(at, read.length - read.requested, limits.request).next()?;
        self.tags[usize::from(tag)] =
            Some(Pending { slot, offset: read.requested, left: bytes, sent: None });
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

    fn take_tag(&mut self, most: usize) -> Option<u16> {
        if let Some(tag) = self.free_tags.pop() {
            return Some(tag);
        }
        if self.tags.len() >= most {
            return None;
        }
        self.tags.push(None);
        Some(self.tags.len() as u16 - 1)
    }

    /// Starts the timer of a request that leaves now.
    pub fn sent(&mut self, now: Instant, tag: Tag) {
        if let Some(Some(pending)) = self.tags.get_mut(usize::from(tag.get())) {
            pending.sent = Some(now);
        }
    }

    pub fn complete(&mut self, c: Completion, data: Bytes, poisoned: bool, errors: &mut Errors) {
        let index = usize::from(c.tag.get());
        let Some(Some(pending)) = self.tags.get(index).copied() else {
            errors.unexpected_completion += 1;
            return;
        };
        let outcome = if poisoned {
            errors.poisoned += 1;
            Err(DmaError::Poisoned)
        } else {
            match c.status {
                Status::Success => self.store(pending, c, &data, errors),
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
            Ok(_) => self.retire(index, pending.slot, None),
            Err(error) => self.retire(index, pending.slot, Some(error)),
        }
    }

    /// Puts the payload in its place; yields the bytes it brought.
    fn store(
        &mut self,
        pending: Pending,
        c: Completion,
        data: &Bytes,
        errors: &mut Errors,
    ) -> Result<usize, DmaError> {
        let lead = usize::from(c.lower_address & 3);
        let bytes = data.len().saturating_sub(lead).min(pending.left);
        let read = self.reads[pending.slot].as_mut().expect("a pending tag has its read");
        let expected = (read.address + pending.offset as u64) as u8 & 0x7f;
        if bytes == 0 || usize::from(c.byte_count) != pending.left || c.lower_address != expected {
            errors.malformed += 1;
            return Err(DmaError::CompleterAbort);
        }
        if bytes == read.length {
            read.whole = Some(data.slice(lead..lead + bytes));
            return Ok(bytes);
        }
        if read.buffer.is_empty() {
            read.buffer.resize(read.length, 0);
        }
        read.buffer[pending.offset..pending.offset + bytes]
            .copy_from_slice(&data[lead..lead + bytes]);
        Ok(bytes)
    }

    fn retire(&mut self, tag: usize, slot: usize, error: Option<DmaError>) {
        self.tags[tag] = None;
        self.free_tags.push(tag as u16);
        self.in_flight -= 1;
        let read = self.reads[slot].as_mut().expect("a pending tag has its read");
        read.outstanding -= 1;
        if let Some(error) = error {
            read.error.get_or_insert(error);
            // The rest of a failed read is not asked for any more.
            if read.requested < read.length {
                read.requested = read.length;
                self.unsent.retain(|s| *s != slot);
            }
        }
        if read.outstanding == 0 && read.requested == read.length {
            let read = self.reads[slot].take().expect("checked above");
            self.free.push(slot);
            let result = match (read.error, read.whole) {
                (Some(error), _) => Err(error),
                (None, Some(whole)) => Ok(whole),
                (None, None) => Ok(read.buffer.freeze()),
            };
            self.done.push_back((read.id, result));
        }
    }

    /// Gives up on requests that have waited for `limit`.
    pub fn expire(&mut self, now: Instant, limit: Duration, errors: &mut Errors) {
        for tag in 0..self.tags.len() {
            if let Some(Pending { slot, sent: Some(sent), .. }) = self.tags[tag]
                && sent + limit <= now
            {
                errors.completion_timeout += 1;
                self.retire(tag, slot, Some(DmaError::Timeout));
            }
        }
    }

    /// When the first request in flight was sent.
    pub fn oldest(&self) -> Option<Instant> {
        if self.in_flight == 0 {
            return None;
        }
        self.tags.iter().flatten().filter_map(|pending| pending.sent).min()
    }
}
