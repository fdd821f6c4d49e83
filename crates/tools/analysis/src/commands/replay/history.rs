//! All writes to one namespace.

use super::Initial;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Packet numbers between which an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
}

/// A write; zeroes without data.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub span: Span,
    /// It succeeded, so it took effect.
    pub certain: bool,
    pub slba: u64,
    pub blocks: u64,
    pub data: Option<Bytes>,
}

impl Write {
    fn covers(&self, block: u64) -> bool {
        block >= self.slba && block - self.slba < self.blocks
    }

    /// Whether it put `bytes` into `block`, or where they differ.
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
    /// Its contents were not known before.
    pub unknown: bool,
    /// Writes that may have been the last.
    pub candidates: usize,
    /// First byte that differs from the last of them.
    pub differs: usize,
}

/// Writes are found by the stretch of blocks they touch, long ones one by one.
#[derive(Debug, Default)]
pub(super) struct History {
    writes: Vec<Write>,
    by_stretch: BTreeMap<u64, Vec<usize>>,
    long: Vec<usize>,
    /// Contents of blocks that were read before they were written.
    learnt: BTreeMap<u64, Bytes>,
}

/// Blocks a stretch.
const STRETCH: u64 = 64;
/// Stretches from which on a write is long.
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

    /// Whether `bytes` can be what `block` held at some time within `read`.
    pub fn explain(&mut self, block: u64, read: Span, bytes: &[u8], initial: Initial) -> Verdict {
        let short = self.by_stretch.get(&(block / STRETCH)).map_or(&[][..], Vec::as_slice);
        let touching = short.iter().chain(&self.long).map(|index| &self.writes[*index]);
        let touching = touching.filter(|write| write.covers(block));
        // Of the writes that were over before the read began, those that were
        // over before another one of them began are overwritten.
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

    /// No write had certainly ended: the block may still hold its contents from before all of them.
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
