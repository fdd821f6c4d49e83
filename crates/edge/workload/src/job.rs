//! One job: the part of the drives that the job uses, and the choice of transfers.

use crate::pattern::fill;
use crate::versions::Versions;
use crate::{Cpu, Fio, Outcome, Rw, Written};
use pcie::Ram;
use stats::random::Random;
use wire::Instant;

/// The block of a slot that is not busy.
const NONE: u64 = u64::MAX;

/// A part of a transfer that is one command for one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub drive: usize,
    pub offset: u64,
    /// Byte offset in the slot's buffer.
    pub at: u64,
    pub length: u64,
}

impl Part {
    /// Splits the part into parts of at most `most` bytes and appends them to `parts`, as Linux
    /// does (`blk_mq_submit_bio`).
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
    /// The version of the block when the read was chosen; `None` for a write and if the version is
    /// not known.
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
    /// Byte offset of the job's part on the drives.
    pub base: u64,
    pub cpu: Cpu,
    rng: Random,
    pub slots: Vec<Slot>,
    /// The block of each slot, or `NONE` if the slot is not busy. It is a separate array because
    /// every choice of a block reads all entries.
    busy: Vec<u64>,
    pub blocks: u64,
    next: u64,
    pub issued: u64,
    /// The earliest time of the next transfer, which start, rate and pauses determine.
    pub next_issue: Instant,
    /// Number of transfers that ended since the last pause.
    pub since_pause: u64,
    /// Slots that wait until the next pause begins.
    pub resting: Vec<usize>,
    pub versions: Versions,
    /// The blocks to read back; `None` before [`Jobs::read_back`](crate::Jobs::read_back).
    pub read_back: Option<Vec<u64>>,
}

impl Job {
    /// Creates job `number` of a workload. Workloads before this one have `others` jobs. The
    /// buffers are in `ram`; `None` if `ram` is too small.
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
                // The buffers do not contain only zeroes, because some media handle zeroes faster
                // than other data.
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
            cpu: Cpu::default(),
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

    /// Whether all transfers have been issued: all blocks to read back, or `transfers` transfers
    /// (`None`: no limit).
    pub(crate) fn is_exhausted(&self, transfers: Option<u64>) -> bool {
        let all = self.read_back.as_ref().map(|blocks| blocks.len() as u64).or(transfers);
        all.is_some_and(|all| self.issued >= all)
    }

    /// Adds earlier writes to the job's drive, for example by another host. `bs` is the block size
    /// in bytes.
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
                // With stripes, the affected blocks are not computed: all blocks become uncertain.
                _ => (0..self.blocks).for_each(|block| self.versions.doubt(block)),
            }
        }
    }

    /// The writes of the job, in blocks of `length` bytes, as seen by each drive of the job. With
    /// stripes, each write covers the whole drive and has no version.
    pub(crate) fn written(&self, length: u64) -> impl Iterator<Item = Written> + '_ {
        let striped = self.drives.len() > 1;
        self.versions.written().map(move |(block, version, certain)| Written {
            offset: if striped { 0 } else { self.base + block * length },
            length: if striped { u64::MAX } else { length },
            version: (!striped && certain).then_some(version),
        })
    }

    /// Handles the loss of a drive's contents: the drive has its initial contents again. Writes in
    /// flight count as writes to the new contents; reads in flight are not compared.
    pub(crate) fn forget(&mut self, drive: usize) {
        if !self.drives.contains(&drive) {
            return;
        }
        if self.drives.len() > 1 {
            // With stripes, the affected blocks are not computed: all blocks become uncertain.
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

/// The choice of transfers.
impl Job {
    /// Chooses the next transfer of a slot, and splits it into commands of at most `most` bytes.
    /// With `verify`, the versions of blocks are tracked; `initial` is the version of blocks that
    /// the job has not written (`None`: not known).
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
        // A block has only one transfer at a time, because the result of two would be undefined.
        while self.busy.contains(&block) {
            block = (block + 1) % self.blocks;
        }
        if !random {
            self.next = (block + 1) % self.blocks;
        }
        block
    }

    /// Splits a transfer of `bs` bytes from byte `start` on into parts, each on one drive and of at
    /// most `most` bytes.
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
