//! Host memory that the server maps: a memfd of fixed size.

use crate::mapping::{PAGE, Shared};
use bytes::Bytes;
use pcie::{Backing, Ram};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::rc::Rc;

/// Host memory, shared with a server.
#[derive(Debug)]
pub struct HostMemory {
    shared: Shared,
    /// The first DMA address of the memory.
    pub base: u64,
    /// Bytes: whole pages.
    pub size: u64,
}

impl HostMemory {
    /// At least `size` bytes of zeroes from the DMA address `base`, a multiple of the page size.
    ///
    /// # Errors
    /// As memfd_create, ftruncate and mmap.
    pub fn new(base: u64, size: usize) -> Result<Rc<Self>, Errno> {
        let size = size.next_multiple_of(PAGE) as u64;
        Ok(Rc::new(Self { shared: Shared::new("host memory", 0, size)?, base, size }))
    }

    /// The same memory for host software.
    pub fn ram(self: &Rc<Self>) -> Ram {
        Ram::shared(self.base, self.size as usize, self.clone())
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// The offset of a DMA address.
    fn at(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.base)?).ok()
    }

    /// Bytes that the device reads by message; `None` if any lies outside.
    pub fn dma_read(&self, address: u64, length: usize) -> Option<Bytes> {
        let mut bytes = vec![0; length];
        self.read(self.at(address)?, &mut bytes)?;
        Some(bytes.into())
    }

    /// Writes bytes that the device sends by message; `None` if any lies outside.
    pub fn dma_write(&self, address: u64, data: &[u8]) -> Option<()> {
        self.write(self.at(address)?, data)
    }
}

impl Backing for HostMemory {
    fn read(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        if let ([_, _, _, _], 0) = (&*into, offset % 4) {
            into.copy_from_slice(&self.shared.mapping.load(offset)?.to_ne_bytes());
            return Some(());
        }
        self.shared.mapping.read(offset, into)
    }

    fn write(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        self.shared.mapping.write(offset, bytes)
    }
}
