//! Host memory for the built-in initiator and the tests: private bytes, or memory shared with
//! another process.

use std::fmt::Debug;
use std::rc::Rc;

/// Memory that a device accesses directly. Its bytes may change at any time, so they are copied.
pub trait Backing: Debug {
    /// Copies bytes from `offset` into `into`; `None` if a byte lies outside. An aligned double
    /// word is read with acquire order: later reads return everything that the device wrote before
    /// this double word.
    fn read(&self, offset: usize, into: &mut [u8]) -> Option<()>;

    /// Copies `bytes` to `offset`; `None` if a byte lies outside. A reader that sees the last byte
    /// also sees all earlier writes.
    fn write(&self, offset: usize, bytes: &[u8]) -> Option<()>;
}

/// A range of host memory at a bus address.
#[derive(Debug)]
pub struct Ram {
    base: u64,
    size: usize,
    contents: Contents,
    next: usize,
}

#[derive(Debug)]
enum Contents {
    /// The bytes up to the last used byte, so that unused memory costs nothing.
    Own(Vec<u8>),
    Shared(Rc<dyn Backing>),
}

impl Ram {
    /// `size` bytes of zeroes from the bus address `base`.
    pub fn new(base: u64, size: usize) -> Self {
        Self { base, size, contents: Contents::Own(Vec::with_capacity(size)), next: 0 }
    }

    /// The first `size` bytes of `backing`, from the bus address `base`.
    pub fn shared(base: u64, size: usize, backing: Rc<dyn Backing>) -> Self {
        Self { base, size, contents: Contents::Shared(backing), next: 0 }
    }

    /// Allocates `length` bytes aligned to `align` (a power of two). Returns their bus address, or
    /// `None` if the memory is exhausted. The bytes cannot be freed.
    pub fn allocate(&mut self, length: usize, align: usize) -> Option<u64> {
        let start = self.next.checked_next_multiple_of(align)?;
        let end = start.checked_add(length)?;
        if end > self.size {
            return None;
        }
        self.next = end;
        Some(self.base + start as u64)
    }

    /// The bytes at `address`; `None` if a byte lies outside, or if the memory is shared.
    pub fn get(&mut self, address: u64, length: usize) -> Option<&[u8]> {
        self.get_mut(address, length).map(|bytes| &*bytes)
    }

    /// The bytes at `address`, mutable; `None` in the same cases as [`get`](Self::get).
    pub fn get_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = self.offset(address, length)?;
        let Contents::Own(bytes) = &mut self.contents else { return None };
        let end = start + length;
        if end > bytes.len() {
            bytes.resize(end, 0);
        }
        bytes.get_mut(start..end)
    }

    /// Copies the bytes at the bus address `address` into `into`; `None` if a byte lies outside.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> Option<()> {
        if let Contents::Shared(backing) = &self.contents {
            return backing.read(self.offset(address, into.len())?, into);
        }
        into.copy_from_slice(self.get(address, into.len())?);
        Some(())
    }

    /// Copies `bytes` to the bus address `address`; `None` if a byte lies outside.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        if let Contents::Shared(backing) = &self.contents {
            return backing.write(self.offset(address, bytes.len())?, bytes);
        }
        self.get_mut(address, bytes.len())?.copy_from_slice(bytes);
        Some(())
    }

    /// Passes the bytes of a range to a closure, as a copy if the memory is shared; `None` if a
    /// byte lies outside.
    pub fn show<T>(
        &mut self,
        address: u64,
        length: usize,
        inspect: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        if matches!(self.contents, Contents::Own(_)) {
            return self.get(address, length).map(inspect);
        }
        let mut copy = vec![0; length];
        self.read(address, &mut copy)?;
        Some(inspect(&copy))
    }

    /// Lets `fill` write every byte of a range; `None` if a byte lies outside.
    pub fn fill(
        &mut self,
        address: u64,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<()> {
        if matches!(self.contents, Contents::Own(_)) {
            return self.get_mut(address, length).map(fill);
        }
        let mut bytes = vec![0; length];
        fill(&mut bytes);
        self.write(address, &bytes)
    }

    /// The offset of `address` in the memory; `None` if a byte of the range lies outside.
    fn offset(&self, address: u64, length: usize) -> Option<usize> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        start.checked_add(length).filter(|end| *end <= self.size).map(|_| start)
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

    #[derive(Debug)]
    struct Bytes(std::cell::RefCell<Vec<u8>>);

    impl Backing for Bytes {
        fn read(&self, offset: usize, into: &mut [u8]) -> Option<()> {
            into.copy_from_slice(self.0.borrow().get(offset..offset + into.len())?);
            Some(())
        }

        fn write(&self, offset: usize, bytes: &[u8]) -> Option<()> {
            self.0.borrow_mut().get_mut(offset..offset + bytes.len())?.copy_from_slice(bytes);
            Some(())
        }
    }

    #[test]
    fn shared_memory_is_copied_and_bounded_like_its_own() {
        let backing = Rc::new(Bytes(vec![7; 0x4000].into()));
        let shared = Ram::shared(0x1000, 0x3000, backing.clone());
        for mut ram in [shared, Ram::new(0x1000, 0x3000)] {
            ram.fill(0x1000, 4, |bytes| bytes.copy_from_slice(&[1, 2, 3, 4])).unwrap();
            ram.write(0x3ffe, &[5, 6]).unwrap();
            let mut back = [0; 2];
            ram.read(0x1002, &mut back).unwrap();
            assert_eq!((back, ram.show(0x3ffe, 2, <[u8]>::to_vec)), ([3, 4], Some(vec![5, 6])));
            for (outside, length) in [(0xfff, 1), (0x3fff, 2), (u64::MAX, 2)] {
                assert_eq!(ram.read(outside, &mut vec![0; length]), None);
                assert_eq!(ram.write(outside, &vec![0; length]), None);
                assert_eq!(ram.show(outside, length, <[u8]>::len), None);
                assert_eq!(ram.fill(outside, length, |_| ()), None);
            }
        }
        assert_eq!(backing.0.borrow()[..5], [1, 2, 3, 4, 7]);
    }
}
