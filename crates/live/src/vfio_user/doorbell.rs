//! Doorbells in a page shared with the client: plain stores there become
//! writes to the endpoint.
//!
//! The page is a part of a BAR that holds double words which are only written
//! (NVMe Base 1.4, sections 3.1.24 and 3.1.25: reading a doorbell is vendor
//! specific). The server looks at it again and again, takes what it finds and
//! leaves [`IDLE`] behind, so that every store counts, also one that repeats
//! the value before: a queue that was deleted and created again, or a driver
//! that restarts at the same index. Of several stores to one doorbell between
//! two looks the last one wins, as doorbells are meant: each value says how far
//! a queue has been filled.

use super::info::SharedRange;
use crate::mapping::Shared;
use bytes::Bytes;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

/// What an unrung doorbell holds. No queue has that many entries: they are at
/// most 65536.
pub const IDLE: u32 = u32::MAX;

/// The page; see the module.
#[derive(Debug)]
pub struct Doorbells {
    range: SharedRange,
    shared: Shared,
}

/// A doorbell that was rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Which BAR.
    pub bar: u8,
    /// Byte offset in the BAR.
    pub offset: u64,
    /// The double word.
    pub data: Bytes,
}

impl Doorbells {
    /// A page for `range`, which must lie on page boundaries.
    ///
    /// # Errors
    /// `EINVAL` for a range that is empty, not on page boundaries or above
    /// 1 MiB; otherwise what the memory says.
    pub fn new(range: SharedRange) -> Result<Self, Errno> {
        let pages = (range.offset | range.length).is_multiple_of(4096);
        let aligned = pages && range.polled.is_multiple_of(4);
        if !aligned || range.length == 0 || range.length > 1 << 20 || range.bar > 5 {
            return Err(Errno::INVAL);
        }
        if range.polled as u64 > range.length {
            return Err(Errno::INVAL);
        }
        let doorbells =
            Self { range, shared: Shared::new("doorbells", range.offset, range.length)? };
        doorbells.clear();
        Ok(doorbells)
    }

    /// Where the page lies.
    pub fn range(&self) -> &SharedRange {
        &self.range
    }

    /// The file a client maps at the range's offset.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// Forgets what was rung and not yet taken.
    pub fn clear(&self) {
        for at in (0..self.range.polled).step_by(4) {
            self.shared.mapping.swap(at, IDLE);
        }
    }

    /// Takes what was rung, in the order of offsets, and calls `each` with it.
    pub fn poll(&self, mut each: impl FnMut(Ring)) {
        for at in (0..self.range.polled).step_by(4) {
            // A look first: a swap would take the line from the client's
            // cache every time.
            if self.shared.mapping.load(at).is_none_or(|value| value == IDLE) {
                continue;
            }
            let Some(value) = self.shared.mapping.swap(at, IDLE) else { continue };
            each(Ring {
                bar: self.range.bar,
                offset: self.range.offset + at as u64,
                data: Bytes::copy_from_slice(&value.to_le_bytes()),
            });
        }
    }
}
