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
    /// The DMA address of the first byte.
    pub base: u64,
    /// Size in bytes, a multiple of the page size.
    pub size: u64,
}

impl HostMemory {
    /// Creates at least `size` bytes of zeroes at the DMA address `base`, which is a multiple of
    /// the page size.
    ///
    /// # Errors
    /// The errors of memfd_create, ftruncate, fcntl and mmap.
    pub fn new(base: u64, size: usize) -> Result<Rc<Self>, Errno> {
        let size = size.next_multiple_of(PAGE) as u64;
        Ok(Rc::new(Self { shared: Shared::new("host memory", 0, size)?, base, size }))
    }

    /// The same memory, as host software accesses it.
    pub fn ram(self: &Rc<Self>) -> Ram {
        Ram::shared(self.base, self.size as usize, self.clone())
    }

    /// The memory's file, which the server maps.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared.file.as_fd()
    }

    /// The byte offset of a DMA address in the memory; `None` if the address is lower than `base`.
    fn at(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.base)?).ok()
    }

    /// The bytes that the device reads with a message; `None` if not all bytes are in the memory.
    pub fn dma_read(&self, address: u64, length: usize) -> Option<Bytes> {
        let mut bytes = vec![0; length];
        self.read(self.at(address)?, &mut bytes)?;
        Some(bytes.into())
    }

    /// Writes the bytes that the device sends in a message; `None` if not all bytes are in the
    /// memory.
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
