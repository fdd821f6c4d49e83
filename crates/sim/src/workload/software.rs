//! The software of a host, from boot to the end of its workload.

use super::boot::{Attached, BootError, boot};
use super::jobs::Jobs;
use super::{SoftwareConfig, Workload};
use crate::drive::MAX_TRANSFER;
use crate::kernel::Rng;
use crate::measure::{Latency, Tracker};
use pcie::software::Task;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Bdf, Instant};

enum Stage {
    /// Links are not up yet.
    Waiting,
    Booting(Task<Result<Vec<Attached>, BootError>>),
    Asking {
        task: Task<()>,
        left: u64,
        since: Instant,
    },
    Pausing {
        left: u64,
        until: Instant,
    },
    Working(Box<Jobs>),
    Done,
    Failed(BootError),
}

/// See the module.
pub(crate) struct Software {
    config: SoftwareConfig,
    workload: Workload,
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    rng: Rng,
    /// Seeds of what the drives hold.
    patterns: Vec<u64>,
    stage: Stage,
    functions: Vec<Bdf>,
    /// When the workload began and ended.
    pub began: Option<Instant>,
    pub ended: Option<Instant>,
    /// Round trips of configuration reads, as software sees them.
    pub round_trips: Latency,
    finished: Option<Box<Jobs>>,
}

impl Software {
    pub fn new(
        config: SoftwareConfig,
        workload: Workload,
        bus: Bus,
        ram: Rc<RefCell<Ram>>,
        rng: Rng,
        patterns: Vec<u64>,
    ) -> Self {
        Self {
            config,
            workload,
            bus,
            ram,
            rng,
            patterns,
            stage: Stage::Waiting,
            functions: Vec::new(),
            began: None,
            ended: None,
            round_trips: Latency::default(),
            finished: None,
        }
    }

    /// Everything is plugged in.
    pub fn boot(&mut self) {
        if !matches!(self.stage, Stage::Waiting) {
            return;
        }
        let fio = self.workload.fio();
        let queues = fio.as_ref().map_or(1, |fio| fio.numjobs as u16);
        let depth = fio.map_or(1, |fio| commands(&fio));
        let entries = (depth + 1).clamp(2, MOST_ENTRIES) as u16;
        let work = boot(self.bus.clone(), self.ram.clone(), self.config, queues, entries);
        self.stage = Stage::Booting(Task::new(&self.bus, work));
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    pub fn failure(&self) -> Option<&BootError> {
        match &self.stage {
            Stage::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The jobs, running or done.
    pub fn jobs(&self) -> Option<&Jobs> {
        match &self.stage {
            Stage::Working(jobs) => Some(jobs),
            _ => self.finished.as_deref(),
        }
    }

    /// A drive signals vector `vector`.
    pub fn interrupt(&mut self, now: Instant, from: Bdf, vector: u32, tracker: &mut Tracker) {
        let drive = self.functions.iter().position(|function| *function == from);
        if let (Some(drive), Some(queue), Stage::Working(jobs)) =
            (drive, vector.checked_sub(1), &mut self.stage)
        {
            tracker.interrupted(now, drive as u16, queue as u16 + 1);
            jobs.announced(now, drive, queue as usize);
        }
    }

    /// Does what can be done now; yields when to be woken.
    pub fn run(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        loop {
            match &mut self.stage {
                Stage::Booting(task) => match task.poll(now) {
                    None => return None,
                    Some(Err(error)) => self.stage = Stage::Failed(error),
                    Some(Ok(drives)) => self.begin(now, drives, tracker),
                },
                Stage::Asking { task, left, since } => {
                    task.poll(now)?;
                    self.round_trips.record(now - *since);
                    let left = *left - 1;
                    self.stage = self.pause(now, left);
                }
                Stage::Pausing { left, until } => {
                    if *until > now {
                        return Some(*until);
                    }
                    let left = *left;
                    self.stage = self.ask(now, left);
                }
                Stage::Working(jobs) => {
                    jobs.run(now, tracker);
                    if !jobs.is_done() {
                        return jobs.next();
                    }
                    self.ended = Some(now);
                    let Stage::Working(jobs) = std::mem::replace(&mut self.stage, Stage::Done)
                    else {
                        unreachable!("matched above")
                    };
                    self.finished = Some(jobs);
                }
                Stage::Waiting | Stage::Done | Stage::Failed(_) => return None,
            }
        }
    }

    fn ask(&self, now: Instant, left: u64) -> Stage {
        let (bus, function) = (self.bus.clone(), self.functions[0]);
        let work = async move {
            bus.config_read(function, 0, 4).await;
        };
        Stage::Asking { task: Task::new(&self.bus, work), left, since: now }
    }

    fn pause(&mut self, now: Instant, left: u64) -> Stage {
        match self.workload {
            Workload::ConfigReads { gap, .. } if left > 0 => {
                Stage::Pausing { left, until: now + gap }
            }
            _ => {
                self.ended = Some(now);
                Stage::Done
            }
        }
    }

    fn begin(&mut self, now: Instant, drives: Vec<Attached>, tracker: &mut Tracker) {
        self.began = Some(now);
        self.functions = drives.iter().map(|drive| drive.node.bdf).collect();
        for drive in &drives {
            let queues = 0..drive.driver.queues();
            let places: Vec<_> = queues.map(|queue| drive.driver.queue_memory(queue)).collect();
            tracker.add_drive(drive.node.bdf, drive.bar0, &places);
        }
        self.stage = match self.start(now, drives) {
            Ok(stage) => stage,
            Err(error) => Stage::Failed(error),
        };
    }

    fn start(&mut self, now: Instant, drives: Vec<Attached>) -> Result<Stage, BootError> {
        let wanted = self.patterns.len();
        if drives.len() != wanted {
            return Err(BootError::Missing { found: drives.len(), wanted });
        }
        let Some(fio) = self.workload.fio() else {
            let Workload::ConfigReads { count, .. } = self.workload else {
                unreachable!("everything else is fio")
            };
            return Ok(self.pause(now, count));
        };
        check(&fio, &drives)?;
        let ram = self.ram.clone();
        let patterns = self.patterns.clone();
        let jobs = Jobs::new(now, fio, self.config, drives, patterns, ram, &self.rng);
        let mut jobs = Box::new(jobs.ok_or(BootError::Memory)?);
        jobs.start(now);
        Ok(Stage::Working(jobs))
    }
}

/// Entries of the largest queue.
const MOST_ENTRIES: usize = 4096;

/// Commands in flight of a job at most: each part of a striped transfer is
/// one, and of one that is larger than a command's largest.
fn commands(fio: &super::Fio) -> usize {
    let parts = match fio.stripe {
        0 => fio.bs.div_ceil(MAX_TRANSFER),
        stripe => (fio.bs / stripe + 2) * stripe.div_ceil(MAX_TRANSFER),
    };
    fio.iodepth * parts.max(1)
}

fn check(fio: &super::Fio, drives: &[Attached]) -> Result<(), BootError> {
    let fail = |what| Err(BootError::Workload(what));
    if fio.bs == 0 || !fio.bs.is_multiple_of(512) {
        return fail("bs is not a multiple of 512");
    }
    if fio.stripe > 0 && !fio.stripe.is_multiple_of(512) {
        return fail("stripe is not a multiple of 512");
    }
    if fio.iodepth == 0 || fio.numjobs == 0 {
        return fail("iodepth and numjobs are at least 1");
    }
    let chunks = fio.size / fio.bs as u64;
    if chunks < fio.iodepth as u64 {
        return fail("size is smaller than iodepth blocks of bs");
    }
    if drives.iter().any(|drive| drive.driver.queues() < fio.numjobs) {
        return fail("numjobs is more than the queues of a drive");
    }
    if commands(fio) >= MOST_ENTRIES {
        return fail("iodepth blocks of bs are more commands than a queue holds");
    }
    let used = chunks * fio.bs as u64 * fio.numjobs as u64;
    let room = drives.iter().map(|drive| {
        let namespace = drive.driver.namespaces()[0];
        namespace.blocks << namespace.block_shift
    });
    let share = match fio.stripe {
        0 => used,
        stripe => used.div_ceil(stripe as u64 * drives.len() as u64) * stripe as u64,
    };
    if room.min().is_some_and(|room| share > room) {
        return fail("size times numjobs is more than a drive holds");
    }
    Ok(())
}
