//! Doorbells in a page shared with the client: plain stores there become writes to the endpoint.
//!
//! The page is a part of a BAR with write-only double words (NVMe Base 1.4, sections 3.1.24 and
//! 3.1.25: reading a doorbell is vendor specific). The server polls the page, takes each value and
//! writes `IDLE` instead. Thus every store counts, even if it repeats the previous value: a queue
//! that was deleted and created again, or a driver that restarts at the same index. Of several
//! stores to one doorbell between two polls the last one counts: a value is the new tail or head of
//! a queue.

use super::action::Action;
use crate::mapping::Shared;
use bytes::Bytes;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

/// The value of a doorbell without a new store. No queue index has this value: queues have at most
/// 65536 entries.
pub(crate) const IDLE: u32 = u32::MAX;

/// The BAR in which the page lies.
pub(crate) const BAR: u8 = 0;
/// The page's offset in the BAR: where NVM Express has doorbells (NVMe Base 1.4, section 3.1).
pub(crate) const OFFSET: u64 = 0x1000;
/// Length of the page: the doorbells of 512 queue pairs.
pub(crate) const LENGTH: u64 = 0x1000;
/// Bytes of the doorbells of a queue pair.
const PAIR: usize = 8;
/// The least number of queue pairs whose doorbells are polled, as pairs may share vectors.
const LEAST: u16 = 65;

/// The shared page of doorbells. A client writes doorbells after the page by messages.
#[derive(Debug)]
pub(crate) struct Doorbells {
    page: Shared,
    /// The polled bytes.
    polled: usize,
}

impl Doorbells {
    /// An idle page for a function with one queue pair per vector, or up to 65 pairs. Error: from
    /// memfd_create or mmap.
    pub(crate) fn new(vectors: u16) -> Result<Self, Errno> {
        let polled = (usize::from(vectors.max(LEAST)) * PAIR).min(LENGTH as usize);
        let doorbells = Self { page: Shared::new("doorbells", OFFSET, LENGTH)?, polled };
        doorbells.clear();
        Ok(doorbells)
    }

    /// The file a client maps from `OFFSET` on.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.page.file.as_fd()
    }

    /// Drops stores not yet taken.
    pub(crate) fn clear(&self) {
        for at in (0..self.polled).step_by(4) {
            self.page.mapping.swap(at, IDLE);
        }
    }

    /// Takes all stores, in the order of offsets, and passes each to `each` as a write.
    pub(crate) fn poll(&self, mut each: impl FnMut(Action)) {
        for at in (0..self.polled).step_by(4) {
            // Load first: a swap would take the line from the client's cache every time.
            if self.page.mapping.load(at).is_none_or(|value| value == IDLE) {
                continue;
            }
            let Some(value) = self.page.mapping.swap(at, IDLE) else { continue };
            let data = Bytes::copy_from_slice(&value.to_le_bytes());
            each(Action::BarWrite { bar: BAR, offset: OFFSET + at as u64, data });
        }
    }
}
