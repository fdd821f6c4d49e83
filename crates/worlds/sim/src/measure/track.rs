//! Tracks the latency of every command by the TLPs that serve it.

use super::{Breakdown, CommandRecord, Journey, Latency, Stage};
use follow::{Places, Ring, completion_entries};
use nvme::initiator::QueueMemory;
use std::collections::BTreeMap;
use wire::nvme::SUBMISSION_ENTRY;
use wire::nvme::register::Doorbell;
use wire::tlp::{MemoryRequest, Packet, Tlp};
use wire::{Bdf, Duration, Instant};
use workload::{CommandKey, Observer, Submission};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    submission: Submission,
    journey: Journey,
    /// Number of the command among the submissions of its host.
    number: u64,
    /// When the first bit of the submission doorbell left the root port.
    doorbell: Instant,
    /// Whether the completion entry is in host memory.
    completed: bool,
}

#[derive(Debug, Default)]
struct Queue {
    ring: Ring,
    /// The command of each submission entry.
    slots: Vec<u16>,
    tail: u16,
    commands: Vec<Option<Command>>,
    /// The tails of doorbells at the root port and at the drive.
    rung: [u16; 2],
    /// Times at the root port of the submission doorbells of finished commands. The next completion
    /// head doorbell acknowledges these commands.
    before_head_doorbell: Vec<Instant>,
}

/// Where doorbells are observed: indices of `Queue::rung`.
const ROOT: usize = 0;
const DRIVE: usize = 1;

#[derive(Clone, Debug)]
enum Purpose {
    Fetch { queue: u16, first: u16, count: u32 },
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
    bar0: u64,
    queues: Vec<Queue>,
    /// DMA reads under way, by tag.
    reads: Vec<Option<Read>>,
}

/// The commands of one host.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    drives: Vec<Drive>,
    /// Memory of queues, by drive and queue.
    places: Places<(u16, follow::Queue)>,
    /// Data buffers of commands by first address: the address after the last byte, and the command.
    buffers: BTreeMap<u64, (u64, CommandKey)>,
    /// Commands that have not accessed the media yet, by drive, first byte and submission number.
    offsets: BTreeMap<(u16, u64, u64), CommandKey>,
    submissions: u64,
    /// The latency at the root port, from the submission doorbell to the acknowledged completion
    /// head doorbell.
    pub root_port: Latency,
    /// Sum of the breakdowns of all commands.
    pub breakdown: Breakdown,
    pub commands: u64,
    /// Whether finished commands are stored for an observer.
    pub keep: bool,
    pub finished: Vec<CommandRecord>,
    /// Total time of all commands, to check that the breakdown is exact.
    pub total: Duration,
}

const NO_COMMAND: u16 = u16::MAX;

impl Tracker {
    /// Sets the function, BAR 0 and queues of a drive. If the drive was set before, its TLPs in
    /// flight are lost.
    pub(crate) fn set_drive(
        &mut self,
        drive: u16,
        function: Bdf,
        bar0: u64,
        queues: &[QueueMemory],
    ) {
        self.places.remove(|(owner, _)| *owner == drive);
        self.buffers.retain(|_, (_, key)| key.drive != drive);
        self.offsets.retain(|(owner, ..), _| *owner != drive);
        let mut tracked = Vec::new();
        for (queue, memory) in (1..).zip(queues) {
            let (entries, last) = (usize::from(memory.entries), memory.entries - 1);
            let ring = Ring::submission(memory.submission, last);
            let completions = Ring::completion(memory.completion, last);
            self.places.add(ring.range(), (drive, follow::Queue::Submission(queue)));
            self.places.add(completions.range(), (drive, follow::Queue::Completion(queue)));
            tracked.push(Queue {
                ring,
                slots: vec![NO_COMMAND; entries],
                commands: vec![None; entries],
                ..Queue::default()
            });
        }
        let new = Drive { function, bar0, queues: tracked, reads: Vec::new() };
        match self.drives.get_mut(usize::from(drive)) {
            Some(old) => *old = new,
            None => self.drives.push(new),
        }
    }

    /// Removes a command that has ended or will never end.
    fn remove(&mut self, key: CommandKey) -> Option<Command> {
        let queue = self.queue(key.drive, key.queue)?;
        let command = queue.commands.get_mut(usize::from(key.id))?.take()?;
        if command.submission.op.moves_blocks() {
            self.buffers.remove(&command.submission.buffer);
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

    /// The command that owns the data at an address.
    fn owner(&self, address: u64) -> Option<CommandKey> {
        let (_, (end, key)) = self.buffers.range(..=address).next_back()?;
        (address < *end).then_some(*key)
    }

    /// The command whose completion entry is written.
    fn completed(&mut self, tlp: &Tlp, request: MemoryRequest) -> Option<&mut Command> {
        let (_, (drive, queue)) = self.places.at(request.address)?;
        let (drive, follow::Queue::Completion(queue)) = (*drive, *queue) else { return None };
        let id = completion_entries(tlp, request)?.next()?.cid;
        self.command(CommandKey { drive, queue, id })
    }

    /// The drive and doorbell at `address`.
    fn doorbell(&self, address: u64) -> Option<(u16, Doorbell)> {
        (0..).zip(&self.drives).find_map(|(number, drive)| {
            let doorbell = Doorbell::at(address.checked_sub(drive.bar0)?, 0)?;
            let (Doorbell::SubmissionTail(queue) | Doorbell::CompletionHead(queue)) = doorbell;
            (usize::from(queue) <= drive.queues.len()).then_some((number, doorbell))
        })
    }

    /// Handles a TLP that leaves the root port. The TLP is ready at `now`, and acknowledged at
    /// `end`. Its first bit is on the wire at `start`, not counting TLPs in front of it.
    pub(crate) fn leaves_root(&mut self, [now, start, end]: [Instant; 3], tlp: &Tlp) -> Journey {
        match tlp.packet {
            Packet::MemoryWrite(request) => match self.doorbell(request.address) {
                Some((drive, Doorbell::SubmissionTail(queue))) => {
                    self.rung(ROOT, drive, queue, tlp, |command| {
                        command.journey.advance(now, Stage::HostSoftware);
                        command.doorbell = start;
                    });
                }
                Some((drive, Doorbell::CompletionHead(queue))) => {
                    self.head_leaves(end, drive, queue);
                }
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

    /// Handles a submission doorbell that passes [`ROOT`] or [`DRIVE`]. Calls `each` for every
    /// command that the doorbell submits.
    fn rung(
        &mut self,
        end: usize,
        drive: u16,
        number: u16,
        doorbell: &Tlp,
        each: impl FnMut(&mut Command),
    ) {
        let Some(queue) = self.queue(drive, number) else { return };
        let tail = doorbell.data.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
        let Some(tail) = tail.filter(|tail| *tail <= queue.ring.last()) else { return };
        let first = std::mem::replace(&mut queue.rung[end], tail);
        let count = queue.ring.distance(first, tail);
        self.for_entries(drive, number, first, count, each);
    }

    /// Records the root port latency of the commands that a completion head doorbell acknowledges.
    /// The doorbell itself is acknowledged at `end`.
    fn head_leaves(&mut self, end: Instant, drive: u16, queue: u16) {
        let Some(queue) = self.queue(drive, queue) else { return };
        let done = std::mem::take(&mut queue.before_head_doorbell);
        done.into_iter().for_each(|doorbell| self.root_port.record(end - doorbell));
    }

    fn read(&mut self, requester: Bdf, tag: u16) -> Option<&mut Read> {
        let drive = self.drives.iter_mut().find(|drive| drive.function == requester)?;
        drive.reads.get_mut(usize::from(tag))?.as_mut()
    }

    /// Handles a TLP that has reached the root complex from below.
    pub(crate) fn reaches_root(&mut self, tlp: &Tlp, journey: Journey) {
        match tlp.packet {
            Packet::MemoryRead(request) => {
                if let Some(read) = self.read(request.requester, request.tag.get()) {
                    read.journey = journey;
                }
            }
            Packet::MemoryWrite(request) => {
                if let Some(command) = self.completed(tlp, request) {
                    command.journey.follow(&journey, Stage::Controller);
                    command.completed = true;
                }
            }
            _ => {}
        }
    }

    /// Handles an interrupt of a queue that has arrived.
    pub(crate) fn interrupted(&mut self, now: Instant, drive: u16, queue: u16) {
        if let Some(queue) = self.queue(drive, queue) {
            for command in queue.commands.iter_mut().flatten().filter(|c| c.completed) {
                command.journey.advance(now, Stage::Interrupt);
            }
        }
    }

    /// Handles a TLP that has reached drive `drive`.
    pub(crate) fn reaches_drive(&mut self, drive: u16, tlp: &Tlp, journey: Journey) {
        match tlp.packet {
            Packet::MemoryWrite(request) => {
                if let Some((at, Doorbell::SubmissionTail(queue))) = self.doorbell(request.address)
                    && at == drive
                {
                    self.rung(DRIVE, drive, queue, tlp, |command| {
                        command.journey.follow(&journey, Stage::HostSoftware);
                    });
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
        count: u32,
        mut each: impl FnMut(&mut Command),
    ) {
        let Some(queue) = self.queue(drive, queue) else { return };
        for steps in 0..count {
            let id = queue.slots[usize::from(queue.ring.after(first, steps))];
            if let Some(Some(command)) = queue.commands.get_mut(usize::from(id)) {
                each(command);
            }
        }
    }

    /// Handles a TLP that leaves drive `drive`.
    pub(crate) fn leaves_drive(&mut self, now: Instant, drive: u16, tlp: &Tlp) -> Journey {
        match tlp.packet {
            Packet::MemoryRead(request) => {
                let queue = self.places.at(request.address).map(|(_, (_, queue))| *queue);
                let purpose = match queue {
                    Some(follow::Queue::Submission(queue)) => {
                        let slot = self.queue(drive, queue).map(|q| q.ring.index(request.address));
                        let first = slot.flatten().unwrap_or_default();
                        let count = (request.length() / SUBMISSION_ENTRY) as u32;
                        self.for_entries(drive, queue, first, count, |command| {
                            command.journey.advance(now, Stage::Controller);
                        });
                        Some(Purpose::Fetch { queue, first, count })
                    }
                    Some(follow::Queue::Completion(_)) => None,
                    None => self.owner(request.address).and_then(|key| {
                        let mut base = Box::new(self.command(key)?.journey);
                        base.advance(now, Stage::Controller);
                        Some(Purpose::Data { key, base })
                    }),
                };
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
                if let Some(command) = self.completed(tlp, request) {
                    command.journey.advance(now, Stage::Controller);
                }
            }
            _ => {}
        }
        Journey::new(now)
    }

    /// Records that the controller starts a media access at byte `offset`. Returns the command.
    pub(crate) fn media_started(
        &mut self,
        now: Instant,
        drive: u16,
        offset: u64,
    ) -> Option<CommandKey> {
        let mut waiting = self.offsets.range((drive, offset, 0)..=(drive, offset, u64::MAX));
        let (place, key) = waiting.next().map(|(place, key)| (*place, *key))?;
        self.offsets.remove(&place);
        self.command(key)?.journey.advance(now, Stage::Controller);
        Some(key)
    }

    /// Records that the media have finished the access of a command.
    pub(crate) fn media_done(&mut self, now: Instant, key: CommandKey, firmware: Duration) {
        if let Some(command) = self.command(key) {
            let first = (command.journey.last + firmware).min(now);
            command.journey.advance(first, Stage::Firmware);
            command.journey.advance(now, Stage::Media);
        }
    }
}

impl Observer for Tracker {
    fn submit(&mut self, now: Instant, submission: Submission) {
        let Submission { key, since, op, offset, buffer, length } = submission;
        let mut journey = Journey::new(since);
        journey.advance(now, Stage::HostSoftware);
        self.submissions += 1;
        let number = self.submissions;
        let Some(queue) = self.queue(key.drive, key.queue) else { return };
        queue.slots[usize::from(queue.tail)] = key.id;
        queue.tail = queue.ring.after(queue.tail, 1);
        let command = Command { submission, journey, number, doorbell: now, completed: false };
        queue.commands[usize::from(key.id)] = Some(command);
        if op.moves_blocks() {
            self.buffers.insert(buffer, (buffer + length, key));
            self.offsets.insert((key.drive, offset, number), key);
        }
    }

    /// Records that the application has its result at `now`. The completion head doorbell follows.
    fn finish(&mut self, now: Instant, key: CommandKey) {
        let Some(mut command) = self.remove(key) else { return };
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

    fn discard(&mut self, key: CommandKey) {
        self.remove(key);
    }
}
