//! The record `uncorrectable`: blocks that Write Uncorrectable has marked.

use super::check::{self, Check, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of marked blocks of a drive. This limits the size of the record, even if
/// every second block is marked.
pub const MAX_UNCORRECTABLE: u64 = 65_536;

/// Marked blocks by NSID. Namespaces that do not exist have no entry.
pub type Uncorrectable = BTreeMap<u32, Marks>;

/// Marked blocks of a namespace (NVMe 1.4, section 6.16): ranges in ascending order, each with
/// first block and number of blocks. Ranges neither overlap nor adjoin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Marks(Vec<(u64, u64)>);

impl Marks {
    /// Whether no block is marked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of marked blocks.
    pub fn blocks(&self) -> u64 {
        self.0.iter().map(|(_, blocks)| blocks).sum()
    }

    /// The first marked block of a range; `None` if no block is marked.
    pub fn first_in(&self, range: &Range<u64>) -> Option<u64> {
        let at = self.0.partition_point(|(first, blocks)| first + blocks <= range.start);
        let first = self.0.get(at)?.0.max(range.start);
        (first < range.end).then_some(first)
    }

    /// Marks a range of blocks.
    pub fn set(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        // Adjacent and overlapping ranges are joined.
        self.0.retain(|(first, blocks)| {
            let apart = first + blocks < start || *first > end;
            if !apart {
                start = start.min(*first);
                end = end.max(first + blocks);
            }
            apart
        });
        let at = self.0.partition_point(|(first, _)| *first < start);
        self.0.insert(at, (start, end - start));
    }

    /// Removes the marks of a range of blocks.
    pub fn clear(&mut self, range: &Range<u64>) {
        let rest = |(first, blocks): &(u64, u64)| {
            let end = first + blocks;
            [*first..end.min(range.start), range.end.max(*first)..end]
        };
        let left = self.0.iter().flat_map(rest).filter(|rest| !rest.is_empty());
        self.0 = left.map(|rest| (rest.start, rest.end - rest.start)).collect();
    }

    /// The block after the last marked block; 0 without marks.
    pub(super) fn end(&self) -> u64 {
        self.0.last().map_or(0, |(first, blocks)| first + blocks)
    }
}

impl Check for Uncorrectable {
    fn check(&self) -> Result<(), Problem> {
        let mut left = MAX_UNCORRECTABLE;
        for (nsid, marks) in self {
            // The lowest start of the next range.
            let mut least = 0;
            for (first, blocks) in &marks.0 {
                check::range("blocks", *blocks, 1, left)?;
                left -= blocks;
                check::range("first block", *first, least, u64::MAX >> 1)?;
                least = first + blocks + 1;
            }
            if marks.is_empty() {
                let why = "the list of ranges is empty: expected at least one range";
                return Err(format!("NSID {nsid}: {why}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn marks_are_a_set_of_blocks(
            changes in proptest::collection::vec((any::<bool>(), 0..40u64, 1..8u64), 1..20),
            asked in (0..48u64, 1..8u64),
        ) {
            let (mut marks, mut model) = (Marks::default(), BTreeSet::new());
            for (set, first, blocks) in changes {
                let range = first..first + blocks;
                if set {
                    marks.set(range.clone());
                    model.extend(range);
                } else {
                    marks.clear(&range);
                    model.retain(|block| !range.contains(block));
                }
                let seen: Vec<u64> =
                    marks.0.iter().flat_map(|(first, blocks)| *first..first + blocks).collect();
                prop_assert_eq!(&seen, &model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(marks.blocks(), model.len() as u64);
                let one = BTreeMap::from([(1, marks.clone())]);
                prop_assert!(marks.is_empty() || one.check().is_ok(), "{:?}", marks);
            }
            let range = asked.0..asked.0 + asked.1;
            prop_assert_eq!(marks.first_in(&range), model.range(range).next().copied());
        }
    }
}
