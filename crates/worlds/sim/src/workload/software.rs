//! The software of a host, from boot to the end of its workload.

use super::replay::Replayer;
use super::{SoftwareConfig, Workload};
use crate::measure::Tracker;
use crate::processor::Processor;
use ::workload::{
    BootError, BringUp, Jobs, NvmeDrive, Settings, Tally, Verification, Work, Written,
};
use node::slot::{self, OwnSlot};
use nvme::initiator::{self, Driver, QueueMemory};
use pcie::software::Task;
use stats::random::Random;
use std::collections::BTreeMap;
use wire::earliest;
use wire::{Bdf, Duration, Instant};

enum Stage {
    /// Some links are not up yet.
    Waiting,
    Booting(Task<Result<Vec<NvmeDrive>, BootError>>),
    ReadingConfig {
        task: Task<u32>,
        left: u64,
        since: Instant,
    },
    Pausing {
        left: u64,
        until: Instant,
    },
    Working(Box<dyn Work>),
    Done,
    Failed(BootError),
}

/// The software of a host.
pub(crate) struct Software {
    /// Parameters of the drives' initialisation.
    bring_up: BringUp,
    config: SoftwareConfig,
    workload: Workload,
    rng: Random,
    /// The processor of the host's node, which does all work of the software.
    pub processor: Option<Processor>,
    /// Seeds of the drives' initial contents.
    patterns: Vec<u64>,
    /// Whether reads are compared.
    compares: bool,
    stage: Stage,
    /// The slots of the drives.
    slots: Vec<OwnSlot>,
    /// When the workload began, and when it ended.
    pub began: Option<Instant>,
    pub ended: Option<Instant>,
    /// Results of configuration reads: latency at the software, and reads of all ones as failures.
    config_reads: Tally,
    finished: Option<Box<dyn Work>>,
    /// Drives whose link is down, and since when.
    missing: BTreeMap<usize, Instant>,
    /// Drives that are initialised again, and whether each one has new contents.
    attaching: Vec<(usize, bool, Attaching)>,
    /// Writes of other hosts to drives that moved to this host.
    known_writes: Vec<(usize, KnownWrites)>,
    /// The INTx wires, and when software polls again for them.
    wires: [bool; 4],
    next_intx_poll: Instant,
    /// When to look for late commands; `None`: no drive loses completions.
    next_look: Option<Instant>,
}

/// Writes of another host to a drive before the drive moved to this host.
pub(crate) struct KnownWrites {
    /// The drive's incarnation at the move. With another incarnation the contents are lost.
    pub incarnation: u64,
    pub written: Vec<Written>,
}

/// A running [`BringUp::attach`].
type Attaching = Task<Result<(u64, Driver), initiator::Error>>;

fn places(driver: &Driver) -> Vec<QueueMemory> {
    (0..driver.queues()).map(|queue| driver.queue_memory(queue)).collect()
}

impl Software {
    pub(crate) fn new(
        bring_up: BringUp,
        (config, workload): (SoftwareConfig, Workload),
        rng: Random,
        patterns: Vec<u64>,
    ) -> Self {
        Self {
            bring_up,
            config,
            workload,
            rng,
            processor: None,
            patterns,
            compares: true,
            stage: Stage::Waiting,
            slots: Vec::new(),
            began: None,
            ended: None,
            config_reads: Tally::default(),
            finished: None,
            missing: BTreeMap::new(),
            attaching: Vec::new(),
            known_writes: Vec::new(),
            wires: [false; 4],
            next_intx_poll: Instant::ZERO,
            next_look: None,
        }
    }

    /// Makes enumeration read the identity of the drives' contents, because a drive can lose them.
    pub(crate) fn identify_contents(&mut self) {
        self.bring_up.enumeration.contents = true;
    }

    /// Compares no data, because another host writes the same blocks.
    pub(crate) fn compare_nothing(&mut self) {
        self.compares = false;
    }

    /// Makes the driver reset drives with commands beyond its time limit.
    pub(crate) fn look_for_late_commands(&mut self) {
        self.next_look = Some(Instant::ZERO);
    }

    /// Boots the host once all links are up.
    pub(crate) fn boot(&mut self) {
        if !matches!(self.stage, Stage::Waiting) || self.workload == Workload::Idle {
            return;
        }
        self.stage = Stage::Booting(Task::new(&self.bring_up.bus, self.bring_up.clone().boot()));
    }

    /// Handles a change of the link of a drive (PCIe Base 4.0, section 7.5.3.11, Data Link Layer
    /// State Changed). The commands of a missing drive fail. A returned drive is initialised again.
    pub(crate) fn link_changed(
        &mut self,
        now: Instant,
        drive: usize,
        up: bool,
        tracker: &mut Tracker,
    ) {
        let Stage::Working(work) = &mut self.stage else { return };
        self.attaching.retain(|(attaching, ..)| *attaching != drive);
        if !up {
            self.missing.entry(drive).or_insert(now);
            self.slots[drive].link_down();
            work.drive_lost(now, drive, tracker);
        } else if self.missing.contains_key(&drive) {
            self.slots[drive].link_up();
        }
    }

    /// Sets the seed of the initial contents of `drive`, which moves to this host later.
    pub(crate) fn set_pattern(&mut self, drive: usize, pattern: u64) {
        self.patterns[drive] = pattern;
    }

    /// Starts no more commands on a drive. Returns whether no command of the drive is under way.
    pub(crate) fn release(&mut self, drive: usize) -> bool {
        match &mut self.stage {
            Stage::Working(work) => work.release(drive),
            stage => matches!(stage, Stage::Done),
        }
    }

    /// Whether the drive still has the contents that this host wrote. A drive whose contents have
    /// no identity cannot lose them.
    fn has_contents(&self, drive: usize, incarnation: u64) -> bool {
        let identity = self.slots.get(drive).and_then(|slot| slot.node().identity());
        let contents = identity.and_then(|identity| identity.contents);
        contents.is_none_or(|contents| contents.incarnation == incarnation)
    }

    /// The writes to a drive that are valid if the drive has this incarnation.
    pub(crate) fn written(&self, drive: usize, incarnation: u64) -> Vec<Written> {
        if !self.has_contents(drive, incarnation) {
            return Vec::new();
        }
        match (&self.stage, &self.finished) {
            (Stage::Working(work), _) | (_, Some(work)) => work.written(drive),
            _ => Vec::new(),
        }
    }

    /// The namespace that the workload uses.
    pub(crate) fn nsid(&self) -> u32 {
        self.workload.nsid()
    }

    /// Whether the drive is in use and has the contents that this host wrote.
    pub(crate) fn holds(&self, drive: usize, incarnation: u64) -> bool {
        !self.missing.contains_key(&drive) && self.has_contents(drive, incarnation)
    }

    /// Adds the writes of another host to a drive that moves to this host.
    pub(crate) fn add_known_writes(&mut self, drive: usize, known_writes: KnownWrites) {
        self.known_writes.push((drive, known_writes));
    }

    /// The first drive whose link is down, and since when.
    pub(crate) fn missing(&self) -> Option<(usize, Instant)> {
        self.missing.first_key_value().map(|(drive, since)| (*drive, *since))
    }

    /// Initialises returned drives again.
    fn attach_again(&mut self, now: Instant, tracker: &mut Tracker) {
        for drive in 0..self.slots.len() {
            if let Some(Ok(new_contents)) = self.slots[drive].poll(now) {
                self.attaching.push((drive, new_contents, self.attach(drive)));
            }
        }
        for (drive, new_contents, mut task) in std::mem::take(&mut self.attaching) {
            let mut attached = task.poll(now);
            if let Some(Err(initiator::Error::Timeout(_))) = attached {
                // The completion of a reservation command may be lost.
                task = self.attach(drive);
                attached = task.poll(now);
            }
            let Some(attached) = attached else {
                self.attaching.push((drive, new_contents, task));
                continue;
            };
            let (Ok((bar0, driver)), Stage::Working(work)) = (attached, &mut self.stage) else {
                continue;
            };
            let bdf = self.slots[drive].node().bdf;
            tracker.set_drive(drive as u16, bdf, bar0, &places(&driver));
            self.missing.remove(&drive);
            work.drive_restored(now, drive, driver, new_contents);
        }
    }

    fn attach(&self, drive: usize) -> Attaching {
        let (bring_up, node) = (self.bring_up.clone(), self.slots[drive].node().clone());
        Task::new(&self.bring_up.bus, async move { bring_up.attach(&node).await })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    pub(crate) fn failure(&self) -> Option<&BootError> {
        match &self.stage {
            Stage::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The results of the workload so far.
    pub(crate) fn tally(&self) -> &Tally {
        match (&self.stage, &self.finished) {
            (Stage::Working(work), _) | (_, Some(work)) => work.tally(),
            _ => &self.config_reads,
        }
    }

    /// Handles an interrupt of the function `from` with vector `vector`.
    pub(crate) fn interrupt(
        &mut self,
        now: Instant,
        from: Bdf,
        vector: u32,
        tracker: &mut Tracker,
    ) {
        let drive = self.slots.iter().position(|slot| slot.node().bdf == from);
        if let (Some(drive), Some(queue), Stage::Working(work)) =
            (drive, vector.checked_sub(1), &mut self.stage)
        {
            tracker.interrupted(now, drive as u16, queue as u16 + 1);
            work.signal(now, drive, queue as usize);
        }
    }

    /// Sets the level of an interrupt wire of the root port.
    pub(crate) fn wire(&mut self, wire: u8, level: bool) {
        self.wires[usize::from(wire)] = level;
    }

    /// Polls all queues of all drives while a wire is asserted, because a wire does not identify
    /// drive and queue.
    fn poll_intx(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        let Stage::Working(work) = &mut self.stage else { return None };
        if self.wires == [false; 4] {
            return None;
        }
        if self.next_intx_poll <= now {
            self.next_intx_poll = now + INTX_POLL;
            for (drive, queue) in (0..self.slots.len())
                .flat_map(|drive| (0..self.workload.queues()).map(move |queue| (drive, queue)))
            {
                tracker.interrupted(now, drive as u16, queue + 1);
                work.signal(now, drive, usize::from(queue));
            }
        }
        Some(self.next_intx_poll)
    }

    /// Runs until no work is left now. Returns the next wake-up.
    pub(crate) fn run(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        let poll = self.poll_intx(now, tracker);
        self.reset_late_drives(now, tracker);
        let next = self.advance(now, tracker);
        let look = self.next_look.filter(|_| matches!(self.stage, Stage::Working(_)));
        earliest([poll, next, look])
    }

    /// Resets drives with commands beyond the driver's time limit, as after a lost link: their
    /// commands fail.
    fn reset_late_drives(&mut self, now: Instant, tracker: &mut Tracker) {
        let Stage::Working(work) = &mut self.stage else { return };
        if self.next_look.is_none_or(|look| now < look) {
            return;
        }
        self.next_look = Some(now + LOOK);
        let present = (0..self.slots.len()).filter(|drive| !self.missing.contains_key(drive));
        let late: Vec<_> = present.filter(|drive| work.is_late(now, *drive)).collect();
        late.into_iter().for_each(|drive| self.reset_drive(now, drive, tracker));
    }

    /// Resets all drives that are present.
    pub(crate) fn reset_drives(&mut self, now: Instant, tracker: &mut Tracker) {
        for drive in 0..self.slots.len() {
            if !self.missing.contains_key(&drive) {
                self.reset_drive(now, drive, tracker);
            }
        }
    }

    /// Resets a drive as after a lost link: its commands fail.
    fn reset_drive(&mut self, now: Instant, drive: usize, tracker: &mut Tracker) {
        self.link_changed(now, drive, false, tracker);
        self.link_changed(now, drive, true, tracker);
    }

    fn advance(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        if !self.missing.is_empty() {
            self.attach_again(now, tracker);
        }
        loop {
            match &mut self.stage {
                Stage::Booting(task) => match task.poll(now) {
                    None => return None,
                    Some(Err(error)) => self.stage = Stage::Failed(error),
                    Some(Ok(drives)) => self.begin(now, drives, tracker),
                },
                Stage::ReadingConfig { task, left, since } => {
                    let value = task.poll(now)?;
                    self.config_reads.failures += u64::from(value == u32::MAX);
                    self.config_reads.latency.record(now - *since);
                    let left = *left - 1;
                    self.stage = self.pause(now, left);
                }
                Stage::Pausing { left, until } => {
                    if *until > now {
                        return Some(*until);
                    }
                    let left = *left;
                    self.stage = self.read_config(now, left);
                }
                Stage::Working(work) => {
                    work.run(now, tracker);
                    if !work.is_done() {
                        return work.next();
                    }
                    self.ended = self.began.max(Some(now));
                    let Stage::Working(work) = std::mem::replace(&mut self.stage, Stage::Done)
                    else {
                        unreachable!("matched above")
                    };
                    self.finished = Some(work);
                }
                Stage::Waiting | Stage::Done | Stage::Failed(_) => return None,
            }
        }
    }

    fn read_config(&self, now: Instant, left: u64) -> Stage {
        let (bus, function) = (self.bring_up.bus.clone(), self.slots[0].node().bdf);
        let work = async move { bus.config_read(function, 0, 4).await };
        Stage::ReadingConfig { task: Task::new(&self.bring_up.bus, work), left, since: now }
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

    fn begin(&mut self, now: Instant, drives: Vec<NvmeDrive>, tracker: &mut Tracker) {
        self.began = Some(now + self.config.start_delay);
        let slot = |drive: &NvmeDrive| {
            // Moves in the plan define which host uses a drive, so no host writes an owner.
            let settings =
                slot::Settings { enumeration: self.bring_up.enumeration.clone(), owner: 0 };
            let (port, node) = (drive.port.clone(), drive.node.clone());
            OwnSlot::new(port, node, self.bring_up.bus.clone(), settings)
        };
        self.slots = drives.iter().map(slot).collect();
        for (number, drive) in (0..).zip(&drives) {
            tracker.set_drive(number, drive.node.bdf, drive.bar0, &places(&drive.driver));
        }
        self.stage = self.start(now, drives).unwrap_or_else(Stage::Failed);
    }

    fn start(&mut self, now: Instant, drives: Vec<NvmeDrive>) -> Result<Stage, BootError> {
        let wanted = self.patterns.len();
        if drives.len() != wanted {
            return Err(BootError::Missing { found: drives.len(), wanted });
        }
        let (config, ram) = (self.config, self.bring_up.ram.clone());
        let start = now + config.start_delay;
        let mut work: Box<dyn Work> = match &self.workload {
            &Workload::ConfigReads { count, .. } => return Ok(self.pause(start, count)),
            Workload::Idle => unreachable!("it does not boot"),
            Workload::Replay(replay) => {
                replay.check(&drives).map_err(BootError::Workload)?;
                let replay = replay.clone();
                let work = Replayer::new(start, replay, config, drives, &self.patterns, ram);
                let mut work = work.ok_or(BootError::Memory)?;
                self.processor.iter().for_each(|processor| work.share_cpu(processor.cpu()));
                Box::new(work)
            }
            Workload::Fio(_) | Workload::Dd { .. } => {
                let fio = self.workload.fio().expect("fio's words");
                let drives: Vec<_> = drives.into_iter().map(|drive| drive.driver).collect();
                fio.check(&drives).map_err(BootError::Workload)?;
                let settings = Settings {
                    costs: config.costs(),
                    batch: self.processor.is_some(),
                    verification: self.compares.then(|| Verification {
                        patterns: self.patterns.clone(),
                        initial: Some(0),
                    }),
                    random: self.rng.clone(),
                };
                let work = Jobs::new(start, fio, settings, drives, ram);
                let mut work = work.ok_or(BootError::Memory)?;
                self.processor.iter().for_each(|processor| work.share_cpu(processor.cpu()));
                for (drive, KnownWrites { incarnation, written }) in &self.known_writes {
                    if self.has_contents(*drive, *incarnation) {
                        work.add_known_writes(*drive, written);
                    }
                }
                Box::new(work)
            }
        };
        work.start(now);
        Ok(Stage::Working(work))
    }
}

/// Interval between looks for late commands.
const LOOK: Duration = Duration::from_ms(1_000);
/// Interval between polls of all queues while an INTx wire is asserted.
const INTX_POLL: Duration = Duration::from_us(1);
