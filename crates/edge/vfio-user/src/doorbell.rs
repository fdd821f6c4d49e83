//! Doorbells in a page that is shared with the client. Stores of the client to the page become
//! writes to the endpoint.
//!
//! The page is a part of a BAR with write-only double words (NVMe Base 1.4, sections 3.1.24 and
//! 3.1.25: the result of reading a doorbell is vendor specific). The server polls the page: it
//! takes each value and stores `IDLE` in its place. Thus every store is noticed, even if it repeats
//! the previous value, for example after a queue was deleted and created again. If there are
//! several stores to one doorbell between two polls, only the last value becomes a write; this is
//! enough, because the value is the new tail or head of a queue.

use super::action::Action;
use crate::mapping::Shared;
use bytes::Bytes;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

/// The value of a doorbell without a new store. No queue index has this value, because queues have
/// at most 65536 entries.
pub(crate) const IDLE: u32 = u32::MAX;

/// The BAR that contains the page.
pub(crate) const BAR: u8 = 0;
/// Byte offset of the page in the BAR: the offset of the NVMe doorbells (NVMe Base 1.4, section
/// 3.1).
pub(crate) const OFFSET: u64 = 0x1000;
/// Length of the page in bytes: the doorbells of 512 queue pairs.
pub(crate) const LENGTH: u64 = 0x1000;
/// Size in bytes of the two doorbells of a queue pair.
const PAIR: usize = 8;
/// The minimum number of queue pairs whose doorbells are polled. It can be higher than the number
/// of vectors, because queue pairs can share a vector.
const LEAST: u16 = 65;

/// The shared page of doorbells. For doorbells after the page a client sends messages.
#[derive(Debug)]
pub(crate) struct Doorbells {
    page: Shared,
    /// Number of polled bytes, from the start of the page.
    polled: usize,
}

impl Doorbells {
    /// Creates a page without stores. The doorbells of `vectors` queue pairs are polled, at least
    /// of 65 pairs and at most of 512. Error: as [`Shared::new`].
    pub(crate) fn new(vectors: u16) -> Result<Self, Errno> {
        let polled = (usize::from(vectors.max(LEAST)) * PAIR).min(LENGTH as usize);
        let doorbells = Self { page: Shared::new("doorbells", OFFSET, LENGTH)?, polled };
        doorbells.clear();
        Ok(doorbells)
    }

    /// The file that a client maps from byte `OFFSET` on.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.page.file.as_fd()
    }

    /// Drops all stores that have not been taken.
    pub(crate) fn clear(&self) {
        for at in (0..self.polled).step_by(4) {
            self.page.mapping.swap(at, IDLE);
        }
    }

    /// Takes all stores and passes each of them to `each` as an [`Action::BarWrite`], in the order
    /// of the offsets.
    pub(crate) fn poll(&self, mut each: impl FnMut(Action)) {
        for at in (0..self.polled).step_by(4) {
            // The value is loaded first, because a swap would remove the line from the client's
            // cache every time.
            if self.page.mapping.load(at).is_none_or(|value| value == IDLE) {
                continue;
            }
            let Some(value) = self.page.mapping.swap(at, IDLE) else { continue };
            let data = Bytes::copy_from_slice(&value.to_le_bytes());
            each(Action::BarWrite { bar: BAR, offset: OFFSET + at as u64, data });
        }
    }
}
