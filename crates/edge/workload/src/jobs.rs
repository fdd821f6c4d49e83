//! Jobs as in fio: commands in flight, CPU time, verification of data. As in fio, a block has `bs`
//! bytes.

mod steps;

use crate::job::Job;
use crate::{Agenda, CommandKey, Costs, Cpu, Fio, Observer, Outcome, Tally, Work, Written};
use nvme::initiator::Driver;
use pcie::Ram;
use stats::random::Random;
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Duration, Instant, earliest};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// The CPU has prepared the commands of a slot.
    Submit { job: usize, slot: usize },
    /// The handler of the completion queue begins.
    Reap { drive: usize, queue: usize },
    /// The application gets the result of the transfer.
    Complete { job: usize, slot: usize },
    /// The next transfer of the slot can begin, after an interval of the rate or a pause.
    Issue { job: usize, slot: usize },
}

/// A queue pair of a drive.
#[derive(Debug, Default)]
struct Queue {
    /// Whether completions were signalled that are not yet handled.
    signalled: bool,
    /// Whether the queue has new commands, whose doorbell is rung at the end of [`Work::run`].
    unannounced: bool,
    /// The job and the slot of each outstanding command, by command identifier.
    owners: Vec<Option<(usize, usize)>>,
}

/// How jobs are executed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPU times of each command.
    pub costs: Costs,
    /// Whether the doorbell of a queue is rung once for all commands that one [`Work::run`]
    /// submits, as in drivers that submit in batches. Otherwise the doorbell is rung for each
    /// command.
    pub batch: bool,
    /// Verification of reads. If `None`, the contents of the buffers are written (not only zeroes),
    /// and nothing is compared.
    pub verification: Option<Verification>,
    /// Seed of the order of blocks and of the mix of reads and writes.
    pub random: Random,
}

/// The expected contents of the drives: patterns that depend on a seed and on the number of writes
/// of a block ([`crate::pattern`]).
#[derive(Clone, Debug)]
pub struct Verification {
    /// The seed of the pattern of each drive.
    pub patterns: Vec<u64>,
    /// The version of blocks that these jobs have not written. If `None`, these blocks are not
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
    /// The number of the first job's queue, from 0. Queues with lower numbers belong to other jobs.
    first_queue: usize,
    /// For each drive, log2 of the logical block size in bytes.
    block_shifts: Vec<u8>,
    /// The maximum data transfer size of all drives in bytes.
    most: u64,
    ram: Rc<RefCell<Ram>>,
    jobs: Vec<Job>,
    /// The CPU that all jobs share; `None`: each job has its own.
    shared: Option<Cpu>,
    agenda: Agenda<Action>,
    /// The queues of each drive.
    queues: Vec<Vec<Queue>>,
    /// Drive and queue of the queues whose doorbells must be rung at the end of [`Work::run`].
    unannounced: Vec<(usize, usize)>,
    in_flight: usize,
    /// Whether each drive is lost. Transfers for a lost drive wait in `parked`.
    missing: Vec<bool>,
    /// Whether each drive is being released: no transfer begins on it.
    released: Vec<bool>,
    /// Whether no more transfers begin, after [`stop`](Self::stop).
    stopped: bool,
    parked: Vec<(usize, usize)>,
    tally: Tally,
}

impl Jobs {
    /// Creates jobs that begin at `start`. The drives must have passed [`Fio::check`]. `None` if
    /// `ram` has no room for iodepth × bs × numjobs bytes.
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

    /// Creates jobs that run in addition to other jobs on the same drives. Only job n uses queue
    /// `first_queue` + n of each drive; queues are counted from 0. Otherwise as [`new`](Self::new).
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
            shared: None,
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

    /// Makes all jobs share `cpu`, also for the latency of interrupts. With [`Settings::batch`],
    /// doorbells are rung when this CPU is free.
    pub fn share_cpu(&mut self, cpu: &Cpu) {
        self.jobs.iter_mut().for_each(|job| job.cpu = cpu.clone());
        self.shared = Some(cpu.clone());
    }

    /// Adds earlier writes to a drive, so that reads are compared with the written data.
    pub fn add_known_writes(&mut self, drive: usize, written: &[Written]) {
        let bs = self.fio.bs as u64;
        for job in self.jobs.iter_mut().filter(|job| job.drives.contains(&drive)) {
            job.add_known_writes(bs, written);
        }
    }

    /// Handles the loss of a drive's contents: the drive has its initial contents again. Reads in
    /// flight are not compared.
    pub fn forget(&mut self, drive: usize) {
        if self.settings.verification.is_some() {
            self.jobs.iter_mut().for_each(|job| job.forget(drive));
        }
    }

    /// Begins a ramp time, as fio's `ramp_time`, which lasts until
    /// [`measure_from`](Self::measure_from). During the ramp time `runtime` does not end the jobs.
    pub fn ramp(&mut self) {
        self.end = None;
    }

    /// Ends the ramp time: clears the results, and applies the limits of size, number and runtime
    /// from `now` on, as at the end of fio's `ramp_time`.
    pub fn measure_from(&mut self, now: Instant) {
        self.end = self.fio.runtime.map(|span| now + span);
        self.jobs.iter_mut().for_each(|job| job.issued = 0);
        self.tally = Tally { drive_bytes: vec![0; self.drives.len()], ..Tally::default() };
    }

    /// Ends the jobs. Returns the results.
    pub fn into_tally(self) -> Tally {
        self.tally
    }

    /// Stops the jobs: no more transfers begin, also not those that wait for a lost drive.
    /// [`Work::is_done`] returns true after the transfers in flight have ended.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.in_flight -= std::mem::take(&mut self.parked).len();
        self.agenda.retain(|action| !matches!(action, Action::Issue { .. }));
    }

    /// Prepares to read back once all written blocks whose contents are certain. Call this method
    /// when [`Work::is_done`] returns true, then call [`Work::start`]. Returns whether there is a
    /// block to read back; false after [`stop`](Self::stop).
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

    /// Checks that a drive that replaces a lost drive can run the jobs.
    ///
    /// # Errors
    /// The reason: as [`Fio::check`], or the drive has fewer queue pairs than the jobs use.
    pub fn check(&self, drive: &Driver) -> Result<(), &'static str> {
        if drive.queues() < self.first_queue + self.jobs.len() {
            return Err("the drive has fewer queue pairs than before");
        }
        self.fio.check([drive])
    }

    /// Continues the jobs on a drive that was lost and has returned, after the shared driver was
    /// replaced. `new_contents` means that the drive has its initial contents; then transfers that
    /// waited for the drive fail.
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

    /// The job that uses a queue; `None` if other jobs use it.
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
        let free = self.shared.as_ref().filter(|_| !self.unannounced.is_empty());
        earliest([self.agenda.next(), free.map(Cpu::free_at)])
    }

    fn signal(&mut self, now: Instant, drive: usize, queue: usize) {
        if self.job_of(queue).is_none() {
            return;
        }
        let known = self.queues.get_mut(drive).and_then(|queues| queues.get_mut(queue));
        if known.is_some_and(|queue| !std::mem::replace(&mut queue.signalled, true)) {
            let at = self.settings.costs.completions.after_on(now, self.shared.as_ref());
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
        if self.shared.as_ref().is_some_and(|cpu| cpu.free_at() > now) {
            return;
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

    fn is_late(&mut self, now: Instant, drive: usize) -> bool {
        self.drives[drive].borrow_mut().check_timeouts(now).is_err()
    }

    fn drive_lost(&mut self, now: Instant, drive: usize, observer: &mut dyn Observer) {
        self.missing[drive] = true;
        self.unannounced.retain(|(lost, _)| *lost != drive);
        for queue in 0..self.queues[drive].len() {
            self.queues[drive][queue].unannounced = false;
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
