//! Guest memory: the ranges a VMM allows a device to reach, and the copies in
//! and out of those it shares.

#[cfg(test)]
mod tests;
mod window;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::cell::Cell;
use window::Window;

pub use window::MAX_COPIED;

/// Ranges one guest may map at once. The protocol's default is 65535; QEMU
/// without a vIOMMU needs some ten, SPDK at most 128.
pub const MAX_RANGES: usize = 4096;

/// What a device may do with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The device may read.
    pub read: bool,
    /// The device may write.
    pub write: bool,
}

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Some of the bytes are in no range.
    #[error("address is not mapped for the device")]
    Unmapped,
    /// A range does not allow this direction.
    #[error("the range does not allow this direction")]
    Denied,
    /// Allowed, but a range is not shared: its bytes come and go by message.
    #[error("the range is reached by message only")]
    ByMessage,
}

/// A range the device may reach.
#[derive(Debug)]
struct Range {
    first: u64,
    last: u64,
    rights: Rights,
    /// `None` for ranges reached by message.
    window: Option<Window>,
}

/// A piece of an access that lies in one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Byte offset in the access.
    pub at: usize,
    /// DMA address.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// The range is shared, so the bytes can be copied at once.
    pub shared: bool,
}

/// The ranges of one guest, in address order.
#[derive(Debug, Default)]
pub struct Memory {
    ranges: Vec<Range>,
    /// Where the last access hit: most accesses hit the same range again.
    hit: Cell<usize>,
}

impl Memory {
    /// No ranges.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Allows the device to reach `size` bytes from `address` on; with a file
    /// descriptor they are those at its byte `offset` on, without they are
    /// reached by message.
    ///
    /// # Errors
    /// `EINVAL` for no bytes or a range beyond 2^64, `EEXIST` for an overlap
    /// (specification, VFIO_USER_DMA_MAP), `ENOSPC` beyond [`MAX_RANGES`] or
    /// [`MAX_COPIED`], or what fstat and mmap say of the descriptor.
    pub fn map(
        &mut self,
        address: u64,
        size: u64,
        rights: Rights,
        file: Option<(BorrowedFd<'_>, u64)>,
    ) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|n| address.checked_add(n)).ok_or(Errno::INVAL)?;
        let at = self.ranges.partition_point(|range| range.last < address);
        if self.ranges.get(at).is_some_and(|next| next.first <= last) {
            return Err(Errno::EXIST);
        }
        if self.ranges.len() >= MAX_RANGES {
            return Err(Errno::NOSPC);
        }
        let window = match file {
            None => None,
            // A mapping nobody may touch is none.
            Some(_) if !rights.read && !rights.write => None,
            Some((fd, offset)) => Some(Window::new(fd, offset, size, rights)?),
        };
        let copied = |range: &&Range| matches!(range.window, Some(Window::Copied { .. }));
        if matches!(window, Some(Window::Copied { .. }))
            && self.ranges.iter().filter(copied).count() >= MAX_COPIED
        {
            return Err(Errno::NOSPC);
        }
        self.ranges.insert(at, Range { first: address, last, rights, window });
        Ok(())
    }

    /// Takes a range back that was mapped with exactly this address and size.
    ///
    /// # Errors
    /// `ENOENT` if there is none.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|n| address.checked_add(n)).ok_or(Errno::NOENT)?;
        let at = self
            .ranges
            .binary_search_by_key(&address, |range| range.first)
            .map_err(|_| Errno::NOENT)?;
        if self.ranges[at].last != last {
            return Err(Errno::NOENT);
        }
        self.ranges.remove(at);
        Ok(())
    }

    /// Takes every range back.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The index of the range with `address` in it.
    fn find(&self, address: u64) -> Option<usize> {
        let holds = |range: &Range| range.first <= address && address <= range.last;
        let hit = self.hit.get();
        if self.ranges.get(hit).is_some_and(holds) {
            return Some(hit);
        }
        let at = self.ranges.partition_point(|range| range.last < address);
        if !holds(self.ranges.get(at)?) {
            return None;
        }
        self.hit.set(at);
        Some(at)
    }

    /// Calls `each` with the pieces of an access, in order.
    fn walk(
        &self,
        address: u64,
        length: usize,
        write: bool,
        mut each: impl FnMut(&Range, Segment) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut at = 0;
        while at < length {
            let here = address.checked_add(at as u64).ok_or(Fault::Unmapped)?;
            let range = &self.ranges[self.find(here).ok_or(Fault::Unmapped)?];
            if !(if write { range.rights.write } else { range.rights.read }) {
                return Err(Fault::Denied);
            }
            let room = range.last - here;
            let length = (length - at - 1).min(usize::try_from(room).unwrap_or(usize::MAX)) + 1;
            let shared = range.window.is_some();
            each(range, Segment { at, address: here, length, shared })?;
            at += length;
        }
        Ok(())
    }

    /// The pieces of an access, in order.
    ///
    /// # Errors
    /// [`Fault::Unmapped`] and [`Fault::Denied`].
    pub fn segments(
        &self,
        address: u64,
        length: usize,
        write: bool,
    ) -> Result<Vec<Segment>, Fault> {
        let mut all = Vec::new();
        self.walk(address, length, write, |_, segment| {
            all.push(segment);
            Ok(())
        })?;
        Ok(all)
    }

    /// Copies guest memory out. Allocates nothing.
    ///
    /// # Errors
    /// See [`Fault`]; `into` may be partly filled then.
    pub fn read_into(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.walk(address, into.len(), false, |range, segment| {
            let window = range.window.as_ref().ok_or(Fault::ByMessage)?;
            let offset = segment.address - range.first;
            let part = &mut into[segment.at..segment.at + segment.length];
            window.read(offset, part).ok_or(Fault::Unmapped)
        })
    }

    /// Copies bytes into guest memory. Allocates nothing; either all bytes
    /// arrive or none.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let whole = self.find(address).map(|at| &self.ranges[at]);
        let in_one = whole.is_some_and(|range| range.last - address >= bytes.len() as u64);
        if !in_one {
            self.walk(address, bytes.len(), true, |range, _| {
                if range.window.is_some() { Ok(()) } else { Err(Fault::ByMessage) }
            })?;
        }
        self.walk(address, bytes.len(), true, |range, segment| {
            let window = range.window.as_ref().ok_or(Fault::ByMessage)?;
            let offset = segment.address - range.first;
            let part = &bytes[segment.at..segment.at + segment.length];
            window.write(offset, part).ok_or(Fault::Unmapped)
        })
    }
}
