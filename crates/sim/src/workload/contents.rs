//! What a drive should hold while commands overlap: blocks whose contents are
//! defined are known, others are not compared.

use super::BLOCK;
use crate::drive::{fill, matches};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The drive's pattern after this many writes of the host.
    Version(u32),
    Zeroes,
    /// Writes overlapped, failed, or the block was deallocated.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    held: Held,
    /// Changes of it under way, and those that ever began.
    writers: u32,
    changes: u32,
    /// Some of them overlap.
    clash: bool,
}

const FRESH: Block = Block { held: Held::Version(0), writers: 0, changes: 0, clash: false };

/// See the module. Memory grows with the distinct blocks written.
#[derive(Debug)]
pub(super) struct Contents {
    seed: u64,
    blocks: BTreeMap<u64, Block>,
    version: u32,
}

/// What was known of the blocks of a read when it began, and how often they
/// had been changed: zeroes after other contents after zeroes are not the same.
pub(super) type Known = Vec<Option<(Held, u32)>>;

/// Blocks of a transfer.
fn blocks(offset: u64, length: u64) -> Range<u64> {
    offset / BLOCK..(offset + length) / BLOCK
}

impl Contents {
    /// A drive that holds the pattern of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, blocks: BTreeMap::new(), version: 0 }
    }

    /// Data for a write, unlike those of every other.
    pub fn fresh(&mut self, offset: u64, bytes: &mut [u8]) -> Held {
        self.version += 1;
        fill(self.seed, offset, self.version, bytes);
        Held::Version(self.version)
    }

    /// The drive lost what was written to it; what changes under way leave is
    /// not known.
    pub fn forget(&mut self) {
        self.blocks.retain(|_, block| block.writers > 0);
        self.blocks.values_mut().for_each(|block| block.clash = true);
    }

    /// A change of these blocks begins.
    pub fn begin(&mut self, offset: u64, length: u64) {
        for at in blocks(offset, length) {
            let block = self.blocks.entry(at).or_insert(FRESH);
            block.clash |= block.writers > 0;
            block.writers += 1;
            block.changes += 1;
        }
    }

    /// It is over, and left this.
    pub fn end(&mut self, offset: u64, length: u64, held: Held) {
        for at in blocks(offset, length) {
            let block = self.blocks.get_mut(&at).expect("its change began");
            block.held = if block.clash { Held::Unknown } else { held };
            block.writers -= 1;
            block.clash &= block.writers > 0;
        }
    }

    fn now(&self, at: u64) -> Option<(Held, u32)> {
        let block = self.blocks.get(&at).unwrap_or(&FRESH);
        (block.writers == 0 && block.held != Held::Unknown).then_some((block.held, block.changes))
    }

    /// What these blocks hold, as far as it is certain.
    pub fn known(&self, offset: u64, length: u64) -> Known {
        blocks(offset, length).map(|at| self.now(at)).collect()
    }

    /// Compares what was read with what was `known` when the read began, where
    /// nothing has changed since. Yields blocks compared, and wrong ones.
    pub fn compare(&self, offset: u64, bytes: &[u8], known: &Known) -> (u64, u64) {
        let (mut compared, mut wrong) = (0, 0);
        let pieces = bytes.chunks(BLOCK as usize);
        for ((at, piece), before) in (offset / BLOCK..).zip(pieces).zip(known) {
            if self.now(at) != *before {
                continue;
            }
            let Some((held, _)) = *before else { continue };
            let right = match held {
                Held::Version(version) => matches(self.seed, at * BLOCK, version, piece),
                Held::Zeroes => piece.iter().all(|byte| *byte == 0),
                Held::Unknown => continue,
            };
            compared += 1;
            wrong += u64::from(!right);
        }
        (compared, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_twice_meanwhile_is_not_compared() {
        let mut contents = Contents::new(3);
        let change = |contents: &mut Contents, held| {
            contents.begin(512, 512);
            contents.end(512, 512, held);
        };
        change(&mut contents, Held::Zeroes);
        let known = contents.known(512, 512);
        change(&mut contents, Held::Version(1));
        change(&mut contents, Held::Zeroes);
        assert_eq!(contents.compare(512, &[1; 512], &known), (0, 0));
    }

    fn read(contents: &Contents, bytes: &[u8], known: &Known) -> (u64, u64) {
        contents.compare(512, bytes, known)
    }

    #[test]
    fn what_is_certain_is_compared_and_nothing_else() {
        let mut contents = Contents::new(3);
        let mut bytes = [0; 1024];
        fill(3, 512, 0, &mut bytes);
        let known = contents.known(512, 1024);
        assert_eq!(read(&contents, &bytes, &known), (2, 0));
        bytes[600] ^= 1;
        assert_eq!(read(&contents, &bytes, &known), (2, 1));
        // A write of the second block begins: only the first is certain.
        let mut data = [0; 512];
        contents.begin(1024, 512);
        let held = contents.fresh(1024, &mut data);
        assert_eq!(read(&contents, &bytes, &known), (1, 0));
        assert_eq!(contents.known(512, 1024)[1], None);
        contents.end(1024, 512, held);
        assert_eq!(read(&contents, &bytes, &known), (1, 0), "it changed while it was read");
        bytes[512..].copy_from_slice(&data);
        assert_eq!(read(&contents, &bytes, &contents.known(512, 1024)), (2, 0));
        contents.begin(512, 512);
        contents.end(512, 512, Held::Zeroes);
        assert_eq!(read(&contents, &bytes, &contents.known(512, 1024)), (2, 1));
    }

    #[test]
    fn overlapping_writes_leave_what_nobody_knows() {
        let held = |contents: &Contents, offset, length| {
            let known = contents.known(offset, length).into_iter();
            known.map(|known| known.map(|(held, _)| held)).collect::<Vec<_>>()
        };
        let mut contents = Contents::new(3);
        let mut data = [[0; 1024]; 2];
        contents.begin(0, 1024);
        let first = contents.fresh(0, &mut data[0]);
        contents.begin(512, 1024);
        let second = contents.fresh(512, &mut data[1]);
        contents.end(0, 1024, first);
        contents.end(512, 1024, second);
        assert_eq!(held(&contents, 0, 2048), [Some(first), None, Some(second), Some(FRESH.held)]);
        contents.begin(512, 512);
        contents.end(512, 512, first);
        assert_eq!(held(&contents, 512, 512), [Some(first)], "one that is alone is certain again");
        contents.begin(512, 512);
        contents.end(512, 512, Held::Unknown);
        assert_eq!(held(&contents, 512, 512), [None]);
        contents.begin(1024, 512);
        contents.forget();
        contents.end(1024, 512, second);
        let fresh = Some(FRESH.held);
        assert_eq!(held(&contents, 0, 2048), [fresh, fresh, None, fresh]);
    }
}
