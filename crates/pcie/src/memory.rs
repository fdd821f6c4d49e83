//! Host memory as plain bytes, for the built-in initiator and the tests.

/// A range of host memory at a bus address.
#[derive(Debug)]
pub struct Ram {
    base: u64,
    size: usize,
    /// The bytes up to the last one that was used: memory that nobody uses costs nothing.
    bytes: Vec<u8>,
    next: usize,
}

impl Ram {
    /// `size` bytes of zeroes from the bus address `base`.
    pub fn new(base: u64, size: usize) -> Self {
        Self { base, size, bytes: Vec::with_capacity(size), next: 0 }
    }

    /// Allocates `length` bytes aligned to `align` (a power of two). Returns their bus address, or
    /// `None` if the memory is exhausted. There is no way to free them.
    pub fn allocate(&mut self, length: usize, align: usize) -> Option<u64> {
        let start = self.next.checked_next_multiple_of(align)?;
        let end = start.checked_add(length)?;
        if end > self.size {
            return None;
        }
        self.next = end;
        Some(self.base + start as u64)
    }

    /// The bytes at `address`; `None` if any lies outside.
    pub fn get(&mut self, address: u64, length: usize) -> Option<&[u8]> {
        self.get_mut(address, length).map(|bytes| &*bytes)
    }

    /// The bytes at `address`, mutable.
    pub fn get_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let end = start.checked_add(length).filter(|end| *end <= self.size)?;
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes.get_mut(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nobody_wrote_is_zero_up_to_its_end() {
        let mut ram = Ram::new(0x1000, 0x3000);
        assert_eq!(ram.allocate(8, 0x1000), Some(0x1000));
        assert_eq!(ram.allocate(0x2000, 0x1000), Some(0x2000));
        assert_eq!(ram.allocate(1, 1), None, "it is full");
        ram.get_mut(0x2ffc, 4).unwrap().fill(0xaa);
        assert_eq!(ram.get(0x2ff8, 12), Some(&[0, 0, 0, 0, 170, 170, 170, 170, 0, 0, 0, 0][..]));
        assert_eq!(ram.get(0x3000, 0x1000), Some(&[0; 0x1000][..]));
        for outside in [(0xfff, 1), (0x3fff, 2), (0x4000, 1), (u64::MAX, 2), (0x1000, usize::MAX)] {
            assert_eq!(ram.get(outside.0, outside.1), None, "{outside:?}");
            assert!(ram.get_mut(outside.0, outside.1).is_none(), "{outside:?}");
        }
    }
}
