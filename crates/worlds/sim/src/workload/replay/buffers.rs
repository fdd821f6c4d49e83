//! Reused buffers of several sizes in host memory.

use pcie::Ram;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The smallest buffer. Sizes are powers of two.
const PAGE: u64 = 4096;

/// Free and used buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// Free buffers by size.
    free: BTreeMap<u64, Vec<u64>>,
    /// The size of each buffer.
    sizes: BTreeMap<u64, u64>,
}

fn class(length: u64) -> u64 {
    length.next_power_of_two().max(PAGE)
}

impl Buffers {
    /// Buffers with room for at least one transfer of `longest` bytes, so that a buffer is always
    /// available when no command is in flight. `None` if `ram` is too small.
    pub(super) fn new(ram: &RefCell<Ram>, longest: u64) -> Option<Self> {
        let mut buffers = Self::default();
        if longest > 0 {
            let address = buffers.allocate(ram, class(longest))?;
            buffers.give_back(address);
        }
        Some(buffers)
    }

    /// The address of a buffer for `length` bytes; 0 for a transfer without data. `None` if no
    /// buffer is free.
    pub(super) fn take(&mut self, ram: &RefCell<Ram>, length: u64) -> Option<u64> {
        if length == 0 {
            return Some(0);
        }
        if let Some(address) = self.free.get_mut(&class(length)).and_then(Vec::pop) {
            return Some(address);
        }
        self.allocate(ram, class(length)).or_else(|| {
            let larger = self.free.range_mut(class(length)..);
            larger.filter_map(|(_, free)| free.pop()).next()
        })
    }

    /// Returns a buffer.
    pub(super) fn give_back(&mut self, address: u64) {
        let size = self.sizes[&address];
        self.free.entry(size).or_default().push(address);
    }

    fn allocate(&mut self, ram: &RefCell<Ram>, size: u64) -> Option<u64> {
        let address = ram.borrow_mut().allocate(size as usize, PAGE as usize)?;
        self.sizes.insert(address, size);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_buffer_is_available_when_nothing_is_in_flight() {
        let ram = RefCell::new(Ram::new(0x1000, 16 << 10));
        assert!(Buffers::new(&ram, 32 << 10).is_none());
        let mut buffers = Buffers::new(&ram, 8 << 10).expect("it fits");
        assert_eq!(buffers.take(&ram, 0), Some(0));
        let small: Vec<u64> = std::iter::from_fn(|| buffers.take(&ram, 512)).collect();
        assert_eq!(small.len(), 3, "two of their own and the one kept for the longest");
        assert_eq!(buffers.take(&ram, 8 << 10), None);
        small.iter().for_each(|at| buffers.give_back(*at));
        assert!(buffers.take(&ram, 8 << 10).is_some(), "whoever had it meanwhile");
    }
}
