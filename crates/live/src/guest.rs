//! Guest memory: the ranges a VMM allows a device to reach, and the copies in
//! and out of those it shares.

use crate::mapping::Mapping;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::cell::Cell;

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
    mapping: Option<Mapping>,
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
    /// (specification, VFIO_USER_DMA_MAP), `ENOSPC` beyond [`MAX_RANGES`], or
    /// what [`Mapping::new`] says.
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
        let mapping = match file {
            None => None,
            // A mapping nobody may touch is none.
            Some(_) if !rights.read && !rights.write => None,
            Some((fd, offset)) => Some(Mapping::new(fd, offset, size, rights.read, rights.write)?),
        };
        self.ranges.insert(at, Range { first: address, last, rights, mapping });
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
            let shared = range.mapping.is_some();
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
            let mapping = range.mapping.as_ref().ok_or(Fault::ByMessage)?;
            let offset = (segment.address - range.first) as usize;
            let part = &mut into[segment.at..segment.at + segment.length];
            mapping.read(offset, part).ok_or(Fault::Unmapped)
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
                if range.mapping.is_some() { Ok(()) } else { Err(Fault::ByMessage) }
            })?;
        }
        self.walk(address, bytes.len(), true, |range, segment| {
            let mapping = range.mapping.as_ref().ok_or(Fault::ByMessage)?;
            let offset = (segment.address - range.first) as usize;
            let part = &bytes[segment.at..segment.at + segment.length];
            mapping.write(offset, part).ok_or(Fault::Unmapped)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Shared;
    use rustix::fd::AsFd;

    const BOTH: Rights = Rights { read: true, write: true };

    #[test]
    fn reads_and_writes_go_through_ranges() {
        let ram = Shared::new("ram", 0, 0x4000).unwrap();
        let mut memory = Memory::new();
        let fd = ram.file.as_fd();
        // Two ranges side by side, the second from the front of the file.
        memory.map(0x1000, 0x1000, BOTH, Some((fd, 0x2000))).unwrap();
        memory.map(0x2000, 0x1000, BOTH, Some((fd, 0))).unwrap();
        memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 4];
        memory.read_into(0x1ffe, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        let mut there = [0; 2];
        ram.mapping.read(0x2ffe, &mut there).unwrap();
        assert_eq!(there, [1, 2]);
        ram.mapping.read(0, &mut there).unwrap();
        assert_eq!(there, [3, 4]);
        assert_eq!(memory.read_into(0x2ffe, &mut back), Err(Fault::Unmapped));
        assert_eq!(memory.write(0xfff, &[0]), Err(Fault::Unmapped));
        assert_eq!(memory.read_into(u64::MAX, &mut back), Err(Fault::Unmapped));
        assert_eq!(memory.segments(0x1ff0, 32, true).unwrap().len(), 2);
    }

    #[test]
    fn a_write_that_ends_in_a_hole_leaves_no_trace() {
        let ram = Shared::new("ram", 0, 0x1000).unwrap();
        let mut memory = Memory::new();
        memory.map(0, 0x1000, BOTH, Some((ram.file.as_fd(), 0))).unwrap();
        assert_eq!(memory.write(0xffe, &[9; 4]), Err(Fault::Unmapped));
        assert_eq!(ram.mapping.load(0xffc), Some(0));
    }

    #[test]
    fn rights_are_honoured() {
        let ram = Shared::new("ram", 0, 0x3000).unwrap();
        let fd = ram.file.as_fd();
        let mut memory = Memory::new();
        memory.map(0, 0x1000, Rights { read: true, write: false }, Some((fd, 0))).unwrap();
        memory.map(0x1000, 0x1000, Rights { read: false, write: true }, Some((fd, 0))).unwrap();
        memory.map(0x2000, 0x1000, Rights { read: false, write: false }, Some((fd, 0))).unwrap();
        memory.map(0x3000, 0x1000, BOTH, None).unwrap();
        assert_eq!(memory.write(0, &[0; 4]), Err(Fault::Denied));
        assert_eq!(memory.read_into(0x1000, &mut [0; 4]), Err(Fault::Denied));
        assert_eq!(memory.write(0x1000, &[0; 4]), Ok(()));
        assert_eq!(memory.write(0x2000, &[0; 4]), Err(Fault::Denied));
        assert_eq!(memory.write(0x3000, &[0; 4]), Err(Fault::ByMessage));
        assert_eq!(memory.read_into(0xffc, &mut [0; 8]), Err(Fault::Denied));
    }

    #[test]
    fn overlaps_and_impossible_ranges_are_refused() {
        let mut memory = Memory::new();
        let mut map = |address, size| memory.map(address, size, BOTH, None);
        assert_eq!(map(0x1000, 0x1000), Ok(()));
        assert_eq!(map(0x1fff, 1), Err(Errno::EXIST));
        assert_eq!(map(0, 0x1001), Err(Errno::EXIST));
        assert_eq!(map(0, u64::MAX), Err(Errno::EXIST));
        assert_eq!(map(0, 0x1000), Ok(()));
        assert_eq!(map(5, 0), Err(Errno::INVAL));
        assert_eq!(map(u64::MAX, 2), Err(Errno::INVAL));
        assert_eq!(map(u64::MAX, 1), Ok(()));
        assert_eq!(memory.unmap(0x1000, 0x800), Err(Errno::NOENT));
        assert_eq!(memory.unmap(0x1800, 0x800), Err(Errno::NOENT));
        assert_eq!(memory.unmap(0x1000, 0x1000), Ok(()));
        assert_eq!(memory.segments(u64::MAX, 1, false).unwrap().len(), 1);
        assert_eq!(memory.segments(u64::MAX, 2, false), Err(Fault::Unmapped));
        for page in 2..=MAX_RANGES as u64 + 1 {
            let wanted = if memory.ranges() < MAX_RANGES { Ok(()) } else { Err(Errno::NOSPC) };
            assert_eq!(memory.map(page * 0x1000, 0x1000, BOTH, None), wanted);
        }
        memory.clear();
        assert_eq!(memory.segments(0, 1, false), Err(Fault::Unmapped));
    }
}
