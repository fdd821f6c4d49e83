//! One job: its part of the drives, and the choice of its transfers.

use crate::pattern::fill;
use crate::versions::Versions;
use crate::{Fio, Outcome, Rw, Written};
use pcie::Ram;
use stats::random::Random;
use wire::Instant;

/// Marks a slot without a block.
const NONE: u64 = u64::MAX;

/// One piece of a transfer on one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub drive: usize,
    pub offset: u64,
    /// Offset in the slot's buffer.
    pub at: u64,
    pub length: u64,
}

impl Part {
    /// Splits the part into commands of at most the largest transfer, as Linux does
    /// (`blk_mq_submit_bio`).
    fn cut(self, most: u64, parts: &mut Vec<Self>) {
        let mut done = 0;
        while done < self.length {
            let length = (self.length - done).min(most);
            let (offset, at) = (self.offset + done, self.at + done);
            parts.push(Self { offset, at, length, ..self });
            done += length;
        }
    }
}

/// A slot for one transfer in flight.
#[derive(Debug)]
pub(crate) struct Slot {
    pub buffer: u64,
    pub since: Instant,
    pub block: u64,
    pub write: bool,
    pub version: u32,
    /// For reads: the version that the block certainly had when the read was chosen.
    pub expected: Option<u32>,
    pub busy: bool,
    pub outcome: Outcome,
    pub parts: Vec<Part>,
    pub left: usize,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub drives: Vec<usize>,
    pub queue: usize,
    /// First byte of its part of the drives.
    pub base: u64,
    pub cpu: Instant,
    rng: Random,
    pub slots: Vec<Slot>,
    /// The block of each busy slot, or `NONE`. Compact, because every choice checks all slots.
    busy: Vec<u64>,
    pub blocks: u64,
    next: u64,
    pub issued: u64,
    /// When rate, start or pause allows the next command.
    pub next_issue: Instant,
    /// Transfers that ended since the last pause.
    pub since_pause: u64,
    /// Slots that wait for the next pause to begin.
    pub resting: Vec<usize>,
    pub versions: Versions,
    /// Blocks that are read back.
    pub read_back: Option<Vec<u64>>,
}

impl Job {
    /// Job `number` with buffers in `ram`; `None` if `ram` is too small.
    pub(crate) fn new(
        (number, others): (usize, usize),
        start: Instant,
        fio: &Fio,
        drives: usize,
        verify: bool,
        ram: &mut Ram,
        mut rng: Random,
    ) -> Option<Self> {
        let mut slots = Vec::new();
        for _ in 0..fio.iodepth {
            let buffer = ram.allocate(fio.bs, 4096)?;
            if fio.rw.writes() && !verify {
                // Some media handle zeroes faster than other data.
                ram.fill(buffer, fio.bs, |bytes| fill(buffer, 0, 0, bytes))?;
            }
            slots.push(Slot {
                buffer,
                since: start,
                block: NONE,
                write: false,
                version: 0,
                expected: None,
                busy: false,
                outcome: Outcome::Done,
                parts: Vec::new(),
                left: 0,
            });
        }
        (0..others + number).for_each(|_| {
            rng.bits();
        });
        let drives = match fio.stripe {
            0 => vec![number % drives],
            _ => (0..drives).collect(),
        };
        let blocks = fio.size / fio.bs as u64;
        Some(Self {
            drives,
            queue: others + number,
            base: fio.offset + number as u64 * fio.part(),
            cpu: Instant::ZERO,
            rng: Random::new(rng.bits()),
            busy: vec![NONE; slots.len()],
            slots,
            blocks,
            next: 0,
            issued: 0,
            next_issue: start,
            since_pause: 0,
            resting: Vec::new(),
            versions: Versions::new(if verify { blocks } else { 0 }),
            read_back: None,
        })
    }

    /// Whether no transfer is left, with an optional limit of `transfers`.
    pub(crate) fn is_exhausted(&self, transfers: Option<u64>) -> bool {
        let all = self.read_back.as_ref().map(|blocks| blocks.len() as u64).or(transfers);
        all.is_some_and(|all| self.issued >= all)
    }

    /// Adds what another host wrote to the drive.
    pub(crate) fn add_known_writes(&mut self, bs: u64, written: &[Written]) {
        for Written { offset, length, version } in written.iter().copied() {
            let end = offset.saturating_add(length);
            let whole = self.drives.len() == 1 && length == bs && offset >= self.base;
            let block = offset.saturating_sub(self.base) / bs;
            let inside = block < self.blocks && end > self.base;
            match version {
                Some(version) if whole && (offset - self.base).is_multiple_of(bs) => {
                    if inside {
                        self.versions.set(block, version);
                    }
                }
                _ if self.drives.len() == 1 => {
                    let last = end.saturating_sub(self.base).div_ceil(bs).min(self.blocks);
                    (block.min(last)..last).for_each(|block| self.versions.doubt(block));
                }
                // Striped transfers are not located exactly: all blocks become uncertain.
                _ => (0..self.blocks).for_each(|block| self.versions.doubt(block)),
            }
        }
    }

    /// The job's writes to each of its drives.
    pub(crate) fn written(&self, length: u64) -> impl Iterator<Item = Written> + '_ {
        let striped = self.drives.len() > 1;
        self.versions.written().map(move |(block, version, certain)| Written {
            offset: if striped { 0 } else { self.base + block * length },
            length: if striped { u64::MAX } else { length },
            version: (!striped && certain).then_some(version),
        })
    }

    /// A drive lost its contents. Writes under way count for the new contents; reads under way are
    /// not compared.
    pub(crate) fn forget(&mut self, drive: usize) {
        if !self.drives.contains(&drive) {
            return;
        }
        if self.drives.len() > 1 {
            // Striped transfers are not located exactly: all blocks become uncertain.
            return (0..self.blocks).for_each(|block| self.versions.doubt(block));
        }
        self.versions.clear();
        for slot in self.slots.iter().filter(|slot| slot.busy) {
            if slot.write {
                self.versions.set(slot.block, slot.version);
            } else {
                self.versions.doubt(slot.block);
            }
        }
    }

    /// Marks a slot as free.
    pub(crate) fn release(&mut self, slot: usize) {
        self.slots[slot].busy = false;
        self.busy[slot] = NONE;
    }
}

/// Choosing transfers.
impl Job {
    /// Chooses the next transfer of a slot, in commands of at most `most` bytes. `initial` is the
    /// version of never-written blocks, if known. With `verify`, versions are tracked.
    pub(crate) fn choose(
        &mut self,
        fio: &Fio,
        slot: usize,
        now: Instant,
        most: u64,
        (verify, initial): (bool, Option<u32>),
    ) {
        let block = match &self.read_back {
            Some(blocks) => blocks[self.issued as usize],
            None => self.choose_block(fio.rw.is_random()),
        };
        let write = self.read_back.is_none()
            && match fio.rw {
                Rw::Read | Rw::RandRead => false,
                Rw::Write | Rw::RandWrite => true,
                Rw::Rw | Rw::RandRw => self.rng.below(100) >= u64::from(fio.rwmixread),
            };
        let (mut version, mut expected) = (0, None);
        if verify && write {
            version = self.versions.next(block);
        } else if verify {
            version = self.versions.version(block);
            expected = if version == 0 { initial } else { Some(version) };
        }
        self.issued += 1;
        let start = self.base + block * fio.bs as u64;
        let mut parts = std::mem::take(&mut self.slots[slot].parts);
        self.cut(fio, start, most, &mut parts);
        self.busy[slot] = block;
        let place = &mut self.slots[slot];
        (place.block, place.write, place.version) = (block, write, version);
        (place.since, place.busy, place.parts) = (now, true, parts);
        (place.expected, place.outcome) = (expected, Outcome::Done);
    }

    fn choose_block(&mut self, random: bool) -> u64 {
        let mut block = if random { self.rng.below(self.blocks) } else { self.next };
        // No two transfers of one block at a time: the result would be undefined.
        while self.busy.contains(&block) {
            block = (block + 1) % self.blocks;
        }
        if !random {
            self.next = (block + 1) % self.blocks;
        }
        block
    }

    /// Splits a transfer into its parts on the drives.
    fn cut(&self, fio: &Fio, start: u64, most: u64, parts: &mut Vec<Part>) {
        parts.clear();
        let bs = fio.bs as u64;
        if fio.stripe == 0 || self.drives.len() == 1 {
            let whole = Part { drive: self.drives[0], offset: start, at: 0, length: bs };
            return whole.cut(most, parts);
        }
        let (stripe, drives) = (fio.stripe as u64, self.drives.len() as u64);
        let mut at = 0;
        while at < bs {
            let place = start + at;
            let (unit, inside) = (place / stripe, place % stripe);
            let length = (stripe - inside).min(bs - at);
            let drive = self.drives[(unit % drives) as usize];
            Part { drive, offset: unit / drives * stripe + inside, at, length }.cut(most, parts);
            at += length;
        }
    }
}
