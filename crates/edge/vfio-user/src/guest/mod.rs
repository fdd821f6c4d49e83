//! Guest memory: the ranges that a VMM allows a device to access, and the copies in and out of
//! shared ones.

#[cfg(test)]
mod tests;
mod worker;

use crate::mapping::Mapping;
use bytes::BytesMut;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::cell::Cell;

pub use worker::ClientFile;
pub(crate) use worker::{Disposal, MAX_WORKERS, Worker, Workers};

/// The most ranges that one guest may map at once. The protocol's default is 65535; QEMU without a
/// vIOMMU needs about ten, SPDK at most 128.
pub(crate) const MAX_RANGES: usize = 4096;

/// The access rights of a device to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Whether the device may read.
    pub read: bool,
    /// Whether the device may write.
    pub write: bool,
}

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Some bytes are in no range.
    Unmapped,
    /// A range does not allow this direction.
    Denied,
    /// The access is allowed, but some bytes need a message.
    ByMessage,
}

/// A range the device may access.
#[derive(Debug)]
struct Range {
    first: u64,
    last: u64,
    rights: Rights,
    /// The mapping; `None` for ranges accessed by message.
    mapping: Option<Mapping>,
}

impl Range {
    /// The mapping of this range, and the offset of `address` in the mapping.
    fn mapped_at(&self, address: u64) -> Result<(&Mapping, usize), Fault> {
        let mapping = self.mapping.as_ref().ok_or(Fault::ByMessage)?;
        Ok((mapping, (address - self.first) as usize))
    }
}

/// The part of an access in one range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Byte offset in the access.
    pub at: usize,
    /// DMA address.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// Whether the part is accessed by a copy instead of a message.
    pub mapped: bool,
}

/// The ranges of one guest, in address order.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    ranges: Vec<Range>,
    /// The range of the last access: most accesses hit the same range again.
    hit: Cell<usize>,
}

impl Memory {
    /// Number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Allows the device to access `size` bytes from `address` on: If `file` is memory, the device
    /// accesses its bytes from `offset` on. Otherwise the accesses use messages, because a page
    /// fault on a file of FUSE or NFS sleeps until its server answers. Error: `EINVAL` for no bytes
    /// or a range beyond 2^64, `EEXIST` for an overlap (specification, VFIO_USER_DMA_MAP), `ENOSPC`
    /// beyond `MAX_RANGES`, or the error of fstat and mmap.
    pub(crate) fn map(
        &mut self,
        address: u64,
        size: u64,
        rights: Rights,
        file: Option<(ClientFile, u64)>,
    ) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|n| address.checked_add(n)).ok_or(Errno::INVAL)?;
        let at = self.ranges.partition_point(|range| range.last < address);
        if self.ranges.get(at).is_some_and(|next| next.first <= last) {
            return Err(Errno::EXIST);
        }
        if self.ranges.len() >= MAX_RANGES {
            return Err(Errno::NOSPC);
        }
        let Rights { read, write } = rights;
        // A range without rights needs no mapping.
        let memory = file.filter(|(file, _)| (read || write) && file.is_memory());
        let map = |(file, offset): (ClientFile, u64)| {
            Mapping::new(file.as_fd(), offset, size, read, write)
        };
        let mapping = memory.map(map).transpose()?;
        self.ranges.insert(at, Range { first: address, last, rights, mapping });
        Ok(())
    }

    /// Removes a range that was mapped with exactly this address and size. Dropping the returned
    /// value may take long. Error: `ENOENT` if there is none.
    pub(crate) fn unmap(&mut self, address: u64, size: u64) -> Result<impl Send + use<>, Errno> {
        let last = size.checked_sub(1).and_then(|n| address.checked_add(n)).ok_or(Errno::NOENT)?;
        let at = self
            .ranges
            .binary_search_by_key(&address, |range| range.first)
            .map_err(|_| Errno::NOENT)?;
        if self.ranges[at].last != last {
            return Err(Errno::NOENT);
        }
        Ok(self.ranges.remove(at))
    }

    /// Removes every range. Dropping the returned value may take long.
    pub(crate) fn clear(&mut self) -> impl Send + use<> {
        std::mem::take(&mut self.ranges)
    }

    /// The address of a range whose pages the client removed, if any: its bytes are lost.
    pub(crate) fn lost(&self) -> Option<u64> {
        let dead = |range: &&Range| range.mapping.as_ref().is_some_and(Mapping::is_dead);
        self.ranges.iter().find(dead).map(|range| range.first)
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
        mut each: impl FnMut(&Range, Part) -> Result<(), Fault>,
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
            let mapped = range.mapping.is_some();
            each(range, Part { at, address: here, length, mapped })?;
            at += length;
        }
        Ok(())
    }

    /// The pieces of an access, in order. Error: `Fault::Unmapped` and `Fault::Denied`.
    pub(crate) fn parts(
        &self,
        address: u64,
        length: usize,
        write: bool,
    ) -> Result<Vec<Part>, Fault> {
        let mut all = Vec::new();
        self.walk(address, length, write, |_, part| {
            all.push(part);
            Ok(())
        })?;
        Ok(all)
    }

    /// Copies guest memory out. Allocates nothing.
    /// Error: see `Fault`; `into` may be partly filled then.
    pub(crate) fn read_into(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.walk(address, into.len(), false, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.read(offset, &mut into[part.at..][..part.length]).ok_or(Fault::Unmapped)
        })
    }

    /// Appends guest memory to `out`, or nothing. Error: see `Fault`.
    pub(crate) fn append(
        &self,
        address: u64,
        length: usize,
        out: &mut BytesMut,
    ) -> Result<(), Fault> {
        let before = out.len();
        let read = self.walk(address, length, false, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.append(offset, part.length, out).ok_or(Fault::Unmapped)
        });
        read.inspect_err(|_| out.truncate(before))
    }

    /// Copies bytes into guest memory. Allocates nothing; either all bytes arrive or none. Error:
    /// see `Fault`.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let whole = self.find(address).map(|at| &self.ranges[at]);
        let in_one = whole.filter(|range| range.last - address >= bytes.len() as u64);
        if let Some(range) = in_one.filter(|range| range.rights.write) {
            let (mapping, offset) = range.mapped_at(address)?;
            return mapping.write(offset, bytes).ok_or(Fault::Unmapped);
        }
        self.walk(address, bytes.len(), true, |range, part| {
            range.mapped_at(part.address).map(|_| ())
        })?;
        self.walk(address, bytes.len(), true, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.write(offset, &bytes[part.at..][..part.length]).ok_or(Fault::Unmapped)
        })
    }
}
