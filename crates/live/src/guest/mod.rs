//! Guest memory: the ranges that a VMM allows a device to access, and the copies in and out of
//! shared ones.

mod backing;
#[cfg(test)]
mod tests;
mod worker;

use crate::mapping::Mapping;
use backing::Backing;
use rustix::io::Errno;
use std::cell::Cell;

pub use backing::MAX_OPEN;
pub use worker::{ClientFile, Disposal, Ended, FilePosition, JobId, MAX_WORKERS, Worker, Workers};

/// Ranges one guest may map at once. The protocol's default is 65535; QEMU without a vIOMMU
/// needs about ten, SPDK at most 128.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Some bytes are in no range.
    Unmapped,
    /// A range does not allow this direction.
    Denied,
    /// Allowed, but not by a copy at once: see [`Method`].
    Deferred,
}

/// A range the device may access.
#[derive(Debug)]
struct Range {
    first: u64,
    last: u64,
    rights: Rights,
    /// `None` for ranges accessed by message.
    backing: Option<Backing>,
}

impl Range {
    /// The mapping and the offset in it of an address in this range.
    fn mapped_at(&self, address: u64) -> Result<(&Mapping, usize), Fault> {
        match &self.backing {
            Some(Backing::Mapped(mapping)) => Ok((mapping, (address - self.first) as usize)),
            _ => Err(Fault::Deferred),
        }
    }
}

/// How the bytes of a range are accessed.
#[derive(Clone, Debug)]
pub enum Method {
    /// By a copy: the range is mapped.
    Mapped,
    /// By a worker, at this position in a file.
    File(FilePosition),
    /// By message.
    Message,
}

/// The part of an access in one range.
#[derive(Clone, Debug)]
pub struct Part {
    /// Byte offset in the access.
    pub at: usize,
    /// DMA address.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// How it is accessed.
    pub method: Method,
}

impl Part {
    /// `length` bytes of it, from its byte `from` on.
    pub fn piece(&self, from: usize, length: usize) -> Self {
        let mut method = self.method.clone();
        if let Method::File(position) = &mut method {
            position.offset += from as u64;
        }
        Self { at: self.at + from, address: self.address + from as u64, length, method }
    }
}

/// The ranges of one guest, in address order.
#[derive(Debug, Default)]
pub struct Memory {
    ranges: Vec<Range>,
    /// The range of the last access: most accesses hit the same range again.
    hit: Cell<usize>,
}

impl Memory {
    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Allows the device to access `size` bytes from `address` on: with a file, its bytes from
    /// `offset` on; without one, by message. Error: `EINVAL` for no bytes or a range beyond 2^64,
    /// `EEXIST` for an overlap (specification, VFIO_USER_DMA_MAP), `ENOSPC` beyond [`MAX_RANGES`]
    /// or [`MAX_OPEN`], or what fcntl, fstat and mmap say of the descriptor.
    pub fn map(
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
        let backing = match file {
            None => None,
            // A range without rights needs no mapping.
            Some(_) if !rights.read && !rights.write => None,
            Some((file, offset)) => Some(Backing::new(file, offset, size, rights)?),
        };
        let open = |range: &&Range| matches!(range.backing, Some(Backing::File(_)));
        if matches!(backing, Some(Backing::File(_)))
            && self.ranges.iter().filter(open).count() >= MAX_OPEN
        {
            return Err(Errno::NOSPC);
        }
        self.ranges.insert(at, Range { first: address, last, rights, backing });
        Ok(())
    }

    /// Removes a range that was mapped with exactly this address and size. Dropping the returned
    /// value may take long. Error: `ENOENT` if there is none.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<impl Send + use<>, Errno> {
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
    pub fn clear(&mut self) -> impl Send + use<> {
        std::mem::take(&mut self.ranges)
    }

    /// The address of a range whose pages the client took away, if there is one: its bytes are
    /// lost.
    pub fn lost(&self) -> Option<u64> {
        let dead =
            |range: &&Range| matches!(&range.backing, Some(Backing::Mapped(m)) if m.is_dead());
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
            let method = match &range.backing {
                Some(Backing::Mapped(_)) => Method::Mapped,
                Some(Backing::File(FilePosition { file, offset })) => Method::File(FilePosition {
                    file: file.clone(),
                    offset: offset + (here - range.first),
                }),
                None => Method::Message,
            };
            each(range, Part { at, address: here, length, method })?;
            at += length;
        }
        Ok(())
    }

    /// The pieces of an access, in order. Error: [`Fault::Unmapped`] and [`Fault::Denied`].
    pub fn parts(&self, address: u64, length: usize, write: bool) -> Result<Vec<Part>, Fault> {
        let mut all = Vec::new();
        self.walk(address, length, write, |_, part| {
            all.push(part);
            Ok(())
        })?;
        Ok(all)
    }

    /// Copies guest memory out. Allocates nothing.
    /// Error: see [`Fault`]; `into` may be partly filled then.
    pub fn read_into(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.walk(address, into.len(), false, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.read(offset, &mut into[part.at..][..part.length]).ok_or(Fault::Unmapped)
        })
    }

    /// Copies bytes into guest memory. Allocates nothing; either all bytes arrive or none. Error:
    /// see [`Fault`].
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let whole = self.find(address).map(|at| &self.ranges[at]);
        let in_one = whole.is_some_and(|range| range.last - address >= bytes.len() as u64);
        if !in_one {
            self.walk(address, bytes.len(), true, |range, part| {
                range.mapped_at(part.address).map(|_| ())
            })?;
        }
        self.walk(address, bytes.len(), true, |range, part| {
            let (mapping, offset) = range.mapped_at(part.address)?;
            mapping.write(offset, &bytes[part.at..][..part.length]).ok_or(Fault::Unmapped)
        })
    }
}
