//! Tracks the latency of every command by the TLPs that serve it.

use super::{Breakdown, CommandRecord, Journey, Latency, Stage};
use nvme::initiator::QueueMemory;
use std::collections::{BTreeMap, VecDeque};
use wire::nvme::{COMPLETION_ENTRY, Completion, SUBMISSION_ENTRY};
use wire::tlp::{Packet, Tlp};
use wire::{Bdf, Duration, Instant};
use workload::{CommandKey, Observer, Submission};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    submission: Submission,
    journey: Journey,
    /// Number among the submissions of its host.
    number: u64,
    /// Start of the submission doorbell at the root port.
    doorbell: Instant,
    /// The completion entry is in host memory.
    completed: bool,
}

#[derive(Debug, Default)]
struct Queue {
    entries: u16,
    /// The command of each submission entry.
    slots: Vec<u16>,
    tail: u16,
    commands: Vec<Option<Command>>,
    /// Commands in the queue whose doorbell was not sent yet.
    before_doorbell: Vec<u16>,
    /// Commands of each doorbell in flight.
    doorbells: VecDeque<Vec<u16>>,
    /// Submission doorbells, at the root port, of finished commands that the
    /// next completion head doorbell acknowledges.
    before_head_doorbell: Vec<Instant>,
}

/// A range of host memory that belongs to a queue.
#[derive(Clone, Copy, Debug)]
struct Region {
    /// The address after the last.
    end: u64,
    drive: u16,
    queue: u16,
    contents: Contents,
}

#[derive(Clone, Copy, Debug)]
enum Contents {
    Submissions,
    Completions,
    /// The data of this command.
    Data(u16),
}

#[derive(Clone, Debug)]
enum Purpose {
    Fetch { queue: u16, first: u16, count: u16 },
    Data { key: CommandKey, base: Box<Journey> },
}

#[derive(Debug)]
struct Read {
    purpose: Purpose,
    journey: Journey,
}

#[derive(Debug)]
struct Drive {
    function: Bdf,
    doorbells: u64,
    queues: Vec<Queue>,
    /// DMA reads under way, by tag.
    reads: Vec<Option<Read>>,
}

/// The commands of one host.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    drives: Vec<Drive>,
    /// By first address.
    regions: BTreeMap<u64, Region>,
    /// Commands that have not reached the media, by drive, first byte and number of submission.
    offsets: BTreeMap<(u16, u64, u64), CommandKey>,
    submissions: u64,
    /// Submission doorbell to acknowledged head doorbell, at the root port.
    pub root_port: Latency,
    /// Sum of the breakdowns of all commands.
    pub breakdown: Breakdown,
    pub commands: u64,
    /// Whether finished commands are kept for an observer.
    pub keep: bool,
    pub finished: Vec<CommandRecord>,
    /// Sum of the commands' times, for the check that the breakdown is exact.
    pub total: Duration,
}

const NO_COMMAND: u16 = u16::MAX;

impl Observer for Tracker {
    fn submit(&mut self, now: Instant, submission: Submission) {
        Self::submit(self, now, submission);
    }

    fn finish(&mut self, at: Instant, key: CommandKey) {
        Self::finish(self, at, key);
    }

    fn discard(&mut self, key: CommandKey) {
        Self::discard(self, key);
    }
}

impl Tracker {
    /// Sets the function, BAR 0 and queues of a drive. If it was there before, its TLPs in flight
    /// are lost.
    pub fn set_drive(&mut self, drive: u16, function: Bdf, bar0: u64, queues: &[QueueMemory]) {
        self.regions.retain(|_, region| region.drive != drive);
        self.offsets.retain(|(of, ..), _| *of != drive);
        let mut tracked = Vec::new();
        for (queue, memory) in (1..).zip(queues) {
            let entries = usize::from(memory.entries);
            for (start, entry, contents) in [
                (memory.submission, SUBMISSION_ENTRY, Contents::Submissions),
                (memory.completion, COMPLETION_ENTRY, Contents::Completions),
            ] {
                let end = start + (entries * entry) as u64;
                self.regions.insert(start, Region { end, drive, queue, contents });
            }
            tracked.push(Queue {
                entries: memory.entries,
                slots: vec![NO_COMMAND; entries],
                commands: vec![None; entries],
                ..Queue::default()
            });
        }
        let doorbells = bar0 + 0x1000;
        let new = Drive { function, doorbells, queues: tracked, reads: Vec::new() };
        match self.drives.get_mut(usize::from(drive)) {
            Some(old) => *old = new,
            None => self.drives.push(new),
        }
    }

    /// Removes a command, which has ended or never will.
    pub fn discard(&mut self, key: CommandKey) -> Option<Command> {
        let queue = self.queue(key.drive, key.queue)?;
        let command = queue.commands.get_mut(usize::from(key.id))?.take()?;
        if command.submission.op.moves_blocks() {
            self.regions.remove(&command.submission.buffer);
            self.offsets.remove(&(key.drive, command.submission.offset, command.number));
        }
        Some(command)
    }

    fn queue(&mut self, drive: u16, queue: u16) -> Option<&mut Queue> {
        self.drives.get_mut(usize::from(drive))?.queues.get_mut(usize::from(queue).checked_sub(1)?)
    }

    fn command(&mut self, key: CommandKey) -> Option<&mut Command> {
        self.queue(key.drive, key.queue)?.commands.get_mut(usize::from(key.id))?.as_mut()
    }

    /// The region of an address, and the offset in it.
    fn region(&self, address: u64) -> Option<(u64, Region)> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        (address < region.end).then_some((address - start, *region))
    }

    /// The command whose completion entry is written to `address`.
    fn completed(&mut self, address: u64, tlp: &Tlp) -> Option<&mut Command> {
        let entry = <&[u8; COMPLETION_ENTRY]>::try_from(&tlp.data[..]).ok()?;
        let Region { drive, queue, contents: Contents::Completions, .. } = self.region(address)?.1
        else {
            return None;
        };
        self.command(CommandKey { drive, queue, id: Completion::decode(entry).cid })
    }

    /// A command was put into its queue.
    pub fn submit(&mut self, now: Instant, submission: Submission) {
        let Submission { key, since, op, offset, buffer, length } = submission;
        let mut journey = Journey::new(since);
        journey.advance(now, Stage::HostSoftware);
        self.submissions += 1;
        let number = self.submissions;
        let Some(queue) = self.queue(key.drive, key.queue) else { return };
        queue.slots[usize::from(queue.tail)] = key.id;
        queue.tail = (queue.tail + 1) % queue.entries;
        queue.before_doorbell.push(key.id);
        let command = Command { submission, journey, number, doorbell: now, completed: false };
        queue.commands[usize::from(key.id)] = Some(command);
        if op.moves_blocks() {
            let CommandKey { drive, queue, id } = key;
            let (end, contents) = (buffer + length, Contents::Data(id));
            self.regions.insert(buffer, Region { end, drive, queue, contents });
            self.offsets.insert((key.drive, offset, number), key);
        }
    }

    /// (drive, queue, whether it is a completion head doorbell).
    fn doorbell(&self, address: u64) -> Option<(u16, u16, bool)> {
        for (number, drive) in (0..).zip(&self.drives) {
            if let Some(offset) = address.checked_sub(drive.doorbells)
                && offset < (drive.queues.len() as u64 + 1) * 8
            {
                return Some((number, (offset / 8) as u16, offset & 4 != 0));
            }
        }
        None
    }

    /// A TLP leaves the root port. `now` it was ready; but for what goes in front of it, its first
    /// bit was on the wire at `start`. It is acknowledged at `end`.
    pub fn leaves_root(&mut self, [now, start, end]: [Instant; 3], tlp: &Tlp) -> Journey {
        match tlp.packet {
            Packet::MemoryWrite(request) => match self.doorbell(request.address) {
                Some((drive, queue, false)) => self.tail_leaves([now, start], drive, queue),
                Some((drive, queue, true)) => self.head_leaves(end, drive, queue),
                None => {}
            },
            Packet::Completion(c) => {
                if let Some(read) = self.read(c.requester, c.tag.get()) {
                    let mut journey = read.journey;
                    journey.advance(now, Stage::HostMemory);
                    return journey;
                }
            }
            _ => {}
        }
        Journey::new(now)
    }

    fn tail_leaves(&mut self, [now, start]: [Instant; 2], drive: u16, queue: u16) {
        let Some(queue) = self.queue(drive, queue) else { return };
        let submitted = std::mem::take(&mut queue.before_doorbell);
        for id in &submitted {
            if let Some(command) = &mut queue.commands[usize::from(*id)] {
                command.journey.advance(now, Stage::HostSoftware);
                command.doorbell = start;
            }
        }
        queue.doorbells.push_back(submitted);
    }

    /// The commands end that a head doorbell acknowledges, which is acknowledged at `end`.
    fn head_leaves(&mut self, end: Instant, drive: u16, queue: u16) {
        let Some(queue) = self.queue(drive, queue) else { return };
        let done = std::mem::take(&mut queue.before_head_doorbell);
        done.into_iter().for_each(|doorbell| self.root_port.record(end - doorbell));
    }

    fn read(&mut self, requester: Bdf, tag: u16) -> Option<&mut Read> {
        let drive = self.drives.iter_mut().find(|drive| drive.function == requester)?;
        drive.reads.get_mut(usize::from(tag))?.as_mut()
    }

    /// A TLP has reached the root complex from below.
    pub fn reaches_root(&mut self, tlp: &Tlp, journey: Journey) {
        match tlp.packet {
            Packet::MemoryRead(request) => {
                if let Some(read) = self.read(request.requester, request.tag.get()) {
                    read.journey = journey;
                }
            }
            Packet::MemoryWrite(request) => {
                if let Some(command) = self.completed(request.address, tlp) {
                    command.journey.follow(&journey, Stage::Controller);
                    command.completed = true;
                }
            }
            _ => {}
        }
    }

    /// An interrupt of a queue has arrived.
    pub fn interrupted(&mut self, now: Instant, drive: u16, queue: u16) {
        if let Some(queue) = self.queue(drive, queue) {
            for command in queue.commands.iter_mut().flatten().filter(|c| c.completed) {
                command.journey.advance(now, Stage::Interrupt);
            }
        }
    }

    /// A TLP has reached drive `drive`.
    pub fn reaches_drive(&mut self, drive: u16, tlp: &Tlp, journey: Journey) {
        match tlp.packet {
            Packet::MemoryWrite(request) => {
                if let Some((at, queue, false)) = self.doorbell(request.address)
                    && at == drive
                    && let Some(queue) = self.queue(drive, queue)
                {
                    for id in queue.doorbells.pop_front().unwrap_or_default() {
                        if let Some(command) = &mut queue.commands[usize::from(id)] {
                            command.journey.follow(&journey, Stage::HostSoftware);
                        }
                    }
                }
            }
            Packet::Completion(c) if usize::from(c.byte_count) <= tlp.data.len() => {
                let slot = self.drives.get_mut(usize::from(drive));
                let read = slot.and_then(|d| d.reads.get_mut(usize::from(c.tag.get())));
                if let Some(read) = read.and_then(Option::take) {
                    self.read_done(drive, read.purpose, journey);
                }
            }
            _ => {}
        }
    }

    fn read_done(&mut self, drive: u16, purpose: Purpose, journey: Journey) {
        match purpose {
            Purpose::Fetch { queue, first, count } => {
                self.for_entries(drive, queue, first, count, |command| {
                    command.journey.follow(&journey, Stage::Controller);
                });
            }
            Purpose::Data { key, mut base } => {
                base.follow(&journey, Stage::Controller);
                if let Some(command) = self.command(key) {
                    command.journey = *base;
                }
            }
        }
    }

    fn for_entries(
        &mut self,
        drive: u16,
        queue: u16,
        first: u16,
        count: u16,
        mut each: impl FnMut(&mut Command),
    ) {
        let Some(queue) = self.queue(drive, queue) else { return };
        for at in first..first + count {
            let id = queue.slots.get(usize::from(at)).copied().unwrap_or(NO_COMMAND);
            if let Some(Some(command)) = queue.commands.get_mut(usize::from(id)) {
                each(command);
            }
        }
    }

    /// A TLP leaves drive `drive`.
    pub fn leaves_drive(&mut self, now: Instant, drive: u16, tlp: &Tlp) -> Journey {
        match tlp.packet {
            Packet::MemoryRead(request) => {
                let found = self.region(request.address);
                let purpose = found.and_then(|(offset, region)| match region.contents {
                    Contents::Submissions => {
                        let queue = region.queue;
                        let first = (offset / SUBMISSION_ENTRY as u64) as u16;
                        let count = (request.length() / SUBMISSION_ENTRY) as u16;
                        self.for_entries(drive, queue, first, count, |command| {
                            command.journey.advance(now, Stage::Controller);
                        });
                        Some(Purpose::Fetch { queue, first, count })
                    }
                    Contents::Data(id) => {
                        let key = CommandKey { drive: region.drive, queue: region.queue, id };
                        let mut base = Box::new(self.command(key)?.journey);
                        base.advance(now, Stage::Controller);
                        Some(Purpose::Data { key, base })
                    }
                    Contents::Completions => None,
                });
                if let (Some(purpose), Some(drive)) =
                    (purpose, self.drives.get_mut(usize::from(drive)))
                {
                    let tag = usize::from(request.tag.get());
                    if drive.reads.len() <= tag {
                        drive.reads.resize_with(tag + 1, || None);
                    }
                    drive.reads[tag] = Some(Read { purpose, journey: Journey::new(now) });
                }
            }
            Packet::MemoryWrite(request) => {
                if let Some(command) = self.completed(request.address, tlp) {
                    command.journey.advance(now, Stage::Controller);
                }
            }
            _ => {}
        }
        Journey::new(now)
    }

    /// The controller has started an access of its media.
    pub fn media_started(&mut self, now: Instant, drive: u16, offset: u64) -> Option<CommandKey> {
        let mut waiting = self.offsets.range((drive, offset, 0)..=(drive, offset, u64::MAX));
        let (place, key) = waiting.next().map(|(place, key)| (*place, *key))?;
        self.offsets.remove(&place);
        self.command(key)?.journey.advance(now, Stage::Controller);
        Some(key)
    }

    /// The media have finished an access.
    pub fn media_done(&mut self, now: Instant, key: CommandKey, firmware: Duration) {
        if let Some(command) = self.command(key) {
            let first = (command.journey.last + firmware).min(now);
            command.journey.advance(first, Stage::Firmware);
            command.journey.advance(now, Stage::Media);
        }
    }

    /// The host has read the completion entry; its head doorbell follows, and the
    /// application has its result at `now`.
    pub fn finish(&mut self, now: Instant, key: CommandKey) {
        let Some(mut command) = self.discard(key) else { return };
        command.journey.advance(now, Stage::HostSoftware);
        if let Some(queue) = self.queue(key.drive, key.queue) {
            queue.before_head_doorbell.push(command.doorbell);
        }
        let Journey { start, breakdown, .. } = command.journey;
        self.breakdown.merge(&breakdown);
        self.commands += 1;
        self.total = self.total + (now - start);
        if self.keep {
            let Submission { op, offset, length, .. } = command.submission;
            self.finished.push(CommandRecord {
                host: 0,
                drive: key.drive,
                queue: key.queue,
                id: key.id,
                op,
                offset,
                length,
                since: start,
                until: now,
                breakdown,
            });
        }
    }
}
