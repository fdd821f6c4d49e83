//! The number of writes of each block of a job.

use std::collections::BTreeMap;

/// The maximum number of blocks whose versions are in an array. Pages of the array that were never
/// written need no memory.
const DENSE: u64 = 1 << 26;
/// The bit of a block whose contents are uncertain: the last write may or may not have been
/// executed.
const UNCERTAIN: u32 = 1 << 31;

/// The number of writes (version) of each block, and whether the contents of the block are certain.
#[derive(Debug)]
pub(crate) enum Versions {
    Dense(Vec<u32>),
    Sparse(BTreeMap<u64, u32>),
}

impl Versions {
    /// Creates the versions of `blocks` blocks, which were not written. 0 is for jobs that do not
    /// track versions.
    pub(crate) fn new(blocks: u64) -> Self {
        match blocks {
            0..=DENSE => Self::Dense(vec![0; blocks as usize]),
            _ => Self::Sparse(BTreeMap::new()),
        }
    }

    fn get(&self, block: u64) -> u32 {
        match self {
            Self::Dense(all) => all[block as usize],
            Self::Sparse(all) => all.get(&block).copied().unwrap_or(0),
        }
    }

    fn get_mut(&mut self, block: u64) -> &mut u32 {
        match self {
            Self::Dense(all) => &mut all[block as usize],
            Self::Sparse(all) => all.entry(block).or_default(),
        }
    }

    /// The number of writes of the block.
    pub(crate) fn version(&self, block: u64) -> u32 {
        self.get(block) & !UNCERTAIN
    }

    /// Records that a write of the block begins, and returns the new version. After the highest
    /// version follows 1, because 0 means that the block was not written.
    pub(crate) fn next(&mut self, block: u64) -> u32 {
        let entry = self.get_mut(block);
        let next = (entry.wrapping_add(1) & !UNCERTAIN).max(1);
        *entry = *entry & UNCERTAIN | next;
        next
    }

    /// Sets the version of a block that another host wrote.
    pub(crate) fn set(&mut self, block: u64, version: u32) {
        let entry = self.get_mut(block);
        *entry = *entry & UNCERTAIN | version;
    }

    pub(crate) fn is_certain(&self, block: u64) -> bool {
        self.get(block) & UNCERTAIN == 0
    }

    /// Records that the block has its latest version with certainty.
    pub(crate) fn confirm(&mut self, block: u64) {
        *self.get_mut(block) &= !UNCERTAIN;
    }

    /// Records that the contents of the block are uncertain.
    pub(crate) fn doubt(&mut self, block: u64) {
        *self.get_mut(block) |= UNCERTAIN;
    }

    /// Marks all blocks as not written and certain.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Dense(all) => all.fill(0),
            Self::Sparse(all) => all.clear(),
        }
    }

    /// All written blocks in ascending order: block, version, and whether the contents are certain.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u64, u32, bool)> + '_ {
        let (dense, sparse): (&[u32], _) = match self {
            Self::Dense(all) => (all, None),
            Self::Sparse(all) => (&[], Some(all)),
        };
        let dense = (0..).zip(dense.iter().copied());
        let sparse = sparse.into_iter().flatten().map(|(block, entry)| (*block, *entry));
        dense
            .chain(sparse)
            .filter(|(_, entry)| entry & !UNCERTAIN != 0)
            .map(|(block, entry)| (block, entry & !UNCERTAIN, entry & UNCERTAIN == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_and_maps_are_the_same() {
        for mut versions in [Versions::new(8), Versions::new(DENSE + 1)] {
            assert_eq!((versions.version(3), versions.is_certain(3)), (0, true));
            assert_eq!((versions.next(3), versions.next(3)), (1, 2));
            versions.doubt(3);
            versions.doubt(5);
            assert_eq!((versions.next(3), versions.is_certain(3)), (3, false));
            versions.set(7, 9);
            assert_eq!(versions.written().collect::<Vec<_>>(), [(3, 3, false), (7, 9, true)]);
            versions.confirm(3);
            assert!(versions.is_certain(3) && !versions.is_certain(5));
            // A job that writes only one block can reach this version within a day.
            versions.set(3, !UNCERTAIN);
            versions.doubt(3);
            assert_eq!((versions.next(3), versions.is_certain(3)), (1, false));
            versions.clear();
            assert!(versions.is_certain(5) && versions.written().next().is_none());
        }
    }
}
