//! Jobs as in fio: commands in flight, CPU time, verification of data. A block here has `bs` bytes,
//! as in fio.

mod steps;

use crate::job::Job;
use crate::{Agenda, CommandKey, Costs, Fio, Observer, Outcome, Tally, Work, Written};
use nvme::initiator::Driver;
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
    /// The next command may begin, after an interval of the rate or a pause.
    Issue { job: usize, slot: usize },
}

/// A queue of a drive.
#[derive(Debug, Default)]
struct Queue {
    /// Completions were signalled and are not yet handled.
    signalled: bool,
    /// The doorbell of its new commands follows at the end of the turn.
    unannounced: bool,
    /// Job and slot by command identifier.
    owners: Vec<Option<(usize, usize)>>,
}

/// How jobs are executed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPU time of a command.
    pub costs: Costs,
    /// One doorbell for all commands of a queue that one [`Work::run`] submits, as in drivers that
    /// submit in batches. Otherwise one doorbell per command.
    pub batch: bool,
    /// Verification of reads. Without it, writes carry the buffers' contents (not only zeroes), and
    /// nothing is compared.
    pub verification: Option<Verification>,
    /// Seeds the order of blocks and the mix of reads and writes.
    pub random: Random,
}

/// The expected contents of drives: the pattern of a seed and a number of writes
/// ([`crate::pattern`]).
#[derive(Clone, Debug)]
pub struct Verification {
    /// The seed of each drive.
    pub patterns: Vec<u64>,
    /// The version of blocks that these jobs have not written; with `None` such blocks are not
    /// compared.
    pub initial: Option<u32>,
}

/// A driver whose queue pairs are shared between several [`Jobs`].
pub type SharedDriver = Rc<RefCell<Driver>>;

/// The jobs of a host.
#[derive(Debug)]
pub struct Jobs {
    fio: Fio,
    settings: Settings,
    end: Option<Instant>,
    drives: Vec<SharedDriver>,
    /// The queue of the first job. Lower queues belong to other jobs.
    first_queue: usize,
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
    /// Jobs that begin at `start` on drives checked by [`Fio::check`]; `None` if memory is too
    /// small for iodepth × bs × numjobs.
    pub fn new(
        start: Instant,
        fio: Fio,
        settings: Settings,
        drives: Vec<Driver>,
        ram: Rc<RefCell<Ram>>,
    ) -> Option<Self> {
        let share = |driver| Rc::new(RefCell::new(driver));
        Self::beside(start, fio, settings, drives.into_iter().map(share).collect(), 0, ram)
    }

    /// Jobs that run in addition to others on the same drives. Job n uses queue `first_queue` + n
    /// of each drive, counted from 0, exclusively. Otherwise as [`new`](Self::new).
    pub fn beside(
        start: Instant,
        fio: Fio,
        settings: Settings,
        drives: Vec<SharedDriver>,
        first_queue: usize,
        ram: Rc<RefCell<Ram>>,
    ) -> Option<Self> {
        let (count, verify) = (drives.len(), settings.verification.is_some());
        let random = &settings.random;
        let job = |number| {
            let ram = &mut ram.borrow_mut();
            let places = (number, first_queue);
            Job::new(places, start, &fio, count, verify, ram, random.clone())
        };
        let jobs = (0..fio.numjobs).map(job).collect::<Option<_>>()?;
        let queues =
            |drive: &SharedDriver| (0..drive.borrow().queues()).map(|_| Queue::default()).collect();
        let queues = drives.iter().map(queues).collect();
        let shift = |drive: &SharedDriver| {
            fio.namespace(&drive.borrow()).map_or(9, |namespace| namespace.block_shift)
        };
        let most = drives.iter().map(|drive| drive.borrow().max_transfer()).min();
        let most = most.unwrap_or(0) as u64;
        Some(Self {
            end: fio.runtime.map(|span| start + span),
            block_shifts: drives.iter().map(shift).collect(),
            most,
            first_queue,
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

    /// Adds earlier writes to a drive, so that reads are compared with them.
    pub fn add_known_writes(&mut self, drive: usize, written: &[Written]) {
        let bs = self.fio.bs as u64;
        for job in self.jobs.iter_mut().filter(|job| job.drives.contains(&drive)) {
            job.add_known_writes(bs, written);
        }
    }

    /// A drive lost its contents. Reads of earlier data are not compared.
    pub fn forget(&mut self, drive: usize) {
        if self.settings.verification.is_some() {
            self.jobs.iter_mut().for_each(|job| job.forget(drive));
        }
    }

    /// Excludes the following transfers from the results, until
    /// [`measure_from`](Self::measure_from).
    pub fn ramp(&mut self) {
        self.end = None;
    }

    /// Counts and limits from `now` on, as at the end of fio's `ramp_time`. Earlier transfers do
    /// not count for size and number, and the runtime begins.
    pub fn measure_from(&mut self, now: Instant) {
        self.end = self.fio.runtime.map(|span| now + span);
        self.jobs.iter_mut().for_each(|job| job.issued = 0);
        self.tally = Tally { drive_bytes: vec![0; self.drives.len()], ..Tally::default() };
    }

    /// Starts no more transfers. [`Work::is_done`] returns true after the transfers under way have
    /// ended.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.agenda.retain(|action| !matches!(action, Action::Issue { .. }));
    }

    /// Prepares to read back every written block with certain contents, once. Call it when all is
    /// done, then [start](Work::start) again. Returns whether there is such a block.
    pub fn read_back(&mut self) -> bool {
        (self.end, self.fio.rate, self.fio.thinktime) = (None, None, Duration::ZERO);
        for job in &mut self.jobs {
            let certain = job.versions.written().filter(|(.., certain)| *certain);
            job.read_back = Some(certain.map(|(block, ..)| block).collect());
            job.issued = 0;
            job.resting.clear();
        }
        !self.stopped && self.jobs.iter().any(|job| !job.is_exhausted(None))
    }

    /// Checks that a returned drive can do what the former one did.
    ///
    /// # Errors
    /// As [`Fio::check`], or if the drive has too few queue pairs.
    pub fn check(&self, drive: &Driver) -> Result<(), &'static str> {
        if drive.queues() < self.first_queue + self.jobs.len() {
            return Err("the drive has fewer queue pairs than before");
        }
        self.fio.check([drive])
    }

    /// A drive is back, and its shared driver was replaced. With `new_contents` it has its initial
    /// contents, and commands that waited for it fail.
    pub fn resume(&mut self, now: Instant, drive: usize, new_contents: bool) {
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

    /// The job that uses a queue, if it is one of these jobs.
    fn job_of(&self, queue: usize) -> Option<usize> {
        queue.checked_sub(self.first_queue).filter(|job| *job < self.jobs.len())
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
        if self.job_of(queue).is_none() {
            return;
        }
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
            self.drives[drive].borrow_mut().ring(queue);
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
        self.drives[drive].replace(driver);
        self.resume(now, drive, new_contents);
    }
}
