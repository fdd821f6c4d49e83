//! Guest memory: the ranges that a VMM allows a device to access, and copies from and to shared
//! ranges.

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

/// The maximum number of mapped ranges of one guest. The default of the protocol is 65535; QEMU
/// without a vIOMMU needs about 10, SPDK at most 128.
pub(crate) const MAX_RANGES: usize = 4096;

/// The access rights of a device to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Whether the device may read the range.
    pub read: bool,
    /// Whether the device may write the range.
    pub write: bool,
}

/// Why an access is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Some bytes are in no range, or the client removed the memory.
    Unmapped,
    /// A range does not allow this direction (read or write).
    Denied,
    /// The access is allowed, but some bytes are accessed by message.
    ByMessage,
}

/// A range of guest memory, from address `first` to address `last` inclusive.
#[derive(Debug)]
struct Range {
    first: u64,
    last: u64,
    rights: Rights,
    /// The mapping; `None` if the range is accessed by message.
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
    /// Byte offset in the whole access.
    pub at: usize,
    /// DMA address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub length: usize,
    /// Whether the part is copied directly. Otherwise it is accessed by message.
    pub mapped: bool,
}

/// The ranges of one guest, in address order.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    ranges: Vec<Range>,
    /// Index of the range of the last access, because most accesses are in the same range as the
    /// previous one.
    hit: Cell<usize>,
}

impl Memory {
    /// Number of ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Allows the device to access `size` bytes from `address` on. `file` is a file and a byte
    /// offset. If the file is memory, the range is the bytes of the file from the offset on.
    /// Otherwise the accesses use messages, because a page fault on a file of FUSE or NFS blocks
    /// until the file system's server answers. Error: `EINVAL` for a size of 0 or a range beyond
    /// 2^64, `EEXIST` for an overlap (vfio-user specification, VFIO_USER_DMA_MAP), `ENOSPC` if
    /// `MAX_RANGES` ranges exist, or the error of [`Mapping::new`].
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

    /// Removes the range that was mapped with exactly this address and size in bytes. Dropping the
    /// returned value can take a long time. Error: `ENOENT` if there is no such range.
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

    /// Removes all ranges. Dropping the returned value can take a long time.
    pub(crate) fn clear(&mut self) -> impl Send + use<> {
        std::mem::take(&mut self.ranges)
    }

    /// The first address of a range whose pages the client removed; `None` if no range lost pages.
    pub(crate) fn lost(&self) -> Option<u64> {
        let dead = |range: &&Range| range.mapping.as_ref().is_some_and(Mapping::is_dead);
        self.ranges.iter().find(dead).map(|range| range.first)
    }

    /// The index of the range that contains `address`; `None` if no range does.
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

    /// Calls `each` with each part of an access and the range of the part, in order.
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

    /// The parts of an access, in order. Error: `Fault::Unmapped` or `Fault::Denied`.
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

    /// Copies guest memory to `into`, without allocating memory. Error: see `Fault`; `into` can
    /// then be partly filled.
    pub(crate) fn read_into(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.walk(address, into.len(), false, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.read(offset, &mut into[part.at..][..part.length]).ok_or(Fault::Unmapped)
        })
    }

    /// Appends guest memory to `out`. Error: see `Fault`; nothing is then appended.
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

    /// Copies bytes to guest memory, without allocating memory. Error: see `Fault`; no byte is then
    /// written, unless the client removed memory during the copy.
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
