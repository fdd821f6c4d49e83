//! Jobs as of fio: commands in flight, CPU time, verification of data. A block
//! here has `bs` bytes, as in fio.

use super::boot::NvmeDrive;
use super::work::{Agenda, Tally, Work, Written, occupy};
use super::{Fio, LBA_SIZE, Rw, SoftwareConfig};
use crate::drive::{MAX_TRANSFER, fill, matches};
use crate::measure::{CommandKey, Submission, Tracker};
use nvme::initiator::{Driver, Io, Op};
use pcie::Ram;
use stats::random::Random;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use wire::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// The CPU has prepared the command of a slot.
    Submit { job: usize, slot: usize },
    /// The handler of a queue starts.
    Reap { drive: usize, queue: usize },
    /// The application has its result.
    Complete { job: usize, slot: usize },
    /// The next command may begin: by its rate, or after a pause.
    Issue { job: usize, slot: usize },
}

/// One piece of a transfer on one drive.
#[derive(Clone, Copy, Debug)]
struct Part {
    drive: usize,
    offset: u64,
    /// Offset in the slot's buffer.
    at: u64,
    length: u64,
}

impl Part {
    /// Splits it into commands of the largest transfer, as Linux does (`blk_mq_submit_bio`).
    fn cut(self, parts: &mut Vec<Self>) {
        let mut done = 0;
        while done < self.length {
            let length = (self.length - done).min(MAX_TRANSFER as u64);
            let (offset, at) = (self.offset + done, self.at + done);
            parts.push(Self { offset, at, length, ..self });
            done += length;
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    buffer: u64,
    since: Instant,
    block: u64,
    write: bool,
    version: u32,
    busy: bool,
    /// One of its commands was lost.
    lost: bool,
    parts: Vec<Part>,
    left: usize,
}

#[derive(Debug)]
struct Job {
    drives: Vec<usize>,
    queue: usize,
    /// First byte of its part of the drives.
    base: u64,
    cpu: Instant,
    rng: Random,
    slots: Vec<Slot>,
    blocks: u64,
    next: u64,
    issued: u64,
    /// When the rate, the start or a pause allows the next command.
    next_issue: Instant,
    /// Transfers that ended since the last pause.
    since_pause: u64,
    /// Slots that wait for the next pause to begin.
    resting: Vec<usize>,
    versions: BTreeMap<u64, u32>,
    /// Blocks whose last write may or may not have been executed.
    uncertain: BTreeSet<u64>,
}

/// A queue of a drive.
#[derive(Debug, Default)]
struct Queue {
    /// Its completions were signalled and are not handled yet.
    signalled: bool,
    /// Job and slot by command identifier.
    owners: BTreeMap<u16, (usize, usize)>,
}

/// The jobs of a host.
#[derive(Debug)]
pub(super) struct Jobs {
    fio: Fio,
    config: SoftwareConfig,
    end: Option<Instant>,
    drives: Vec<NvmeDrive>,
    /// Seed of each drive's initial contents.
    patterns: Vec<u64>,
    ram: Rc<RefCell<Ram>>,
    jobs: Vec<Job>,
    agenda: Agenda<Action>,
    /// By drive and queue.
    queues: Vec<Vec<Queue>>,
    in_flight: usize,
    /// Drives whose link is down, and slots that wait for them.
    missing: Vec<bool>,
    /// Drives that are being released.
    released: Vec<bool>,
    parked: Vec<(usize, usize)>,
    tally: Tally,
}

impl Jobs {
    /// Jobs that begin at `start`; `None` if memory is too small.
    pub(super) fn new(
        start: Instant,
        fio: Fio,
        config: SoftwareConfig,
        drives: Vec<NvmeDrive>,
        patterns: Vec<u64>,
        ram: Rc<RefCell<Ram>>,
        rng: &Random,
    ) -> Option<Self> {
        let mut jobs = Vec::new();
        for number in 0..fio.numjobs {
            jobs.push(Job::new(number, start, &fio, drives.len(), &ram, rng.clone())?);
        }
        let queues = |drive: &NvmeDrive| (0..drive.driver.queues()).map(|_| Queue::default());
        let queues = drives.iter().map(|drive| queues(drive).collect()).collect();
        let drive_bytes = vec![0; drives.len()];
        Some(Self {
            end: fio.runtime.map(|span| start + span),
            fio,
            config,
            drives,
            ram,
            jobs,
            agenda: Agenda::new(),
            queues,
            in_flight: 0,
            missing: vec![false; patterns.len()],
            released: vec![false; patterns.len()],
            patterns,
            parked: Vec::new(),
            tally: Tally { drive_bytes, ..Tally::default() },
        })
    }

    /// Adds what another host wrote to a drive, to compare reads with it.
    pub(super) fn add_known_writes(&mut self, drive: usize, written: &[Written]) {
        let bs = self.fio.bs as u64;
        for job in self.jobs.iter_mut().filter(|job| job.drives.contains(&drive)) {
            for Written { offset, length, version } in written.iter().copied() {
                let end = offset.saturating_add(length);
                let whole = job.drives.len() == 1 && length == bs && offset >= job.base;
                let block = offset.saturating_sub(job.base) / bs;
                match version {
                    Some(version) if whole && (offset - job.base).is_multiple_of(bs) => {
                        job.versions.insert(block, version);
                    }
                    _ if job.drives.len() == 1 => {
                        let last = end.saturating_sub(job.base).div_ceil(bs).min(job.blocks);
                        job.uncertain.extend(block.min(last)..last);
                    }
                    // Where a striped transfer lies is not worth the trouble.
                    _ => job.uncertain.extend(0..job.blocks),
                }
            }
        }
    }

    /// Starts the application's next transfer, if there is one.
    fn issue(&mut self, now: Instant, number: usize, slot: usize) {
        let job = &mut self.jobs[number];
        let over = match self.end {
            Some(end) => now >= end,
            None => job.issued >= job.blocks,
        };
        if over || job.drives.iter().any(|drive| self.released[*drive]) {
            return;
        }
        if job.since_pause >= self.fio.thinktime_blocks && self.fio.thinktime > Duration::ZERO {
            job.resting.push(slot);
            if job.slots.iter().any(|slot| slot.busy) {
                return;
            }
            job.since_pause = 0;
            job.next_issue = job.next_issue.max(now + self.fio.thinktime);
            for slot in std::mem::take(&mut job.resting) {
                self.agenda.schedule(job.next_issue, Action::Issue { job: number, slot });
            }
            return;
        }
        if job.next_issue > now {
            let at = job.next_issue;
            return self.agenda.schedule(at, Action::Issue { job: number, slot });
        }
        if let Some(interval) = self.fio.interval() {
            job.next_issue = job.next_issue.max(now) + interval;
        }
        job.choose(&self.fio, slot, now);
        let at = occupy(&mut job.cpu, now, self.config.submit);
        self.in_flight += 1;
        self.agenda.schedule(at, Action::Submit { job: number, slot });
    }

    fn submit(&mut self, now: Instant, number: usize, slot: usize, tracker: &mut Tracker) {
        let queue = self.jobs[number].queue;
        if self.jobs[number].slots[slot].parts.iter().any(|part| self.missing[part.drive]) {
            return self.parked.push((number, slot));
        }
        let parts = std::mem::take(&mut self.jobs[number].slots[slot].parts);
        for part in &parts {
            let place = &self.jobs[number].slots[slot];
            let buffer = place.buffer + part.at;
            if place.write {
                let mut ram = self.ram.borrow_mut();
                let bytes = ram.get_mut(buffer, part.length as usize).expect("our own buffer");
                fill(self.patterns[part.drive], part.offset, place.version, bytes);
            }
            let (since, op) = (place.since, if place.write { Op::Write } else { Op::Read });
            let Part { drive, offset, length, .. } = *part;
            let (slba, blocks) = (offset / LBA_SIZE, (length / LBA_SIZE) as u32);
            let io = Io { op, nsid: self.fio.nsid, slba, blocks, buffer };
            let driver = &mut self.drives[drive].driver;
            let id = driver.prepare(now, queue, io).expect("a queue holds its job's commands");
            let key = CommandKey::new(drive, queue, id.get());
            self.queues[drive][queue].owners.insert(key.id, (number, slot));
            tracker.submit(now, Submission { key, since, op, offset, buffer, length });
            driver.ring(queue);
        }
        let place = &mut self.jobs[number].slots[slot];
        place.left = parts.len();
        place.parts = parts;
    }

    fn reap(&mut self, now: Instant, drive: usize, queue: usize, tracker: &mut Tracker) {
        // Queue n is served by the CPU of job n.
        let cpu = self.jobs[queue].cpu;
        if cpu > now {
            return self.agenda.schedule(cpu, Action::Reap { drive, queue });
        }
        if !std::mem::take(&mut self.queues[drive][queue].signalled) || self.missing[drive] {
            // The drive was lost meanwhile.
            return;
        }
        for done in self.drives[drive].driver.reap(queue) {
            let owner = self.queues[drive][queue].owners.remove(&done.id.get());
            let (number, slot) = owner.expect("it was submitted");
            let at = occupy(&mut self.jobs[number].cpu, now, self.config.complete);
            let key = CommandKey::new(drive, queue, done.id.get());
            tracker.finish(at, key);
            self.tally.failures += u64::from(!done.status.is_success());
            let place = &mut self.jobs[number].slots[slot];
            place.left -= 1;
            if place.left == 0 {
                self.agenda.schedule(at, Action::Complete { job: number, slot });
            }
        }
    }

    fn complete(&mut self, now: Instant, number: usize, slot: usize) {
        let job = &mut self.jobs[number];
        let place = &mut job.slots[slot];
        place.busy = false;
        job.since_pause += 1;
        self.in_flight -= 1;
        if std::mem::take(&mut place.lost) {
            if place.write {
                job.uncertain.insert(place.block);
            }
            return self.issue(now, number, slot);
        }
        self.tally.latency.record(now - place.since);
        self.tally.bytes += self.fio.bs as u64;
        for part in &place.parts {
            self.tally.drive_bytes[part.drive] += part.length;
        }
        if place.write {
            job.uncertain.remove(&place.block);
        } else if !job.uncertain.contains(&place.block) {
            let mut ram = self.ram.borrow_mut();
            for part in &place.parts {
                let bytes = ram.get(place.buffer + part.at, part.length as usize);
                let bytes = bytes.expect("our own buffer");
                let right = matches(self.patterns[part.drive], part.offset, place.version, bytes);
                self.tally.mismatches += u64::from(!right);
                self.tally.verified += part.length / LBA_SIZE;
            }
        }
        self.issue(now, number, slot);
    }
}

impl Work for Jobs {
    fn start(&mut self, now: Instant) {
        for job in 0..self.jobs.len() {
            for slot in 0..self.jobs[job].slots.len() {
                self.issue(now, job, slot);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.in_flight == 0 && self.agenda.next().is_none()
    }

    fn next(&self) -> Option<Instant> {
        self.agenda.next()
    }

    fn signal(&mut self, now: Instant, drive: usize, queue: usize) {
        let known = self.queues.get_mut(drive).and_then(|queues| queues.get_mut(queue));
        if known.is_some_and(|queue| !std::mem::replace(&mut queue.signalled, true)) {
            let at = self.config.completions.after(now);
            self.agenda.schedule(at, Action::Reap { drive, queue });
        }
    }

    fn run(&mut self, now: Instant, tracker: &mut Tracker) {
        while let Some(action) = self.agenda.due(now) {
            match action {
                Action::Issue { job, slot } => self.issue(now, job, slot),
                Action::Submit { job, slot } => self.submit(now, job, slot, tracker),
                Action::Reap { drive, queue } => self.reap(now, drive, queue, tracker),
                Action::Complete { job, slot } => self.complete(now, job, slot),
            }
        }
    }

    fn release(&mut self, drive: usize) -> bool {
        self.released[drive] = true;
        let uses = |job: &&Job| job.drives.contains(&drive);
        !self.jobs.iter().filter(uses).any(|job| job.slots.iter().any(|slot| slot.busy))
    }

    fn written(&self, drive: usize) -> Vec<Written> {
        let length = self.fio.bs as u64;
        let jobs = self.jobs.iter().filter(|job| job.drives.contains(&drive));
        jobs.flat_map(|job| {
            let striped = job.drives.len() > 1;
            job.versions.iter().map(move |(block, version)| Written {
                offset: if striped { 0 } else { job.base + block * length },
                length: if striped { u64::MAX } else { length },
                version: (!striped && !job.uncertain.contains(block)).then_some(*version),
            })
        })
        .collect()
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn drive_lost(&mut self, now: Instant, drive: usize, tracker: &mut Tracker) {
        self.missing[drive] = true;
        for (queue, lost) in self.queues[drive].iter_mut().enumerate() {
            for (id, (number, slot)) in std::mem::take(lost).owners {
                tracker.discard(CommandKey::new(drive, queue, id));
                self.tally.failures += 1;
                let place = &mut self.jobs[number].slots[slot];
                place.lost = true;
                place.left -= 1;
                if place.left == 0 {
                    self.agenda.schedule(now, Action::Complete { job: number, slot });
                }
            }
        }
    }

    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool) {
        self.drives[drive].driver = driver;
        self.missing[drive] = false;
        if new_contents {
            self.jobs.iter_mut().for_each(|job| job.forget(drive));
        }
        for (job, slot) in std::mem::take(&mut self.parked) {
            let place = &mut self.jobs[job].slots[slot];
            if new_contents && place.parts.iter().any(|part| part.drive == drive) {
                place.lost = true;
                self.tally.failures += 1;
                self.agenda.schedule(now, Action::Complete { job, slot });
            } else {
                self.agenda.schedule(now, Action::Submit { job, slot });
            }
        }
    }
}

impl Job {
    fn new(
        number: usize,
        start: Instant,
        fio: &Fio,
        drives: usize,
        ram: &Rc<RefCell<Ram>>,
        mut rng: Random,
    ) -> Option<Self> {
        let mut slots = Vec::new();
        for _ in 0..fio.iodepth {
            let buffer = ram.borrow_mut().allocate(fio.bs, 4096)?;
            slots.push(Slot { buffer, ..Slot::default() });
        }
        (0..number).for_each(|_| {
            rng.bits();
        });
        let drives = match fio.stripe {
            0 => vec![number % drives],
            _ => (0..drives).collect(),
        };
        Some(Self {
            drives,
            queue: number,
            base: number as u64 * (fio.size / fio.bs as u64 * fio.bs as u64),
            cpu: Instant::ZERO,
            rng: Random::new(rng.bits()),
            slots,
            blocks: fio.size / fio.bs as u64,
            next: 0,
            issued: 0,
            next_issue: start,
            since_pause: 0,
            resting: Vec::new(),
            versions: BTreeMap::new(),
            uncertain: BTreeSet::new(),
        })
    }

    /// A drive lost its contents. Of transfers under way, writes count and reads are not compared.
    fn forget(&mut self, drive: usize) {
        if !self.drives.contains(&drive) {
            return;
        }
        if self.drives.len() > 1 {
            // Where a striped transfer lies is not worth the trouble.
            return self.uncertain.extend(0..self.blocks);
        }
        self.versions.clear();
        self.uncertain.clear();
        for slot in self.slots.iter().filter(|slot| slot.busy) {
            if slot.write {
                self.versions.insert(slot.block, slot.version);
            } else {
                self.uncertain.insert(slot.block);
            }
        }
    }

    /// Chooses the next transfer of a slot.
    fn choose(&mut self, fio: &Fio, slot: usize, now: Instant) {
        let random = matches!(fio.rw, Rw::RandRead | Rw::RandWrite | Rw::RandRw);
        let mut block = if random { self.rng.below(self.blocks) } else { self.next };
        // No two transfers of one block at a time: the result would be undefined.
        while self.slots.iter().any(|other| other.busy && other.block == block) {
            block = (block + 1) % self.blocks;
        }
        if !random {
            self.next = (block + 1) % self.blocks;
        }
        let write = match fio.rw {
            Rw::Read | Rw::RandRead => false,
            Rw::Write | Rw::RandWrite => true,
            Rw::Rw | Rw::RandRw => self.rng.below(100) >= u64::from(fio.rwmixread),
        };
        let version = if write {
            let version = self.versions.entry(block).or_default();
            *version += 1;
            *version
        } else {
            self.versions.get(&block).copied().unwrap_or(0)
        };
        self.issued += 1;
        let start = self.base + block * fio.bs as u64;
        let mut parts = std::mem::take(&mut self.slots[slot].parts);
        self.cut(fio, start, &mut parts);
        let place = &mut self.slots[slot];
        (place.block, place.write, place.version) = (block, write, version);
        (place.since, place.busy, place.parts) = (now, true, parts);
    }

    /// Splits a transfer into its parts on the drives.
    fn cut(&self, fio: &Fio, start: u64, parts: &mut Vec<Part>) {
        parts.clear();
        let bs = fio.bs as u64;
        if fio.stripe == 0 || self.drives.len() == 1 {
            let whole = Part { drive: self.drives[0], offset: start, at: 0, length: bs };
            return whole.cut(parts);
        }
        let (stripe, drives) = (fio.stripe as u64, self.drives.len() as u64);
        let mut at = 0;
        while at < bs {
            let place = start + at;
            let (unit, inside) = (place / stripe, place % stripe);
            let length = (stripe - inside).min(bs - at);
            let drive = self.drives[(unit % drives) as usize];
            Part { drive, offset: unit / drives * stripe + inside, at, length }.cut(parts);
            at += length;
        }
    }
}
