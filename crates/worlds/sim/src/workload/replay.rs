//! Replays recorded commands at their recorded times, or as fast as their queues allow.

mod buffers;

use super::contents::{Content, Contents, Known};
use super::{LBA_SIZE, SoftwareConfig};
use crate::ensure;
use crate::measure::Op;
use ::workload::{Agenda, CommandKey, Cpu, NvmeDrive, Observer, Submission, Tally, Work, Written};
use buffers::Buffers;
use nvme::initiator::{Driver, Io};
use pcie::Ram;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use wire::{Duration, Instant};

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Time since the beginning of the workload.
    pub at: Duration,
    /// Number of the drive.
    pub drive: usize,
    /// Number of the drive's I/O queue, from 0.
    pub queue: usize,
    /// The operation.
    pub op: Op,
    /// First byte on the drive, a multiple of 512.
    pub offset: u64,
    /// Bytes, a multiple of 512; 0 for a flush.
    pub length: u64,
}

/// When commands are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueTiming {
    /// Commands are issued at their recorded times, or later if their queue is full.
    Recorded,
    /// Commands are issued in order, as soon as their queue has room.
    Asap,
}

/// A recording to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The commands, ordered by time.
    pub operations: Arc<[Operation]>,
    /// When the commands are issued.
    pub timing: IssueTiming,
    /// The most commands in flight, by drive and queue: 1 to 4095.
    pub depths: Vec<Vec<u16>>,
}

impl Replay {
    /// The largest number of queues of a drive.
    pub(super) fn queues(&self) -> usize {
        self.depths.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    /// The largest depth of all queues.
    pub(super) fn depth(&self) -> usize {
        self.depths.iter().flatten().map(|depth| usize::from(*depth)).max().unwrap_or(1)
    }

    /// Bytes of the longest transfer.
    fn longest(&self) -> u64 {
        let data = self.operations.iter().filter(|operation| operation.op.moves_blocks());
        data.map(|operation| operation.length).max().unwrap_or(0)
    }

    /// Checks that the drives can execute all operations.
    pub(super) fn check(&self, drives: &[NvmeDrive]) -> Result<(), &'static str> {
        let all = |holds: &dyn Fn(&Operation) -> bool| self.operations.iter().all(holds);
        let ordered = self.operations.is_sorted_by_key(|operation| operation.at);
        ensure(ordered, "the operations are not in the order of their times")?;
        let depths = self.depths.iter().flatten().all(|depth| (1..=4095).contains(depth));
        ensure(depths, "the depth of a queue is not 1 to 4095 commands")?;
        let known = all(&|o| self.depths.get(o.drive).is_some_and(|d| o.queue < d.len()));
        let there = known && self.depths.len() <= drives.len();
        ensure(there, "an operation is for a drive or a queue that does not exist")?;
        let whole = all(&|o| (o.offset | o.length).is_multiple_of(LBA_SIZE));
        ensure(whole, "an operation is not for whole blocks of 512 bytes")?;
        for (number, drive) in drives.iter().enumerate() {
            let ends = |o: &Operation| o.offset.checked_add(o.length);
            let inside = |o: &Operation| ends(o).is_some_and(|end| end <= room(drive));
            let fits = all(&|o| o.drive != number || inside(o));
            ensure(fits, "an operation ends after its drive's end")?;
            let queues = drive.driver.queues();
            ensure(
                queues >= self.queues(),
                "the operations use more queue pairs than a drive has",
            )?;
            let most = drive.driver.max_transfer() as u64;
            let fits = self.longest() <= most;
            ensure(fits, "an operation is larger than a drive's largest transfer")?;
        }
        // NLB has 16 bits.
        let blocks = all(&|o| o.op == Op::Flush || (1..=65536).contains(&(o.length / LBA_SIZE)));
        ensure(blocks, "an operation is not for 1 to 65536 blocks")
    }
}

/// Bytes of the first namespace.
fn room(drive: &NvmeDrive) -> u64 {
    let namespace = drive.driver.namespaces()[0];
    namespace.blocks << namespace.block_shift
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    /// The next operations are due.
    Due,
    /// The CPU has prepared the command with this number.
    Submit(u64),
    /// The completion handler of a queue starts.
    Reap { drive: usize, queue: usize },
    /// The application has the result of the command with this number.
    Complete(u64),
}

/// A command under way.
#[derive(Debug)]
struct Running {
    operation: Operation,
    since: Instant,
    buffer: u64,
    /// The content after a write, and the contents that a read expects.
    content: Content,
    known: Known,
    /// Whether the command was submitted.
    submitted: bool,
    ok: bool,
    /// Whether the command was lost.
    lost: bool,
}

/// A queue pair.
#[derive(Debug, Default)]
struct ReplayedQueue {
    most: usize,
    in_flight: usize,
    /// Due operations, with their due times.
    waiting: VecDeque<(Instant, usize)>,
    /// Whether completions were signalled and the handler has not run.
    signalled: bool,
    /// Whether the link of the queue's drive is down. The commands in `parked` wait for the link.
    missing: bool,
    parked: Vec<u64>,
    /// Commands by their identifier.
    owners: BTreeMap<u16, u64>,
}

/// The replay of a host.
#[derive(Debug)]
pub(super) struct Replayer {
    replay: Replay,
    config: SoftwareConfig,
    began: Instant,
    drives: Vec<NvmeDrive>,
    contents: Vec<Contents>,
    ram: Rc<RefCell<Ram>>,
    buffers: Buffers,
    /// The queues by drive and queue number.
    queues: Vec<Vec<ReplayedQueue>>,
    /// One CPU serves all queues with the same number.
    cpus: Vec<Cpu>,
    /// The CPU that serves all queues, if the host has a processor.
    shared: Option<Cpu>,
    /// The operation that is due next.
    next: usize,
    /// Operations that have not finished.
    left: usize,
    running: BTreeMap<u64, Running>,
    agenda: Agenda<Action>,
    /// Whether a queue waits for a buffer.
    starved: bool,
    tally: Tally,
}

impl Replayer {
    /// A replay that begins at `start`. `None` if `ram` is too small for the longest transfer.
    pub(super) fn new(
        start: Instant,
        replay: Replay,
        config: SoftwareConfig,
        drives: Vec<NvmeDrive>,
        patterns: &[u64],
        ram: Rc<RefCell<Ram>>,
    ) -> Option<Self> {
        let buffers = Buffers::new(&ram, replay.longest())?;
        let replayed =
            |depth: &u16| ReplayedQueue { most: usize::from(*depth), ..ReplayedQueue::default() };
        let queues = replay.depths.iter().map(|depths| depths.iter().map(replayed).collect());
        let drive_bytes = vec![0; drives.len()];
        Some(Self {
            queues: queues.collect(),
            cpus: (0..replay.queues()).map(|_| Cpu::default()).collect(),
            shared: None,
            left: replay.operations.len(),
            contents: patterns.iter().map(|seed| Contents::new(*seed)).collect(),
            replay,
            config,
            began: start,
            drives,
            ram,
            buffers,
            next: 0,
            running: BTreeMap::new(),
            agenda: Agenda::default(),
            starved: false,
            tally: Tally { drive_bytes, ..Tally::default() },
        })
    }

    /// Makes all queues share a CPU, also for the latency of interrupts.
    pub(super) fn share_cpu(&mut self, cpu: &Cpu) {
        self.cpus.fill(cpu.clone());
        self.shared = Some(cpu.clone());
    }

    /// Moves due operations to their queues.
    fn due(&mut self, now: Instant) {
        let asap = self.replay.timing == IssueTiming::Asap;
        while let Some(operation) = self.replay.operations.get(self.next) {
            let at = if asap { self.began } else { self.began + operation.at };
            if at > now {
                return self.agenda.schedule(at, Action::Due);
            }
            let Operation { drive, queue, .. } = *operation;
            self.queues[drive][queue].waiting.push_back((now, self.next));
            self.next += 1;
            self.fill(now, drive, queue);
        }
    }

    /// Issues waiting operations while there is room.
    fn fill(&mut self, now: Instant, drive: usize, queue: usize) {
        loop {
            let replayed = &mut self.queues[drive][queue];
            let Some((waits, number)) = replayed.waiting.front().copied() else { return };
            if replayed.in_flight >= replayed.most {
                return;
            }
            let operation = self.replay.operations[number];
            let length = if operation.op.moves_blocks() { operation.length } else { 0 };
            let Some(buffer) = self.buffers.take(&self.ram, length) else {
                self.starved = true;
                return;
            };
            replayed.waiting.pop_front();
            replayed.in_flight += 1;
            // With `Asap`, latency starts when the command is issued.
            let since = if self.replay.timing == IssueTiming::Asap { now } else { waits };
            let (content, known) = (Content::Unknown, Known::new());
            let (submitted, ok, lost) = (false, true, false);
            let running = Running { operation, since, buffer, content, known, submitted, ok, lost };
            self.running.insert(number as u64, running);
            let at = self.cpus[queue].occupy(now, self.config.submit);
            self.agenda.schedule(at, Action::Submit(number as u64));
        }
    }

    fn submit(&mut self, now: Instant, number: u64, observer: &mut dyn Observer) {
        let running = self.running.get_mut(&number).expect("it was issued");
        let Operation { drive, queue, op, offset, length, .. } = running.operation;
        let replayed = &mut self.queues[drive][queue];
        if replayed.missing {
            return replayed.parked.push(number);
        }
        running.submitted = true;
        let contents = &mut self.contents[drive];
        match op {
            Op::Read => running.known = contents.known(offset, length),
            Op::Write => {
                contents.begin(offset, length);
                let mut ram = self.ram.borrow_mut();
                let bytes = ram.get_mut(running.buffer, length as usize).expect("our own buffer");
                running.content = contents.fresh(offset, bytes);
            }
            Op::WriteZeroes | Op::Discard => {
                contents.begin(offset, length);
                running.content =
                    if op == Op::Discard { Content::Unknown } else { Content::Zeroes };
            }
            Op::Flush => {}
        }
        let (slba, blocks) = (offset / LBA_SIZE, (length / LBA_SIZE) as u32);
        let Running { since, buffer, .. } = *running;
        let driver = &mut self.drives[drive].driver;
        let prepared = driver.prepare(now, queue, Io { op, nsid: 1, slba, blocks, buffer });
        let id = prepared.expect("a queue has room for what it lets in").get();
        self.queues[drive][queue].owners.insert(id, number);
        let key = CommandKey::new(drive, queue, id);
        observer.submit(now, Submission { key, since, op, offset, buffer, length });
        driver.ring(queue);
    }

    fn reap(&mut self, now: Instant, drive: usize, queue: usize, observer: &mut dyn Observer) {
        let cpu = self.cpus[queue].free_at();
        if cpu > now {
            return self.agenda.schedule(cpu, Action::Reap { drive, queue });
        }
        let replayed = &mut self.queues[drive][queue];
        if !std::mem::take(&mut replayed.signalled) || replayed.missing {
            // The drive was lost in the meantime.
            return;
        }
        for done in self.drives[drive].driver.reap(queue) {
            let id = done.id.get();
            let number = self.queues[drive][queue].owners.remove(&id).expect("it was submitted");
            let at = self.cpus[queue].occupy(now, self.config.complete);
            observer.finish(at, CommandKey::new(drive, queue, id));
            let running = self.running.get_mut(&number).expect("it was submitted");
            running.ok = done.status.is_success();
            self.agenda.schedule(at, Action::Complete(number));
        }
    }

    /// Ends a command that was lost with its drive.
    fn lose(&mut self, now: Instant, number: u64) {
        let running = self.running.get_mut(&number).expect("it was issued");
        (running.ok, running.lost) = (false, true);
        self.agenda.schedule(now, Action::Complete(number));
    }

    fn complete(&mut self, now: Instant, number: u64) {
        let running = self.running.remove(&number).expect("it was submitted");
        let Operation { drive, queue, op, offset, length, .. } = running.operation;
        self.left -= 1;
        self.queues[drive][queue].in_flight -= 1;
        if !running.lost {
            self.tally.latency.record(now - running.since);
        }
        self.tally.failures += u64::from(!running.ok);
        let contents = &mut self.contents[drive];
        match op {
            Op::Read if running.ok => {
                let mut ram = self.ram.borrow_mut();
                let bytes = ram.get(running.buffer, length as usize).expect("our own buffer");
                let (compared, wrong) = contents.compare(offset, bytes, &running.known);
                self.tally.verified += compared;
                self.tally.mismatches += wrong;
            }
            Op::Write | Op::WriteZeroes | Op::Discard if running.submitted => {
                let content = if running.ok { running.content } else { Content::Unknown };
                contents.end(offset, length, content);
            }
            _ => {}
        }
        if op.moves_blocks() {
            let moved = if running.lost { 0 } else { length };
            self.tally.bytes += moved;
            self.tally.drive_bytes[drive] += moved;
            self.buffers.give_back(running.buffer);
        }
        self.fill(now, drive, queue);
        if std::mem::take(&mut self.starved) {
            for drive in 0..self.queues.len() {
                (0..self.queues[drive].len()).for_each(|queue| self.fill(now, drive, queue));
            }
        }
    }
}

impl Work for Replayer {
    fn start(&mut self, now: Instant) {
        self.due(now);
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn next(&self) -> Option<Instant> {
        self.agenda.next()
    }

    fn signal(&mut self, now: Instant, drive: usize, queue: usize) {
        let replayed = self.queues.get_mut(drive).and_then(|queues| queues.get_mut(queue));
        if replayed.is_some_and(|replayed| !std::mem::replace(&mut replayed.signalled, true)) {
            let at = self.config.completions.after_on(now, self.shared.as_ref());
            self.agenda.schedule(at, Action::Reap { drive, queue });
        }
    }

    fn run(&mut self, now: Instant, observer: &mut dyn Observer) {
        while let Some(action) = self.agenda.due(now) {
            match action {
                Action::Due => self.due(now),
                Action::Submit(number) => self.submit(now, number, observer),
                Action::Reap { drive, queue } => self.reap(now, drive, queue, observer),
                Action::Complete(number) => self.complete(now, number),
            }
        }
    }

    fn release(&mut self, _: usize) -> bool {
        // A recording is always replayed to its end.
        self.is_done()
    }

    fn written(&self, _: usize) -> Vec<Written> {
        vec![Written { offset: 0, length: u64::MAX, version: None }]
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn is_late(&mut self, now: Instant, drive: usize) -> bool {
        self.drives[drive].driver.check_timeouts(now).is_err()
    }

    fn drive_lost(&mut self, now: Instant, drive: usize, observer: &mut dyn Observer) {
        for queue in 0..self.queues.get(drive).map_or(0, Vec::len) {
            let replayed = &mut self.queues[drive][queue];
            (replayed.missing, replayed.signalled) = (true, false);
            for (id, number) in std::mem::take(&mut replayed.owners) {
                observer.discard(CommandKey::new(drive, queue, id));
                self.lose(now, number);
            }
        }
    }

    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool) {
        self.drives[drive].driver = driver;
        if new_contents {
            self.contents[drive].forget();
        }
        for queue in 0..self.queues.get(drive).map_or(0, Vec::len) {
            let replayed = &mut self.queues[drive][queue];
            replayed.missing = false;
            for number in std::mem::take(&mut replayed.parked) {
                if new_contents {
                    self.lose(now, number);
                } else {
                    self.agenda.schedule(now, Action::Submit(number));
                }
            }
        }
    }
}
