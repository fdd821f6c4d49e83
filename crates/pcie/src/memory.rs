//! Host memory as plain bytes, for the built-in initiator and the tests.

/// A range of host memory at a bus address.
#[derive(Debug)]
pub struct Ram {
    base: u64,
    bytes: Vec<u8>,
    next: usize,
}

impl Ram {
    /// `length` bytes of zeroes from the bus address `base`.
    pub fn new(base: u64, length: usize) -> Self {
        Self { base, bytes: vec![0; length], next: 0 }
    }

    /// Allocates `length` bytes aligned to `align` (a power of two). Returns their bus address, or
    /// `None` if the memory is exhausted. There is no way to free them.
    pub fn allocate(&mut self, length: usize, align: usize) -> Option<u64> {
        let start = self.next.checked_next_multiple_of(align)?;
        let end = start.checked_add(length)?;
        if end > self.bytes.len() {
            return None;
        }
        self.next = end;
        Some(self.base + start as u64)
    }

    /// The bytes at `address`; `None` if any lies outside.
    pub fn get(&self, address: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// The bytes at `address`, mutable.
    pub fn get_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }
}
