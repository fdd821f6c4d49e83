//! Sections that run at the same time. Each has its own jobs, phases and recorder. All use queues
//! of one driver.

use super::record::Recorder;
use super::section::{Section, Verify};
use super::session::Session;
use crate::cpu::CpuTime;
use report::Failure;
use stats::random::Random;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use wire::{Duration, Instant};
use workload::{Costs, Fio, Jobs, Settings, SharedDriver, Verification, Work, Written};

/// The queues whose jobs a session runs, by their indices. Job n of a group uses queue n.
#[derive(Clone, Debug)]
pub struct JobShare(pub Range<usize>);

impl JobShare {
    /// The share of one of several workloads with jobs of their own: number of the workload's first
    /// job in the share, and the parameters of the jobs in the share. The first job of the workload
    /// uses queue `first`.
    fn of(&self, first: usize, fio: Fio) -> (usize, Fio) {
        let end = first + fio.numjobs;
        let (from, to) = (self.0.start.clamp(first, end), self.0.end.clamp(first, end));
        let offset = fio.offset + (from - first) as u64 * fio.part();
        (from - first, Fio { offset, numjobs: to - from, ..fio })
    }
}

/// The sections of a group on one drive.
pub struct Group<'a> {
    /// The driver.
    pub driver: SharedDriver,
    /// Whether the drive is lost.
    gone: bool,
    tasks: Vec<Task<'a>>,
}

struct Task<'a> {
    section: &'a Section,
    recorder: &'a mut Recorder,
    jobs: Jobs,
    /// First byte and number of bytes of the parts of all jobs.
    range: (u64, u64),
    phase: Phase,
    /// Start of the phase. If [`Phase::Work`] follows a ramp, the end of the ramp.
    since: Instant,
    /// CPU time of this node, and number of transfers of the whole group, at `since`.
    before: (CpuTime, u64),
}

/// The phase of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The section runs, and is measured from this time on.
    Ramp(Instant),
    Work,
    ReadBack,
    Over,
}

impl<'a> Group<'a> {
    /// Creates sections on the session's drive. The group owns the drive until
    /// [`close`](Self::close).
    ///
    /// # Errors
    /// If host memory is too small.
    pub fn new(
        session: &mut Session,
        sections: &'a [Section],
        recorders: &'a mut [Recorder],
        seed: u64,
    ) -> Result<Self, Failure> {
        let fio = |section: &Section| Ok(session.fio(section)?.expect("blocks"));
        let fios = sections.iter().map(fio).collect::<Result<Vec<_>, Failure>>()?;
        let driver = Rc::new(RefCell::new(session.driver.take().expect("no group has it")));
        let mut group = Self { driver, gone: false, tasks: Vec::new() };
        let mut first_queue = 0;
        for ((section, recorder), fio) in sections.iter().zip(recorders).zip(fios) {
            let numjobs = fio.numjobs;
            let (first_job, fio) = session.share.of(first_queue, fio);
            recorder.first_job = first_job;
            let range = fio.range();
            let driver = (group.driver.clone(), first_queue + first_job);
            let jobs = jobs(session, section, fio, driver, seed).ok_or_else(|| {
                let message = "host memory is too small for the buffers: iodepth × bs × numjobs";
                Failure(section.origin.fail(message).to_string())
            })?;
            first_queue += numjobs;
            let (range, phase) = ((range.start, range.end - range.start), Phase::Work);
            let (since, before) = (Instant::ZERO, (CpuTime::now(), 0));
            group.tasks.push(Task { section, recorder, jobs, range, phase, since, before });
        }
        Ok(group)
    }

    /// Starts all sections.
    pub fn start(&mut self, now: Instant) {
        for task in &mut self.tasks {
            task.measure(now, 0);
            task.jobs.start(now);
            if task.section.ramp > Duration::ZERO {
                task.phase = Phase::Ramp(now + task.section.ramp);
                task.recorder.ramping = true;
                task.jobs.ramp();
            }
        }
    }

    /// Starts transfers that are due.
    pub fn run(&mut self, now: Instant) {
        self.tasks.iter_mut().for_each(|task| task.jobs.run(now, task.recorder));
    }

    /// Ends phases that are over. With `goes_on`, the next phases begin.
    pub fn advance(&mut self, now: Instant, goes_on: bool) {
        let transfers = self.transfers();
        self.tasks.iter_mut().for_each(|task| task.advance(now, transfers, goes_on));
    }

    /// Returns the number of ended transfers of all sections.
    pub fn transfers(&self) -> u64 {
        self.tasks.iter().map(|task| task.recorder.ended).sum()
    }

    /// Returns whether commands are in flight and no transfer has ended since the number of ended
    /// transfers was `transfers`.
    pub fn stalls(&self, transfers: u64) -> bool {
        let driver = self.driver.borrow();
        let busy = (0..driver.queues()).any(|queue| driver.outstanding(queue) > 0);
        busy && self.transfers() == transfers
    }

    /// Returns whether all sections have ended.
    pub fn is_over(&self) -> bool {
        self.tasks.iter().all(|task| task.phase == Phase::Over)
    }

    /// Returns the time of the next action; `None` if no section waits for a time.
    pub fn next(&self) -> Option<Instant> {
        self.tasks.iter().flat_map(|task| [task.jobs.next(), task.phase.until()]).flatten().min()
    }

    /// Returns an error of the first section with errors, as part of a sentence; `None` without
    /// errors.
    pub fn first_error(&self) -> Option<String> {
        let first = self.tasks.iter().find_map(|task| task.recorder.errors.keys().next())?;
        Some(format!("a transfer failed: {first}"))
    }

    /// Stops starting transfers.
    pub fn stop(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.jobs.stop());
    }

    /// Processes completion entries of a queue.
    pub fn signal(&mut self, now: Instant, queue: usize) {
        self.tasks.iter_mut().for_each(|task| task.jobs.signal(now, 0, queue));
    }

    /// Records the loss of the drive and of the transfers in flight.
    pub fn lose(&mut self, now: Instant) {
        self.gone = true;
        for task in &mut self.tasks {
            if task.phase != Phase::Over {
                task.recorder.lose(now);
            }
            task.jobs.drive_lost(now, 0, task.recorder);
            task.jobs.run(now, task.recorder);
        }
    }

    /// Continues with the driver of a drive that came back. With `forget`, data written before are
    /// not compared.
    ///
    /// # Errors
    /// The reason why the drive does not fit.
    pub fn resume(
        &mut self,
        now: Instant,
        driver: nvme::initiator::Driver,
        forget: bool,
    ) -> Result<(), &'static str> {
        self.tasks.iter().try_for_each(|task| task.jobs.check(&driver))?;
        self.driver.replace(driver);
        self.gone = false;
        for task in &mut self.tasks {
            task.recorder.resume(now);
            if forget {
                task.jobs.forget(0);
            }
            // Transfers that waited for the drive were never submitted, so they are not lost.
            task.jobs.resume(now, 0, false);
        }
        Ok(())
    }

    /// Returns the progress line for a terminal.
    pub fn progress(&self, now: Instant) -> String {
        let running = self.tasks.iter().filter(|task| task.phase != Phase::Over);
        let running: Vec<&Recorder> = running.map(|task| &*task.recorder).collect();
        match &running[..] {
            [one] => one.progress(now),
            all => all.iter().map(|one| one.brief(now)).collect::<Vec<_>>().join("; "),
        }
    }

    /// Ends unfinished jobs. Returns the written ranges to the session, and the drive if the host
    /// still has it.
    pub fn close(mut self, now: Instant, session: &mut Session) {
        let transfers = self.transfers();
        for task in &mut self.tasks {
            task.end(now, transfers);
            task.recorder.resume(now);
            session.written.push((task.section.workload.nsid(), task.written()));
        }
        drop(self.tasks);
        let driver = Rc::into_inner(self.driver).expect("the jobs are gone").into_inner();
        // A lost drive cannot be shut down either.
        session.driver = Some(driver).filter(|_| session.machine.is_up() && !self.gone);
    }
}

impl Task<'_> {
    fn advance(&mut self, now: Instant, transfers: u64, goes_on: bool) {
        let ramped = |until| now >= until || self.jobs.is_done();
        if goes_on && self.phase.until().is_some_and(ramped) {
            self.phase = Phase::Work;
            self.recorder.ramping = false;
            self.measure(now, transfers);
            self.jobs.measure_from(now);
        }
        if self.phase == Phase::Over || !self.jobs.is_done() {
            return;
        }
        let worked = self.phase == Phase::Work;
        self.end(now, transfers);
        let compares = self.section.verify == Verify::Written && self.section.writes();
        if worked && compares && goes_on && self.jobs.read_back() {
            self.phase = Phase::ReadBack;
            self.since = now;
            self.jobs.start(now);
        }
    }

    /// Starts the measurement after `transfers` transfers of the group.
    fn measure(&mut self, now: Instant, transfers: u64) {
        (self.since, self.recorder.start) = (now, now);
        self.before = (CpuTime::now(), transfers);
    }

    /// Ends the phase after `transfers` transfers of the group.
    fn end(&mut self, now: Instant, transfers: u64) {
        let span = now - self.since;
        self.recorder.ramping = false;
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Ramp(_) | Phase::Work => {
                self.recorder.worked = span;
                let (cpu, ended) = self.before;
                self.recorder.cpu = Duration::from_ns(CpuTime::now().since(cpu).0);
                self.recorder.beside = transfers - ended;
            }
            Phase::ReadBack => self.recorder.read_back = span,
            Phase::Over => {}
        }
    }

    fn written(&self) -> Vec<Written> {
        let (offset, length) = self.range;
        match self.section.verify {
            Verify::Written => self.jobs.written(0),
            // The contents of these blocks are unknown after other writes.
            _ if self.section.writes() => vec![Written { offset, length, version: None }],
            _ => Vec::new(),
        }
    }
}

impl Phase {
    /// Returns the end of a ramp.
    fn until(self) -> Option<Instant> {
        match self {
            Self::Ramp(until) => Some(until),
            _ => None,
        }
    }
}

/// Creates the jobs of a section with these queues; `None` if host memory is too small.
fn jobs(
    session: &Session,
    section: &Section,
    fio: Fio,
    (driver, first_queue): (SharedDriver, usize),
    seed: u64,
) -> Option<Jobs> {
    let initial = (section.verify == Verify::Only).then_some(1);
    let verification = Verification { patterns: vec![seed], initial };
    let settings = Settings {
        costs: Costs::NONE,
        batch: true,
        verification: (section.verify != Verify::No).then_some(verification),
        random: Random::new(seed),
    };
    let (now, nsid) = (session.machine.clock().now(), fio.nsid);
    let ram = session.machine.ram();
    let mut jobs = Jobs::beside(now, fio, settings, vec![driver], first_queue, ram)?;
    if section.verify == Verify::Written {
        let before = session.written.iter().filter(|(namespace, _)| *namespace == nsid);
        before.for_each(|(_, written)| jobs.add_known_writes(0, written));
    }
    Some(jobs)
}
