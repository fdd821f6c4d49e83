//! One NVMe controller as seen from the link.

mod commands;
mod push;
mod rings;
mod traffic;

use super::claims::{Claims, Key};
use super::command::Command;
use super::pending::Fetch;
use super::queues::{self, CompletionQueue, Queues, Rung, SubmissionQueue, Uid};
use super::shared::Shared;
use super::step::StepKind;
use follow::Registers;
use push::PushedList;
use std::collections::{BTreeMap, BTreeSet};
use wire::Bdf;
use wire::nvme::register::{CC, Configuration, DOORBELLS, Doorbell, NSSR, NSSR_VALUE};

/// Maximum number of MSI-X vectors of a function (PCIe Base 4.0, section 7.7.2).
const MOST_VECTORS: u64 = 2048;

/// A command in flight.
#[derive(Debug)]
struct OpenCommand {
    command: Command,
    claims: Vec<Key>,
    next_claim: u32,
    /// Bytes of the transfer for which SGL descriptors have given an address.
    described: u64,
    /// The list of the latest pushes, if more of the list may follow.
    pushed_list: Option<Box<PushedList>>,
}

/// The state of one NVMe controller.
#[derive(Debug, Default)]
pub(super) struct Controller {
    device: Bdf,
    /// Number of resets. A fetch that began before the latest reset is ignored.
    generation: u64,
    pub registers: Registers,
    queues: Queues,
    open: BTreeMap<Uid, OpenCommand>,
    /// Open commands without a completion entry, by queue and command identifier.
    ids: BTreeMap<(u16, u16), Uid>,
    claims: Claims,
    /// The MSI-X table: four double words per vector.
    vectors: BTreeMap<u16, [u32; 4]>,
    /// Bytes per block, by namespace.
    block_sizes: BTreeMap<u32, u32>,
    /// Namespaces without metadata that are attached to this controller alone.
    sole: BTreeSet<u32>,
}

impl Controller {
    pub fn new(device: Bdf) -> Self {
        Self { device, ..Self::default() }
    }

    /// Returns the size of a memory page in bytes.
    fn page(&self) -> u64 {
        self.registers.page() as u64
    }

    /// Handles a host write of a double word at `address`, which is `offset` of BAR 0. Returns
    /// whether a register or the doorbell of a queue is there.
    pub fn register_write(
        &mut self,
        address: u64,
        offset: u64,
        value: u32,
        shared: &mut Shared,
    ) -> bool {
        if offset >= DOORBELLS {
            return self.doorbell(address, offset, value as u16, shared);
        }
        let before = self.registers.configuration();
        self.registers.write(offset, &value.to_le_bytes());
        match offset {
            CC => self.configure(before, shared),
            NSSR if value == NSSR_VALUE => self.reset(shared),
            _ => {}
        }
        true
    }

    fn configure(&mut self, before: Configuration, shared: &mut Shared) {
        let after = self.registers.configuration();
        if before.enable && !after.enable {
            self.reset(shared);
        }
        let admin = self.registers.admin_queues().filter(|_| !before.enable && after.enable);
        if let Some((submission, completion)) = admin {
            self.queues.add_submission(0, submission, SubmissionQueue::new(submission));
            // The admin queue has vector 0 (section 3.1.9).
            self.queues.add_completion(0, completion, CompletionQueue::new(completion, Some(0)));
            self.emit_submission_ring(0, shared);
            self.emit_completion_ring(0, shared);
        }
    }

    /// Handles a doorbell write (sections 3.1.24 and 3.1.25); CAP gives the stride. Returns whether
    /// the queue exists.
    fn doorbell(&mut self, address: u64, offset: u64, value: u16, shared: &mut Shared) -> bool {
        let stride = self.registers.stride.unwrap_or(0);
        let known = match Doorbell::at(offset, stride) {
            None => false,
            Some(Doorbell::SubmissionTail(id)) => {
                let step = shared.step(StepKind::SqDoorbell, address, 4, None);
                let rung = queues::ring(&mut self.queues, id, value, step, &mut shared.counters);
                let known = rung.is_some();
                let Rung { commands, others } = rung.unwrap_or_default();
                commands.into_iter().for_each(|uid| self.add_step(uid, step, shared));
                others.into_iter().for_each(|uid| self.close(uid, None, shared));
                self.emit_submission_ring(id, shared);
                known
            }
            Some(Doorbell::CompletionHead(id)) => {
                let step = shared.step(StepKind::CqDoorbell, address, 4, None);
                let queue = self.queues.completion.get_mut(&id);
                let taken = queue.map(|queue| queue.take(value, &mut shared.counters));
                let known = taken.is_some();
                let taken: Vec<Uid> = taken.into_iter().flatten().collect();
                let open = taken.iter().filter_map(|uid| self.open.get(uid));
                let queues: BTreeSet<u16> = open.map(|open| open.command.queue).collect();
                taken.into_iter().for_each(|uid| self.close(uid, Some(step), shared));
                self.emit_completion_ring(id, shared);
                queues.into_iter().for_each(|id| self.emit_submission_ring(id, shared));
                known
            }
        };
        shared.counters.bad_doorbells += u64::from(!known);
        known
    }

    /// Handles a host write of a double word of the MSI-X table.
    pub fn msix_write(&mut self, offset: u64, value: u32) {
        let vector = offset / 16;
        if vector < MOST_VECTORS {
            self.vectors.entry(vector as u16).or_default()[(offset % 16 / 4) as usize] = value;
        }
    }

    /// Resets everything but the MSI-X table and the namespaces.
    pub fn reset(&mut self, shared: &mut Shared) {
        shared.counters.resets += 1;
        self.generation += 1;
        self.end(shared);
        self.emit_gone(shared);
        self.queues = Queues::default();
        self.registers.reset();
        shared.emit(super::Event::Reset(self.device));
    }

    /// Ends all commands in flight at the end of the capture.
    pub fn end(&mut self, shared: &mut Shared) {
        let queues = self.queues.submission.values();
        shared.counters.unfetched_entries += queues.map(SubmissionQueue::unfetched).sum::<u64>();
        self.close_all(shared);
    }

    /// Ends all commands in flight because TLPs are missing.
    pub fn gap(&mut self, shared: &mut Shared) {
        // The capture has lost these commands, not the drive.
        let lost = shared.counters.lost_commands;
        self.close_all(shared);
        shared.counters.lost_commands = lost;
        self.generation += 1;
        queues::gap(&mut self.queues);
        self.emit_all_rings(shared);
    }

    fn done(&mut self, queue: u16) {
        self.queues.submission.get_mut(&queue).into_iter().for_each(SubmissionQueue::done);
    }

    /// Returns whether `fetch` began after the last reset.
    fn is_current(&self, fetch: &Fetch) -> bool {
        fetch.generation == self.generation
    }
}
