//! All writes to one namespace.

use super::Initial;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The packet numbers between which an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
}

/// A write. Without data it writes zeroes.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub span: Span,
    /// Whether the write succeeded, so that it certainly took effect.
    pub certain: bool,
    pub slba: u64,
    pub blocks: u64,
    pub data: Option<Bytes>,
}

impl Write {
    fn covers(&self, block: u64) -> bool {
        block >= self.slba && block - self.slba < self.blocks
    }

    /// Returns the first byte at which `bytes` differ from what the write put into `block`.
    fn differs(&self, block: u64, bytes: &[u8]) -> Option<usize> {
        match &self.data {
            None => bytes.iter().position(|byte| *byte != 0),
            Some(data) => {
                let at = (block - self.slba) as usize * bytes.len();
                let written = data.get(at..at + bytes.len()).unwrap_or_default();
                if written == bytes {
                    return None;
                }
                let same = written.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                Some(same)
            }
        }
    }
}

/// The result of checking a block that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub explained: bool,
    /// Whether the contents of the block were unknown before.
    pub unknown: bool,
    /// Number of writes that may have been the last one.
    pub candidates: usize,
    /// First byte that differs from the last candidate.
    pub differs: usize,
}

/// All writes to a namespace, indexed by stretches of blocks. Long writes are in a separate list.
#[derive(Debug, Default)]
pub(super) struct History {
    writes: Vec<Write>,
    by_stretch: BTreeMap<u64, Vec<usize>>,
    long: Vec<usize>,
    /// Contents of blocks that were read before they were written.
    learnt: BTreeMap<u64, Bytes>,
}

/// Number of blocks in a stretch.
const STRETCH: u64 = 64;
/// Minimum number of stretches of a long write.
const LONG: u64 = 1024;

impl History {
    pub fn add(&mut self, write: Write) {
        let Some(last) = write.blocks.checked_sub(1).and_then(|n| write.slba.checked_add(n)) else {
            return;
        };
        let (first, last, index) = (write.slba / STRETCH, last / STRETCH, self.writes.len());
        if last - first >= LONG {
            self.long.push(index);
        } else {
            for stretch in first..=last {
                self.by_stretch.entry(stretch).or_default().push(index);
            }
        }
        self.writes.push(write);
    }

    /// Sorts the writes by their end. Call it before [`explain`](Self::explain).
    pub fn sort(&mut self) {
        let Self { writes, by_stretch, long, .. } = self;
        for list in by_stretch.values_mut().chain([long]) {
            list.sort_by_key(|index| writes[*index].span.end);
        }
    }

    /// Checks whether `block` can have contained `bytes` at some time within `read`.
    pub fn explain(&mut self, block: u64, read: Span, bytes: &[u8], initial: Initial) -> Verdict {
        let short = self.by_stretch.get(&(block / STRETCH)).map_or(&[][..], Vec::as_slice);
        let touching = short.iter().chain(&self.long).map(|index| &self.writes[*index]);
        let touching = touching.filter(|write| write.covers(block));
        // A successful write that ended before the read began has overwritten all writes that ended
        // before the successful write began.
        let over = touching.clone().filter(|write| write.certain && write.span.end < read.start);
        let since = over.map(|write| write.span.start).max();
        let visible = |write: &&Write| {
            write.span.start < read.end && since.is_none_or(|since| write.span.end >= since)
        };
        let mut verdict = Verdict::default();
        for write in touching.filter(visible) {
            verdict.candidates += 1;
            match write.differs(block, bytes) {
                None => verdict.explained = true,
                Some(at) => verdict.differs = at,
            }
        }
        if since.is_none() && !verdict.explained {
            self.before_all(block, bytes, initial, &mut verdict);
        }
        verdict
    }

    /// Handles a read before which no write has certainly ended: the block may still have its
    /// contents from before all writes.
    fn before_all(&mut self, block: u64, bytes: &[u8], initial: Initial, verdict: &mut Verdict) {
        let differs = match (initial, self.learnt.get(&block)) {
            (Initial::Zero, _) => bytes.iter().position(|byte| *byte != 0),
            (Initial::Unknown, None) => {
                self.learnt.insert(block, Bytes::copy_from_slice(bytes));
                verdict.unknown = true;
                None
            }
            (Initial::Unknown, Some(learnt)) => {
                learnt.iter().zip(bytes).position(|(before, now)| before != now)
            }
        };
        verdict.explained = differs.is_none();
        verdict.differs = differs.unwrap_or(0);
    }
}
