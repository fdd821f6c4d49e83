//! Physical region pages: the place of a command's data in host memory (NVMe 1.4, section 4.3).

use crate::failure::Failure;
use smallvec::SmallVec;
use wire::nvme::StatusCode;

/// Size of a PRP entry in bytes.
const ENTRY: usize = 8;

/// A contiguous range of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub length: usize,
}

/// Ranges of host memory in order. Up to two ranges need no allocation.
pub type MemoryRanges = SmallVec<[MemoryRange; 2]>;

/// The range of `length` bytes; `None` unless PRP entry 1 is valid and covers all bytes.
pub(crate) fn one_page(prp1: u64, length: usize, page: usize) -> Option<MemoryRange> {
    let room = page - (prp1 as usize & (page - 1));
    (prp1 & 3 == 0 && (1..=room).contains(&length)).then_some(MemoryRange { address: prp1, length })
}

/// A PRP list that must be read before the walk continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List {
    address: u64,
    entries: usize,
    /// Whether the last entry points to the next list.
    chained: bool,
}

/// The walk from PRP entries 1 and 2 to all ranges of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    page: usize,
    /// Bytes whose address is not yet known.
    remaining: usize,
    ranges: MemoryRanges,
    list: Option<List>,
}

impl Walk {
    /// Starts with the entries of the command, for `length` bytes and memory pages of `page` bytes.
    pub(crate) fn new(prp1: u64, prp2: u64, length: usize, page: usize) -> Result<Self, Failure> {
        let mut walk = Self { page, remaining: length, ranges: MemoryRanges::new(), list: None };
        if prp1 & 3 != 0 {
            return Err(Failure::prp(1));
        }
        let first = length.min(page - walk.offset(prp1));
        walk.push(prp1, first);
        if walk.remaining == 0 {
            return Ok(walk);
        }
        // PRP entry 2 is needed here. Unused entries are reserved and 0 (section 4.2), so 0 means
        // that it is missing.
        if prp2 == 0 {
            return Err(Failure::prp_missing());
        }
        if walk.remaining > page {
            // A list may begin anywhere in its page, but not between entries.
            if !prp2.is_multiple_of(ENTRY as u64) {
                return Err(Failure::prp(2));
            }
            walk.expect_list(prp2);
        } else if walk.offset(prp2) != 0 {
            return Err(Failure::prp(2));
        } else {
            walk.push(prp2, walk.remaining);
        }
        Ok(walk)
    }

    /// The next list to read: address and number of bytes; `None` if no list is needed. A list
    /// never crosses a page.
    pub(crate) fn next_list(&self) -> Option<(u64, usize)> {
        self.list.map(|list| (list.address, list.entries * ENTRY))
    }

    /// Adds the entries of a list that was read.
    pub(crate) fn add_list(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let list = self.list.take().expect("a list was asked for");
        assert_eq!(bytes.len(), list.entries * ENTRY, "exactly the list asked for");
        for (index, entry) in bytes.as_chunks::<ENTRY>().0.iter().enumerate() {
            let entry = u64::from_le_bytes(*entry);
            if entry == 0 {
                return Err(Failure::permanent(StatusCode::INVALID_FIELD));
            }
            if self.offset(entry) != 0 {
                return Err(Failure::permanent(StatusCode::INVALID_PRP_OFFSET));
            }
            if list.chained && index + 1 == list.entries {
                // A chained list begins at a page. So every list except the first has ranges, and
                // the chain ends.
                self.expect_list(entry);
            } else {
                self.push(entry, self.remaining.min(self.page));
            }
        }
        Ok(())
    }

    /// Whether all ranges are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.remaining == 0
    }

    /// The ranges known so far. Adjacent ranges are joined.
    pub(crate) fn ranges(&self) -> &[MemoryRange] {
        &self.ranges
    }

    /// Adds a range that no PRP entry describes.
    pub(crate) fn append(&mut self, range: MemoryRange) {
        self.ranges.push(range);
    }

    fn offset(&self, address: u64) -> usize {
        address as usize & (self.page - 1)
    }

    fn expect_list(&mut self, address: u64) {
        let room = (self.page - self.offset(address)) / ENTRY;
        let needed = self.remaining.div_ceil(self.page);
        self.list = Some(List { address, entries: room.min(needed), chained: needed > room });
    }

    fn push(&mut self, address: u64, length: usize) {
        self.remaining -= length;
        if let Some(last) = self.ranges.last_mut()
            && last.address.checked_add(last.length as u64) == Some(address)
        {
            last.length += length;
            return;
        }
        self.ranges.push(MemoryRange { address, length });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn list(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    #[test]
    fn one_page_needs_one_entry() {
        let walk = Walk::new(0x1_0040, 0xbad, 4096 - 0x40, PAGE).unwrap();
        assert!(walk.is_complete());
        assert_eq!(walk.ranges(), [MemoryRange { address: 0x1_0040, length: 4096 - 0x40 }]);
        let one_page = |prp1, length| one_page(prp1, length, PAGE);
        assert_eq!(one_page(0x1_0040, 4096 - 0x40), Some(walk.ranges()[0]));
        assert_eq!(
            [(0x1_0040, 4096), (0x1_0042, 512), (0x1_0040, 0)].map(|(a, l)| one_page(a, l)),
            [None; 3]
        );
    }

    #[test]
    fn two_pages_need_two_entries() {
        let walk = Walk::new(0x1_0800, 0x9_0000, 4096, PAGE).unwrap();
        assert_eq!(
            walk.ranges(),
            [
                MemoryRange { address: 0x1_0800, length: 2048 },
                MemoryRange { address: 0x9_0000, length: 2048 }
            ]
        );
        assert_eq!(Walk::new(0x1_0800, 0x9_0008, 4096, PAGE), Err(Failure::prp(2)));
        assert_eq!(Walk::new(0x1_0802, 0x9_0000, 4096, PAGE), Err(Failure::prp(1)));
    }

    #[test]
    fn neighbours_are_joined() {
        let walk = Walk::new(0x1_0000, 0x1_1000, 8192, PAGE).unwrap();
        assert_eq!(walk.ranges(), [MemoryRange { address: 0x1_0000, length: 8192 }]);
    }

    #[test]
    fn more_pages_need_a_list_that_may_begin_anywhere() {
        let mut walk = Walk::new(0x1_0000, 0x2_0010, 3 * 4096 + 512, PAGE).unwrap();
        assert_eq!(walk.next_list(), Some((0x2_0010, 24)));
        walk.add_list(&list(&[0x5_0000, 0x7_0000, 0x9_0000])).unwrap();
        assert!(walk.is_complete() && walk.next_list().is_none());
        assert_eq!(walk.ranges()[3], MemoryRange { address: 0x9_0000, length: 512 });
        assert_eq!(Walk::new(0x1_0000, 0x2_0004, 3 * 4096, PAGE), Err(Failure::prp(2)));
    }

    #[test]
    fn lists_are_chained_by_their_last_entry() {
        // The list begins three entries before the end of its page.
        let mut walk = Walk::new(0x1_0000, 0x2_0fe8, 5 * 4096, PAGE).unwrap();
        assert_eq!(walk.next_list(), Some((0x2_0fe8, 24)));
        walk.add_list(&list(&[0x5_0000, 0x7_0000, 0x3_0000])).unwrap();
        assert_eq!(walk.next_list(), Some((0x3_0000, 16)));
        walk.add_list(&list(&[0x9_0000, 0xb_0000])).unwrap();
        assert!(walk.is_complete());
        let addresses: Vec<_> = walk.ranges().iter().map(|s| s.address).collect();
        assert_eq!(addresses, [0x1_0000, 0x5_0000, 0x7_0000, 0x9_0000, 0xb_0000]);
    }

    #[test]
    fn a_list_of_nothing_but_a_chain_pointer_does_not_loop() {
        let mut walk = Walk::new(0x1_0000, 0x2_0ff8, 4 * 4096, PAGE).unwrap();
        assert_eq!(walk.next_list(), Some((0x2_0ff8, 8)));
        assert!(walk.add_list(&list(&[0x2_0ff8])).is_err(), "chained lists begin at a page");
        let mut walk = Walk::new(0x1_0000, 0x2_0ff8, 4 * 4096, PAGE).unwrap();
        walk.add_list(&list(&[0x2_0000])).unwrap();
        assert_eq!(walk.next_list(), Some((0x2_0000, 24)));
    }

    #[test]
    fn an_entry_that_is_needed_is_not_0() {
        // PRP entry 1 may be 0: there is memory at address 0.
        assert!(Walk::new(0, 0, 4096, PAGE).unwrap().is_complete());
        for length in [4097, 2 * 4096, 3 * 4096] {
            assert_eq!(Walk::new(0x1_0000, 0, length, PAGE), Err(Failure::prp_missing()));
        }
        assert_eq!(Walk::new(0x1_0004, 0, 4096, PAGE), Err(Failure::prp_missing()));
        // An entry of a list that is 0, and a pointer to the next list that is 0.
        for entries in [[0x5_0000, 0], [0, 0x5_0000]] {
            let mut walk = Walk::new(0x1_0000, 0x2_0ff0, 3 * 4096, PAGE).unwrap();
            let error = walk.add_list(&list(&entries)).unwrap_err();
            assert_eq!(error.status.code, StatusCode::INVALID_FIELD);
            assert!(error.status.do_not_retry);
            let mut walk = Walk::new(0x1_0000, 0x2_0ff0, 4 * 4096, PAGE).unwrap();
            assert!(walk.add_list(&list(&entries)).is_err());
        }
    }

    #[test]
    fn larger_pages() {
        let walk = Walk::new(0x1_0000, 0x8_0000, 128 << 10, 64 << 10).unwrap();
        assert_eq!(walk.ranges().len(), 2);
    }
}
