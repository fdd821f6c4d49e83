//! The host side of a queue pair (NVMe 1.4, sections 4.1 and 7.2).

use super::{Error, QueueMemory, Settings};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use wire::Instant;
use wire::nvme::register::Doorbell;
use wire::nvme::{COMPLETION_ENTRY, Command, Completion, SUBMISSION_ENTRY, Status};

/// Identifies a submitted command: its command identifier. Reused after the command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u16);

impl CommandId {
    /// The command identifier in the entries.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Every entry of the queue is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the submission queue is full")]
pub struct QueueFull;

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedCommand {
    /// The command.
    pub id: CommandId,
    /// Status of the completion.
    pub status: Status,
    /// Dword 0 of the completion.
    pub result: u32,
}

/// The memory and the registers of a driver.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub bus: Bus,
    pub ram: Rc<RefCell<Ram>>,
    pub bar0: u64,
    /// CAP.DSTRD.
    pub stride: u8,
}

impl Host {
    /// Allocates `length` bytes that are aligned to `align` bytes; returns the bus address.
    pub(super) fn allocate(&self, length: usize, align: usize) -> Result<u64, Error> {
        self.ram.borrow_mut().allocate(length, align).ok_or(Error::OutOfMemory)
    }

    /// Writes bytes to the driver's memory.
    pub(super) fn put(&self, address: u64, bytes: &[u8]) {
        self.ram.borrow_mut().write(address, bytes).expect("the driver's memory");
    }

    /// Reads bytes from the driver's memory.
    pub(super) fn get<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.ram.borrow_mut().read(address, &mut bytes).expect("the driver's memory");
        bytes
    }

    fn ring(&self, doorbell: Doorbell, value: u16) {
        self.bus.write(self.bar0 + doorbell.offset(self.stride), 4, value.into());
    }
}

/// A submission queue with its own completion queue.
#[derive(Debug, Default)]
pub(super) struct QueuePair {
    id: u16,
    pub sq_base: u64,
    pub cq_base: u64,
    entries: u16,
    sq_tail: u16,
    /// The tail last written to the doorbell.
    notified_tail: u16,
    cq_head: u16,
    phase: bool,
    /// Free identifiers.
    free: Vec<u16>,
    /// The time limit of each command in use.
    deadlines: Vec<Option<Instant>>,
    /// A time that is not later than any of `deadlines`, so that a search is rarely necessary.
    earliest_deadline: Option<Instant>,
    /// Number of completions without a command.
    spurious: u64,
}

impl QueuePair {
    /// Queues of `entries` entries in fresh memory.
    pub(super) fn new(host: &Host, id: u16, entries: u16) -> Result<Self, Error> {
        let bytes = |entry: usize| usize::from(entries) * entry;
        Ok(Self {
            id,
            sq_base: host.allocate(bytes(SUBMISSION_ENTRY), 4096)?,
            cq_base: host.allocate(bytes(COMPLETION_ENTRY), 4096)?,
            entries,
            phase: true,
            // One entry stays unused, to distinguish a full queue from an empty one.
            free: (0..entries - 1).rev().collect(),
            deadlines: vec![None; usize::from(entries - 1)],
            ..Self::default()
        })
    }

    /// Queues in the memory of another connection, which this one never uses.
    pub(super) fn elsewhere(id: u16, memory: QueueMemory) -> Self {
        let QueueMemory { submission: sq_base, completion: cq_base, entries } = memory;
        Self { id, sq_base, cq_base, entries, ..Self::default() }
    }

    /// Entries of each queue, 0's based, as in the Create commands.
    pub(super) fn size(&self) -> u16 {
        self.entries - 1
    }

    /// The identifier of the next command.
    pub(super) fn next_id(&self) -> Result<CommandId, QueueFull> {
        self.free.last().copied().map(CommandId).ok_or(QueueFull)
    }

    /// Writes a command into the queue, under the next identifier.
    pub(super) fn put(
        &mut self,
        host: &Host,
        command: Command,
        deadline: Instant,
    ) -> Result<CommandId, QueueFull> {
        let id = self.next_id()?;
        self.free.pop();
        self.deadlines[usize::from(id.0)] = Some(deadline);
        let earliest = self.earliest_deadline.into_iter().chain([deadline]).min();
        self.earliest_deadline = earliest;
        let address = self.sq_base + u64::from(self.sq_tail) * SUBMISSION_ENTRY as u64;
        host.put(address, &Command { cid: id.0, ..command }.encode());
        self.sq_tail = (self.sq_tail + 1) % self.entries;
        Ok(id)
    }

    /// Rings the tail doorbell if there are new commands.
    pub(super) fn ring(&mut self, host: &Host) {
        if self.notified_tail != self.sq_tail {
            self.notified_tail = self.sq_tail;
            host.ring(Doorbell::SubmissionTail(self.id), self.sq_tail);
        }
    }

    /// Sends a command, with no other outstanding, and waits for its completion; returns dword 0.
    pub(super) async fn run(
        &mut self,
        host: &Host,
        settings: &Settings,
        name: &'static str,
        command: Command,
    ) -> Result<u32, Error> {
        let deadline = host.bus.now() + settings.timeout;
        let id = self.put(host, command, deadline).map_err(|_| Error::Timeout(name))?;
        self.ring(host);
        loop {
            if let Some(done) = self.reap(host).into_iter().find(|done| done.id == id) {
                let success = done.status.is_success();
                return success.then_some(done.result).ok_or(Error::Command(name, done.status));
            }
            if host.bus.now() >= deadline {
                return Err(Error::Timeout(name));
            }
            host.bus.sleep(settings.poll).await;
        }
    }

    /// Takes all new completions and rings the head doorbell once.
    pub(super) fn reap(&mut self, host: &Host) -> Vec<CompletedCommand> {
        let mut done = Vec::new();
        let before = self.cq_head;
        while let Some(completion) = self.take(host) {
            let Completion { cid, status, result, .. } = completion;
            let deadline = self.deadlines.get_mut(usize::from(cid));
            if deadline.and_then(Option::take).is_none() {
                self.spurious += 1;
                continue;
            }
            self.free.push(cid);
            done.push(CompletedCommand { id: CommandId(cid), status, result });
        }
        if self.cq_head != before {
            host.ring(Doorbell::CompletionHead(self.id), self.cq_head);
        }
        done
    }

    fn take(&mut self, host: &Host) -> Option<Completion> {
        let address = self.cq_base + u64::from(self.cq_head) * COMPLETION_ENTRY as u64;
        // The phase tag is read before the other fields, because the controller may write at the
        // same time (section 4.6). The other fields are valid when the phase tag has the new value.
        let [.., status, _] = host.get::<4>(address + COMPLETION_ENTRY as u64 - 4);
        if (status & 1 != 0) != self.phase {
            return None;
        }
        let completion = Completion::decode(&host.get(address));
        self.cq_head += 1;
        if self.cq_head == self.entries {
            self.cq_head = 0;
            self.phase = !self.phase;
        }
        Some(completion)
    }

    /// Number of outstanding commands.
    pub(super) fn outstanding(&self) -> usize {
        self.deadlines.len() - self.free.len()
    }

    /// Whether a command has exceeded its time limit at `now`.
    pub(super) fn is_late(&mut self, now: Instant) -> bool {
        if self.earliest_deadline.is_none_or(|earliest_deadline| now <= earliest_deadline) {
            return false;
        }
        self.earliest_deadline = self.deadlines.iter().flatten().min().copied();
        self.earliest_deadline.is_some_and(|earliest_deadline| earliest_deadline < now)
    }

    /// Number of completions without a command.
    pub(super) fn spurious(&self) -> u64 {
        self.spurious
    }
}
