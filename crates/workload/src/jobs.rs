//! Jobs as of fio: commands in flight, CPU time, verification of data. A block
//! here has `bs` bytes, as in fio.

use crate::job::{Job, Part};
use crate::pattern::{fill, first_difference, matches};
use crate::{
    Agenda, CommandKey, Costs, Fio, Mismatch, Observer, Outcome, Submission, Tally, Transfer, Work,
    Written, occupy,
};
use nvme::initiator::{Driver, Io, Op};
use pcie::Ram;
use stats::random::Random;
use std::cell::RefCell;
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

/// A queue of a drive.
#[derive(Debug, Default)]
struct Queue {
    /// Its completions were signalled and are not handled yet.
    signalled: bool,
    /// It has commands whose doorbell follows at the end of the turn.
    unannounced: bool,
    /// Job and slot by command identifier.
    owners: Vec<Option<(usize, usize)>>,
}

/// How jobs are carried out.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPU time of a command.
    pub costs: Costs,
    /// One doorbell for all commands of a queue that one [`Work::run`] submits, as drivers do that
    /// submit in batches; otherwise a doorbell a command.
    pub batch: bool,
    /// Whether writes have data by which reads are checked; otherwise what is in the buffers is
    /// written (not only zeroes), and nothing is compared.
    pub verification: Option<Verification>,
    /// Seeds the order of blocks and of reads and writes.
    pub random: Random,
}

/// What drives hold: the pattern of a seed after so many writes ([`crate::pattern`]).
#[derive(Clone, Debug)]
pub struct Verification {
    /// The seed of each drive.
    pub patterns: Vec<u64>,
    /// The version of blocks that these jobs have not written; `None`: they hold anything, and are
    /// not compared.
    pub initial: Option<u32>,
}

/// The jobs of a host.
#[derive(Debug)]
pub struct Jobs {
    fio: Fio,
    settings: Settings,
    end: Option<Instant>,
    drives: Vec<Driver>,
    /// By drive: log2 of the bytes of a logical block.
    block_shifts: Vec<u8>,
    /// Bytes of the largest command.
    most: u64,
    ram: Rc<RefCell<Ram>>,
    jobs: Vec<Job>,
    agenda: Agenda<Action>,
    /// By drive and queue.
    queues: Vec<Vec<Queue>>,
    /// Queues with commands whose doorbells follow.
    unannounced: Vec<(usize, usize)>,
    in_flight: usize,
    /// Drives whose link is down, and slots that wait for them.
    missing: Vec<bool>,
    /// Drives that are being released.
    released: Vec<bool>,
    /// No transfer begins any more.
    stopped: bool,
    parked: Vec<(usize, usize)>,
    tally: Tally,
}

impl Jobs {
    /// Jobs that begin at `start` on drives that [`Fio::check`] has found fit; `None` if memory is
    /// too small for iodepth × bs × numjobs.
    pub fn new(
        start: Instant,
        fio: Fio,
        settings: Settings,
        drives: Vec<Driver>,
        ram: Rc<RefCell<Ram>>,
    ) -> Option<Self> {
        let (count, verify) = (drives.len(), settings.verification.is_some());
        let random = &settings.random;
        let job = |number| {
            let ram = &mut ram.borrow_mut();
            Job::new(number, start, &fio, count, verify, ram, random.clone())
        };
        let jobs = (0..fio.numjobs).map(job).collect::<Option<_>>()?;
        let queues = |drive: &Driver| (0..drive.queues()).map(|_| Queue::default());
        let queues = drives.iter().map(|drive| queues(drive).collect()).collect();
        let shift = |drive| fio.namespace(drive).map_or(9, |namespace| namespace.block_shift);
        let most = drives.iter().map(Driver::max_transfer).min().unwrap_or(0) as u64;
        Some(Self {
            end: fio.runtime.map(|span| start + span),
            block_shifts: drives.iter().map(shift).collect(),
            most,
            fio,
            settings,
            ram,
            jobs,
            agenda: Agenda::default(),
            queues,
            unannounced: Vec::new(),
            in_flight: 0,
            missing: vec![false; count],
            released: vec![false; count],
            stopped: false,
            parked: Vec::new(),
            tally: Tally { drive_bytes: vec![0; count], ..Tally::default() },
            drives,
        })
    }

    /// Adds what was written to a drive before, to compare reads with it.
    pub fn add_known_writes(&mut self, drive: usize, written: &[Written]) {
        let bs = self.fio.bs as u64;
        for job in self.jobs.iter_mut().filter(|job| job.drives.contains(&drive)) {
            job.add_known_writes(bs, written);
        }
    }

    /// A drive lost its contents. Reads of what was written before are not compared.
    pub fn forget(&mut self, drive: usize) {
        if self.settings.verification.is_some() {
            self.jobs.iter_mut().for_each(|job| job.forget(drive));
        }
    }

    /// Begins no more transfers. [`Work::is_done`] holds when those under way have ended.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.agenda.retain(|action| !matches!(action, Action::Issue { .. }));
    }

    /// Once all is done: reads every block back that was written and is certain, once. To be
    /// [started](Work::start) again. Whether there is any.
    pub fn read_back(&mut self) -> bool {
        (self.end, self.fio.rate, self.fio.thinktime) = (None, None, Duration::ZERO);
        for job in &mut self.jobs {
            let certain = job.versions.written().filter(|(.., certain)| *certain);
            job.read_back = Some(certain.map(|(block, ..)| block).collect());
            job.issued = 0;
            job.resting.clear();
        }
        !self.stopped && self.jobs.iter().any(|job| !job.is_exhausted())
    }

    /// [`nvme::initiator::Error::Timeout`] if a command should have been done before `now`.
    ///
    /// # Errors
    /// As [`Driver::check_timeouts`].
    pub fn check_timeouts(&mut self, now: Instant) -> Result<(), nvme::initiator::Error> {
        self.drives.iter_mut().try_for_each(|drive| drive.check_timeouts(now))
    }

    /// Checks that a drive that comes back can do what the one before did.
    ///
    /// # Errors
    /// As [`Fio::check`].
    pub fn check(&self, drive: &Driver) -> Result<(), &'static str> {
        self.fio.check([drive])
    }

    /// The drives, for whoever works on them next.
    pub fn into_drives(self) -> Vec<Driver> {
        self.drives
    }

    /// Starts the application's next transfer, if there is one.
    fn issue(&mut self, now: Instant, number: usize, slot: usize) {
        let job = &mut self.jobs[number];
        let over = match self.end {
            Some(end) => now >= end,
            None => job.is_exhausted(),
        };
        if over || self.stopped || job.drives.iter().any(|drive| self.released[*drive]) {
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
        let verification = self.settings.verification.as_ref();
        let initial = verification.and_then(|verification| verification.initial);
        job.choose(&self.fio, slot, now, self.most, (verification.is_some(), initial));
        let at = occupy(&mut job.cpu, now, self.settings.costs.submit);
        self.in_flight += 1;
        self.agenda.schedule(at, Action::Submit { job: number, slot });
    }

    fn submit(&mut self, now: Instant, number: usize, slot: usize, observer: &mut dyn Observer) {
        let queue = self.jobs[number].queue;
        if self.jobs[number].slots[slot].parts.iter().any(|part| self.missing[part.drive]) {
            return self.parked.push((number, slot));
        }
        let parts = std::mem::take(&mut self.jobs[number].slots[slot].parts);
        for part in &parts {
            let place = &self.jobs[number].slots[slot];
            let buffer = place.buffer + part.at;
            if let (true, Some(verification)) = (place.write, &self.settings.verification) {
                let mut ram = self.ram.borrow_mut();
                let bytes = ram.get_mut(buffer, part.length as usize).expect("our own buffer");
                fill(verification.patterns[part.drive], part.offset, place.version, bytes);
            }
            let (since, op) = (place.since, if place.write { Op::Write } else { Op::Read });
            let Part { drive, offset, length, .. } = *part;
            let shift = self.block_shifts[drive];
            let (slba, blocks) = (offset >> shift, (length >> shift) as u32);
            let io = Io { op, nsid: self.fio.nsid, slba, blocks, buffer };
            let prepared = self.drives[drive].prepare(now, queue, io);
            let id = prepared.expect("a queue holds its job's commands").get();
            let key = CommandKey::new(drive, queue, id);
            self.queues[drive][queue].own(id, (number, slot));
            observer.submit(now, Submission { key, since, op, offset, buffer, length });
            self.announce(drive, queue);
        }
        let place = &mut self.jobs[number].slots[slot];
        place.left = parts.len();
        place.parts = parts;
    }

    /// Rings the doorbell of a queue with a new command, or lets it follow.
    fn announce(&mut self, drive: usize, queue: usize) {
        if !self.settings.batch {
            self.drives[drive].ring(queue);
        } else if !std::mem::replace(&mut self.queues[drive][queue].unannounced, true) {
            self.unannounced.push((drive, queue));
        }
    }

    fn reap(&mut self, now: Instant, drive: usize, queue: usize, observer: &mut dyn Observer) {
        // Queue n is served by the CPU of job n.
        let cpu = self.jobs[queue].cpu;
        if cpu > now {
            return self.agenda.schedule(cpu, Action::Reap { drive, queue });
        }
        if !std::mem::take(&mut self.queues[drive][queue].signalled) || self.missing[drive] {
            // The drive was lost meanwhile.
            return;
        }
        for done in self.drives[drive].reap(queue) {
            let owner = self.queues[drive][queue].owners[usize::from(done.id.get())].take();
            let (number, slot) = owner.expect("it was submitted");
            let at = occupy(&mut self.jobs[number].cpu, now, self.settings.costs.complete);
            observer.finish(at, CommandKey::new(drive, queue, done.id.get()));
            let place = &mut self.jobs[number].slots[slot];
            if !done.status.is_success() {
                self.tally.failures += 1;
                if place.outcome == Outcome::Done {
                    place.outcome = Outcome::Failed(done.status);
                }
            }
            place.left -= 1;
            if place.left == 0 {
                self.agenda.schedule(at, Action::Complete { job: number, slot });
            }
        }
    }

    fn complete(&mut self, now: Instant, number: usize, slot: usize, observer: &mut dyn Observer) {
        self.in_flight -= 1;
        let job = &mut self.jobs[number];
        job.release(slot);
        job.since_pause += 1;
        let place = &job.slots[slot];
        let (block, done) = (place.block, place.outcome == Outcome::Done);
        let mut transfer = Transfer {
            job: number,
            op: if place.write { Op::Write } else { Op::Read },
            offset: job.base + block * self.fio.bs as u64,
            length: self.fio.bs as u64,
            since: place.since,
            outcome: place.outcome,
            compared: 0,
            reads_back: job.read_back.is_some(),
        };
        if done {
            self.tally.latency.record(now - place.since);
            self.tally.bytes += self.fio.bs as u64;
            for part in &place.parts {
                self.tally.drive_bytes[part.drive] += part.length;
            }
        }
        match (&self.settings.verification, place.write, done) {
            (Some(_), true, true) => job.versions.confirm(block),
            (Some(_), true, false) => job.versions.doubt(block),
            (Some(_), false, true) => transfer.compared = self.compare(number, slot, observer),
            _ => {}
        }
        observer.transfer(now, &transfer);
        self.issue(now, number, slot);
    }

    /// Compares what a read returned with what it should be, if that is known. Yields the bytes.
    fn compare(&mut self, number: usize, slot: usize, observer: &mut dyn Observer) -> u64 {
        let (job, place) = (&self.jobs[number], &self.jobs[number].slots[slot]);
        let (Some(version), Some(verification), true) =
            (place.expected, &self.settings.verification, job.versions.is_certain(place.block))
        else {
            return 0;
        };
        let mut ram = self.ram.borrow_mut();
        for Part { drive, offset, at, length } in place.parts.iter().copied() {
            let bytes = ram.get(place.buffer + at, length as usize).expect("our own buffer");
            let pattern = verification.patterns[drive];
            self.tally.verified += length >> self.block_shifts[drive];
            if matches(pattern, offset, version, bytes) {
                continue;
            }
            self.tally.mismatches += 1;
            if let Some((index, expected)) = first_difference(pattern, offset, version, bytes) {
                let (found, offset) = (bytes[index], offset + index as u64);
                observer.mismatch(&Mismatch { job: number, drive, offset, expected, found });
            }
        }
        self.fio.bs as u64
    }

    /// Ends a transfer whose command was lost.
    fn lose(&mut self, now: Instant, number: usize, slot: usize) {
        self.tally.failures += 1;
        self.jobs[number].slots[slot].outcome = Outcome::Lost;
        self.agenda.schedule(now, Action::Complete { job: number, slot });
    }
}

impl Queue {
    fn own(&mut self, id: u16, owner: (usize, usize)) {
        let id = usize::from(id);
        if self.owners.len() <= id {
            self.owners.resize(id + 1, None);
        }
        self.owners[id] = Some(owner);
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
            let at = self.settings.costs.completions.after(now);
            self.agenda.schedule(at, Action::Reap { drive, queue });
        }
    }

    fn run(&mut self, now: Instant, observer: &mut dyn Observer) {
        while let Some(action) = self.agenda.due(now) {
            match action {
                Action::Issue { job, slot } => self.issue(now, job, slot),
                Action::Submit { job, slot } => self.submit(now, job, slot, observer),
                Action::Reap { drive, queue } => self.reap(now, drive, queue, observer),
                Action::Complete { job, slot } => self.complete(now, job, slot, observer),
            }
        }
        for (drive, queue) in self.unannounced.drain(..) {
            self.queues[drive][queue].unannounced = false;
            self.drives[drive].ring(queue);
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
        jobs.flat_map(|job| job.written(length)).collect()
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn drive_lost(&mut self, now: Instant, drive: usize, observer: &mut dyn Observer) {
        self.missing[drive] = true;
        for queue in 0..self.queues[drive].len() {
            let owners = std::mem::take(&mut self.queues[drive][queue].owners);
            for (id, owner) in (0..).zip(owners) {
                let Some((number, slot)) = owner else { continue };
                observer.discard(CommandKey::new(drive, queue, id));
                let place = &mut self.jobs[number].slots[slot];
                place.outcome = Outcome::Lost;
                place.left -= 1;
                self.tally.failures += 1;
                if place.left == 0 {
                    self.agenda.schedule(now, Action::Complete { job: number, slot });
                }
            }
        }
    }

    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool) {
        self.drives[drive] = driver;
        self.missing[drive] = false;
        if new_contents {
            self.forget(drive);
        }
        for (job, slot) in std::mem::take(&mut self.parked) {
            let parts = &self.jobs[job].slots[slot].parts;
            if new_contents && parts.iter().any(|part| part.drive == drive) {
                self.lose(now, job, slot);
            } else {
                self.agenda.schedule(now, Action::Submit { job, slot });
            }
        }
    }
}
