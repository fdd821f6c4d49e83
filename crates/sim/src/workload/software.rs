//! The software of a host, from boot to the end of its workload.

use super::boot::{BootError, BringUp, NvmeDrive};
use super::jobs::Jobs;
use super::replay::Replayer;
use super::work::{Tally, Work, Written};
use super::{SoftwareConfig, Workload};
use crate::measure::{Latency, Tracker};
use crate::node::earliest;
use nvme::initiator::{Driver, QueueMemory};
use pcie::enumerate::Node;
use pcie::software::Task;
use pcie::{Bus, Ram};
use stats::random::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{Bdf, Duration, Instant};

enum Stage {
    /// Links are not up yet.
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
    config: SoftwareConfig,
    contents: bool,
    ecrc: bool,
    workload: Workload,
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    rng: Random,
    /// Seeds of the drives' initial contents.
    patterns: Vec<u64>,
    stage: Stage,
    /// The drives as they were attached.
    nodes: Vec<Node>,
    /// When the workload began and ended.
    pub began: Option<Instant>,
    pub ended: Option<Instant>,
    /// Round trips of configuration reads, as software sees them.
    pub round_trips: Latency,
    /// Configuration reads that returned all ones.
    pub unanswered: u64,
    finished: Option<Box<dyn Work>>,
    /// By drive: the port above it.
    ports: Vec<Option<Node>>,
    /// Drives whose link is down, and since when.
    missing: BTreeMap<usize, Instant>,
    /// Drives that are being initialised again.
    bring_ups: Vec<(usize, BringUpTask)>,
    /// Writes of other hosts to drives that moved here.
    known_writes: Vec<(usize, KnownWrites)>,
    /// The INTx wires, and when software polls again because of one.
    wires: [bool; 4],
    next_intx_poll: Instant,
}

/// What another host wrote to a drive before it moved here.
pub(crate) struct KnownWrites {
    /// The drive's incarnation then: with another it has lost the contents.
    pub incarnation: u64,
    pub written: Vec<Written>,
}

/// A running [`BringUp::bring_up_again`].
type BringUpTask = Task<Result<NvmeDrive, BootError>>;

fn places(driver: &Driver) -> Vec<QueueMemory> {
    (0..driver.queues()).map(|queue| driver.queue_memory(queue)).collect()
}

impl Software {
    pub fn new(
        config: SoftwareConfig,
        workload: Workload,
        bus: Bus,
        ram: Rc<RefCell<Ram>>,
        rng: Random,
        patterns: Vec<u64>,
    ) -> Self {
        Self {
            config,
            contents: false,
            ecrc: false,
            workload,
            bus,
            ram,
            rng,
            patterns,
            stage: Stage::Waiting,
            nodes: Vec::new(),
            began: None,
            ended: None,
            round_trips: Latency::default(),
            unanswered: 0,
            finished: None,
            ports: Vec::new(),
            missing: BTreeMap::new(),
            bring_ups: Vec::new(),
            known_writes: Vec::new(),
            wires: [false; 4],
            next_intx_poll: Instant::ZERO,
        }
    }

    /// Reads the identity of the drives' contents: needed only where drives can
    /// lose them.
    pub fn identify_contents(&mut self) {
        self.contents = true;
    }

    /// Makes drives generate and check ECRCs.
    pub fn enable_ecrc(&mut self) {
        self.ecrc = true;
    }

    /// Boots: all links are up.
    pub fn boot(&mut self) {
        if !matches!(self.stage, Stage::Waiting) || self.workload == Workload::Idle {
            return;
        }
        self.stage = Stage::Booting(Task::new(&self.bus, self.bring_up().boot()));
    }

    fn bring_up(&self) -> BringUp {
        BringUp {
            bus: self.bus.clone(),
            ram: self.ram.clone(),
            config: self.config,
            contents: self.contents,
            ecrc: self.ecrc,
            queues: self.workload.queues(),
            entries: (self.workload.depth() + 1).clamp(2, MOST_ENTRIES) as u16,
        }
    }

    /// The link of a drive came up or went down, as its port's slot reports
    /// (PCIe Base 4.0, section 7.5.3.11, Data Link Layer State Changed). A
    /// missing drive fails its commands, a returned one is initialised again.
    pub fn link_changed(&mut self, now: Instant, drive: usize, up: bool, tracker: &mut Tracker) {
        let Stage::Working(work) = &mut self.stage else { return };
        self.bring_ups.retain(|(of, _)| *of != drive);
        if !up {
            self.missing.entry(drive).or_insert(now);
            work.drive_lost(now, drive, tracker);
        } else if let (true, Some(Some(port)), Some(node)) =
            (self.missing.contains_key(&drive), self.ports.get(drive), self.nodes.get(drive))
        {
            let task = self.bring_up().bring_up_again(drive, port.clone(), node.clone());
            self.bring_ups.push((drive, Task::new(&self.bus, task)));
        }
    }

    /// Sets the seed of the initial contents of `drive`, which moves here later.
    pub fn set_pattern(&mut self, drive: usize, pattern: u64) {
        self.patterns[drive] = pattern;
    }

    /// Releases a drive; whether none of its commands is under way.
    pub fn release(&mut self, drive: usize) -> bool {
        match &mut self.stage {
            Stage::Working(work) => work.release(drive),
            stage => matches!(stage, Stage::Done),
        }
    }

    /// Whether the drive still has the contents that this host knows. A drive
    /// whose contents were not identified cannot lose them.
    fn has_contents(&self, drive: usize, incarnation: u64) -> bool {
        let identity = self.nodes.get(drive).and_then(Node::identity);
        let contents = identity.and_then(|identity| identity.contents);
        contents.is_none_or(|contents| contents.incarnation == incarnation)
    }

    /// What was written to a drive and is kept if it has this incarnation.
    pub fn written(&self, drive: usize, incarnation: u64) -> Vec<Written> {
        if !self.has_contents(drive, incarnation) {
            return Vec::new();
        }
        match &self.stage {
            Stage::Working(work) => work.written(drive),
            _ => self.finished.as_ref().map_or_else(Vec::new, |work| work.written(drive)),
        }
    }

    /// Adds what another host wrote to a drive that moves here.
    pub fn add_known_writes(&mut self, drive: usize, known_writes: KnownWrites) {
        self.known_writes.push((drive, known_writes));
    }

    /// A drive whose link is down, and since when.
    pub fn missing(&self) -> Option<(usize, Instant)> {
        self.missing.first_key_value().map(|(drive, since)| (*drive, *since))
    }

    /// Continues the initialisation of returned drives.
    fn poll_bring_ups(&mut self, now: Instant, tracker: &mut Tracker) {
        let mut over = Vec::new();
        self.bring_ups.retain_mut(|(drive, task)| match task.poll(now) {
            Some(result) => {
                over.push((*drive, result));
                false
            }
            None => true,
        });
        for (drive, result) in over {
            let (Ok(attached), Stage::Working(work)) = (result, &mut self.stage) else { continue };
            let NvmeDrive { node, bar0, driver, new_contents, .. } = attached;
            let places = places(&driver);
            tracker.set_drive(drive as u16, node.bdf, bar0, &places);
            self.nodes[drive] = node;
            self.missing.remove(&drive);
            work.drive_restored(now, drive, driver, new_contents);
        }
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

    /// The results of the workload so far, if it has commands.
    pub fn tally(&self) -> Option<&Tally> {
        match &self.stage {
            Stage::Working(work) => Some(work.tally()),
            _ => self.finished.as_ref().map(|work| work.tally()),
        }
    }

    /// A drive signals vector `vector`.
    pub fn interrupt(&mut self, now: Instant, from: Bdf, vector: u32, tracker: &mut Tracker) {
        let drive = self.nodes.iter().position(|node| node.bdf == from);
        if let (Some(drive), Some(queue), Stage::Working(work)) =
            (drive, vector.checked_sub(1), &mut self.stage)
        {
            tracker.interrupted(now, drive as u16, queue as u16 + 1);
            work.signal(now, drive, queue as usize);
        }
    }

    /// An interrupt wire of the root port changed its level.
    pub fn wire(&mut self, wire: u8, level: bool) {
        self.wires[usize::from(wire)] = level;
    }

    /// A wire does not identify drive and queue: software polls all of them, and
    /// again while the wire is asserted.
    fn poll_intx(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        let Stage::Working(work) = &mut self.stage else { return None };
        if self.wires == [false; 4] {
            return None;
        }
        if self.next_intx_poll <= now {
            self.next_intx_poll = now + INTX_POLL;
            for (drive, queue) in (0..self.nodes.len())
                .flat_map(|drive| (0..self.workload.queues()).map(move |queue| (drive, queue)))
            {
                tracker.interrupted(now, drive as u16, queue + 1);
                work.signal(now, drive, usize::from(queue));
            }
        }
        Some(self.next_intx_poll)
    }

    /// Runs until nothing is left to do now; yields the next wake-up.
    pub fn run(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        let look = self.poll_intx(now, tracker);
        earliest([look, self.advance(now, tracker)])
    }

    fn advance(&mut self, now: Instant, tracker: &mut Tracker) -> Option<Instant> {
        if !self.bring_ups.is_empty() {
            self.poll_bring_ups(now, tracker);
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
                    self.unanswered += u64::from(value == u32::MAX);
                    self.round_trips.record(now - *since);
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
                    self.ended = Some(now);
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
        let (bus, function) = (self.bus.clone(), self.nodes[0].bdf);
        let work = async move { bus.config_read(function, 0, 4).await };
        Stage::ReadingConfig { task: Task::new(&self.bus, work), left, since: now }
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
        self.began = Some(now);
        self.ports = drives.iter().map(|drive| drive.port.clone()).collect();
        self.nodes = drives.iter().map(|drive| drive.node.clone()).collect();
        for (number, drive) in (0..).zip(&drives) {
            tracker.set_drive(number, drive.node.bdf, drive.bar0, &places(&drive.driver));
        }
        self.stage = match self.start(now, drives) {
            Ok(stage) => stage,
            Err(error) => Stage::Failed(error),
        };
    }

    fn start(&mut self, now: Instant, drives: Vec<NvmeDrive>) -> Result<Stage, BootError> {
        let wanted = self.patterns.len();
        if drives.len() != wanted {
            return Err(BootError::Missing { found: drives.len(), wanted });
        }
        let ram = self.ram.clone();
        let mut work: Box<dyn Work> = match &self.workload {
            Workload::ConfigReads { count, .. } => {
                let count = *count;
                return Ok(self.pause(now, count));
            }
            Workload::Idle => unreachable!("it does not boot"),
            Workload::Replay(replay) => {
                replay.check(&drives)?;
                let replay = replay.clone();
                let work = Replayer::new(now, replay, self.config, drives, &self.patterns, ram);
                Box::new(work.ok_or(BootError::Memory)?)
            }
            Workload::Fio(_) | Workload::Dd { .. } => {
                let fio = self.workload.fio().expect("fio's words");
                check(&fio, &drives)?;
                let patterns = self.patterns.clone();
                let work = Jobs::new(now, fio, self.config, drives, patterns, ram, &self.rng);
                let mut work = work.ok_or(BootError::Memory)?;
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

/// An asserted wire interrupts again after this time.
const INTX_POLL: Duration = Duration::from_us(1);

/// Entries of the largest queue.
const MOST_ENTRIES: usize = 4096;

fn check(fio: &super::Fio, drives: &[NvmeDrive]) -> Result<(), BootError> {
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
    if fio.commands() >= MOST_ENTRIES {
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
