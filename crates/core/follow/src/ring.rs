//! Rings: the entries of a queue in host memory (NVM Express 1.4, section 4.1).

use std::ops::Range;
use wire::nvme::{COMPLETION_ENTRY, SUBMISSION_ENTRY};

/// The memory of a queue. Positions are indices of entries, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    base: u64,
    last: u16,
    entry: u64,
}

/// A ring with one submission queue entry at address 0. No real queue has this address.
impl Default for Ring {
    fn default() -> Self {
        Self::submission(0, 0)
    }
}

impl Ring {
    /// A submission queue that begins at `base`; `last` is the index of the last entry.
    pub const fn submission(base: u64, last: u16) -> Self {
        Self { base, last, entry: SUBMISSION_ENTRY as u64 }
    }

    /// A completion queue that begins at `base`; `last` is the index of the last entry.
    pub const fn completion(base: u64, last: u16) -> Self {
        Self { base, last, entry: COMPLETION_ENTRY as u64 }
    }

    /// The ring if it is valid: a contiguous queue begins at a memory page (section 5.3), has at
    /// least two entries (section 4.1.3), and ends below 2^64 even with the greatest length, 4 MiB.
    pub fn possible(self) -> Option<Self> {
        let fits = self.base & 0xfff == 0 && self.base.checked_add(1 << 22).is_some();
        (fits && self.last > 0).then_some(self)
    }

    /// The address of the first entry.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The index of the last entry.
    pub const fn last(&self) -> u16 {
        self.last
    }

    /// Number of entries.
    pub const fn entries(&self) -> u32 {
        self.last as u32 + 1
    }

    /// The address range of all entries; it ends at 2^64 - 1 at the latest.
    pub const fn range(&self) -> Range<u64> {
        self.base..self.base.saturating_add(self.entries() as u64 * self.entry)
    }

    /// The address of the entry with this index; saturates.
    pub const fn address(&self, index: u16) -> u64 {
        self.base.saturating_add(index as u64 * self.entry)
    }

    /// The index of the entry that contains the byte at `address`; `None` outside the ring.
    pub fn index(&self, address: u64) -> Option<u16> {
        let index = address.checked_sub(self.base)? / self.entry;
        (index <= u64::from(self.last)).then_some(index as u16)
    }

    /// Whether an entry begins at `address`.
    pub fn begins(&self, address: u64) -> bool {
        self.index(address).is_some_and(|index| self.address(index) == address)
    }

    /// The index `steps` entries after `index`, around the end of the ring.
    pub const fn after(&self, index: u16, steps: u32) -> u16 {
        ((index as u64 + steps as u64) % self.entries() as u64) as u16
    }

    /// Number of entries from `from` to `to` (exclusive), around the end of the ring.
    pub const fn distance(&self, from: u16, to: u16) -> u32 {
        let entries = self.entries();
        (to as u32 + entries - from as u32) % entries
    }

    /// The memory of the entries from `from` to `to` (exclusive): one range, or two around the end
    /// of the ring.
    pub const fn between(&self, from: u16, to: u16) -> [Range<u64>; 2] {
        if from <= to {
            [self.address(from)..self.address(to), 0..0]
        } else {
            [self.address(from)..self.range().end, self.base..self.address(to)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_positions_wrap() {
        let ring = Ring::submission(0x1000, 7);
        assert_eq!(ring.range(), 0x1000..0x1200);
        assert_eq!((ring.after(6, 1), ring.after(6, 3), ring.after(2, 8)), (7, 1, 2));
        assert_eq!((ring.distance(6, 7), ring.distance(6, 1), ring.distance(2, 2)), (1, 3, 0));
        assert_eq!(ring.between(6, 7), [0x1180..0x11c0, 0..0]);
        assert_eq!(ring.between(7, 2), [0x11c0..0x1200, 0x1000..0x1080]);
        assert_eq!(ring.between(2, 2), [0x1080..0x1080, 0..0]);
    }

    #[test]
    fn addresses_have_an_entry_or_none() {
        let ring = Ring::completion(0x3000, 3);
        assert_eq!([0x2fff, 0x3000, 0x300f].map(|at| ring.index(at)), [None, Some(0), Some(0)]);
        assert_eq!([0x3010, 0x303f, 0x3040].map(|at| ring.index(at)), [Some(1), Some(3), None]);
        assert!(ring.begins(0x3010) && !ring.begins(0x3018) && !ring.begins(0x3040));
        let last = Ring::completion(u64::MAX - 0xfff, u16::MAX);
        assert_eq!(last.range().end, u64::MAX, "nothing overflows");
        assert_eq!(last.address(u16::MAX), u64::MAX);
    }
}
