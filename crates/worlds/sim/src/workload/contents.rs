//! The expected contents of a drive when commands overlap. Blocks with undefined contents are not
//! compared.

use super::LBA_SIZE;
use ::workload::pattern::{fill, matches};
use std::collections::BTreeMap;
use std::ops::Range;

/// The contents of a logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The drive's pattern after this many writes of the host.
    Version(u32),
    Zeroes,
    /// Unknown: writes overlapped or failed, or the block was deallocated.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    content: Content,
    /// Number of writes under way, and number of writes begun so far.
    writers: u32,
    changes: u32,
    /// Whether writes under way overlap.
    clash: bool,
}

const INITIAL: Block = Block { content: Content::Version(0), writers: 0, changes: 0, clash: false };

/// The expected contents of a drive. Memory is proportional to the number of different blocks
/// written.
#[derive(Debug)]
pub(super) struct Contents {
    seed: u64,
    blocks: BTreeMap<u64, Block>,
    version: u32,
}

/// For each block of a read, the content at the start of the read, and the number of writes so far.
/// `None` if the content is not known. The number detects writes of the same content.
pub(super) type Known = Vec<Option<(Content, u32)>>;

/// Blocks of a transfer.
fn blocks(offset: u64, length: u64) -> Range<u64> {
    offset / LBA_SIZE..(offset + length) / LBA_SIZE
}

impl Contents {
    /// A drive with the pattern of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, blocks: BTreeMap::new(), version: 0 }
    }

    /// Fills `bytes` with data for a write that differ from the data of all other writes.
    pub(super) fn fresh(&mut self, offset: u64, bytes: &mut [u8]) -> Content {
        self.version += 1;
        fill(self.seed, offset, self.version, bytes);
        Content::Version(self.version)
    }

    /// Handles the loss of the drive's contents. Blocks with writes under way will be unknown.
    pub(super) fn forget(&mut self) {
        self.blocks.retain(|_, block| block.writers > 0);
        self.blocks.values_mut().for_each(|block| block.clash = true);
    }

    /// Records the start of a write of these blocks.
    pub(super) fn begin(&mut self, offset: u64, length: u64) {
        for at in blocks(offset, length) {
            let block = self.blocks.entry(at).or_insert(INITIAL);
            block.clash |= block.writers > 0;
            block.writers += 1;
            block.changes += 1;
        }
    }

    /// Records the end of a write of `content`. After writes that overlapped in time, the content
    /// is unknown.
    pub(super) fn end(&mut self, offset: u64, length: u64, content: Content) {
        for at in blocks(offset, length) {
            let block = self.blocks.get_mut(&at).expect("its change began");
            block.content = if block.clash { Content::Unknown } else { content };
            block.writers -= 1;
            block.clash &= block.writers > 0;
        }
    }

    fn now(&self, at: u64) -> Option<(Content, u32)> {
        let block = self.blocks.get(&at).unwrap_or(&INITIAL);
        (block.writers == 0 && block.content != Content::Unknown)
            .then_some((block.content, block.changes))
    }

    /// The contents of these blocks, `None` for blocks that are not known.
    pub(super) fn known(&self, offset: u64, length: u64) -> Known {
        blocks(offset, length).map(|at| self.now(at)).collect()
    }

    /// Compares the bytes of a read with `known`, from the start of the read. Skips blocks that
    /// were written since or are not known. Returns the number of compared and of wrong blocks.
    pub(super) fn compare(&self, offset: u64, bytes: &[u8], known: &Known) -> (u64, u64) {
        let (mut compared, mut wrong) = (0, 0);
        let pieces = bytes.chunks(LBA_SIZE as usize);
        for ((at, piece), before) in (offset / LBA_SIZE..).zip(pieces).zip(known) {
            if self.now(at) != *before {
                continue;
            }
            let Some((content, _)) = *before else { continue };
            let right = match content {
                Content::Version(version) => matches(self.seed, at * LBA_SIZE, version, piece),
                Content::Zeroes => piece.iter().all(|byte| *byte == 0),
                Content::Unknown => continue,
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
    fn blocks_changed_twice_during_read_are_not_compared() {
        let mut contents = Contents::new(3);
        let change = |contents: &mut Contents, content| {
            contents.begin(512, 512);
            contents.end(512, 512, content);
        };
        change(&mut contents, Content::Zeroes);
        let known = contents.known(512, 512);
        change(&mut contents, Content::Version(1));
        change(&mut contents, Content::Zeroes);
        assert_eq!(contents.compare(512, &[1; 512], &known), (0, 0));
    }

    fn read(contents: &Contents, bytes: &[u8], known: &Known) -> (u64, u64) {
        contents.compare(512, bytes, known)
    }

    #[test]
    fn only_certain_blocks_are_compared() {
        let mut contents = Contents::new(3);
        let mut bytes = [0; 1024];
        fill(3, 512, 0, &mut bytes);
        let known = contents.known(512, 1024);
        assert_eq!(read(&contents, &bytes, &known), (2, 0));
        bytes[600] ^= 1;
        assert_eq!(read(&contents, &bytes, &known), (2, 1));
        // During a write of the second block only the first block is known.
        let mut data = [0; 512];
        contents.begin(1024, 512);
        let content = contents.fresh(1024, &mut data);
        assert_eq!(read(&contents, &bytes, &known), (1, 0));
        assert_eq!(contents.known(512, 1024)[1], None);
        contents.end(1024, 512, content);
        assert_eq!(read(&contents, &bytes, &known), (1, 0), "it changed while it was read");
        bytes[512..].copy_from_slice(&data);
        assert_eq!(read(&contents, &bytes, &contents.known(512, 1024)), (2, 0));
        contents.begin(512, 512);
        contents.end(512, 512, Content::Zeroes);
        assert_eq!(read(&contents, &bytes, &contents.known(512, 1024)), (2, 1));
    }

    #[test]
    fn overlapping_writes_leave_unknown_contents() {
        let content = |contents: &Contents, offset, length| {
            let known = contents.known(offset, length).into_iter();
            known.map(|known| known.map(|(content, _)| content)).collect::<Vec<_>>()
        };
        let mut contents = Contents::new(3);
        let mut data = [[0; 1024]; 2];
        contents.begin(0, 1024);
        let first = contents.fresh(0, &mut data[0]);
        contents.begin(512, 1024);
        let second = contents.fresh(512, &mut data[1]);
        contents.end(0, 1024, first);
        contents.end(512, 1024, second);
        assert_eq!(
            content(&contents, 0, 2048),
            [Some(first), None, Some(second), Some(INITIAL.content)]
        );
        contents.begin(512, 512);
        contents.end(512, 512, first);
        assert_eq!(
            content(&contents, 512, 512),
            [Some(first)],
            "one that is alone is certain again"
        );
        contents.begin(512, 512);
        contents.end(512, 512, Content::Unknown);
        assert_eq!(content(&contents, 512, 512), [None]);
        contents.begin(1024, 512);
        contents.forget();
        contents.end(1024, 512, second);
        let fresh = Some(INITIAL.content);
        assert_eq!(content(&contents, 0, 2048), [fresh, fresh, None, fresh]);
    }
}
