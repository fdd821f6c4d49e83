//! One NVMe controller as seen from the link.

mod commands;
mod push;
mod rings;
mod traffic;

use super::claims::{Claims, Key};
use super::command::Command;
use super::pending::Fetch;
use super::queues::{CompletionQueue, Queues, Rung, SubmissionQueue, Uid};
use super::shared::Shared;
use super::step::StepKind;
use push::PushedList;
use std::collections::{BTreeMap, BTreeSet};
use wire::Bdf;
use wire::nvme::register::{self, AdminQueueAttributes, Capabilities, Configuration, Doorbell};

/// MSI-X vectors a function can have (PCIe Base 4.0, section 7.7.2).
const MOST_VECTORS: u64 = 2048;

/// A command in flight.
#[derive(Debug)]
struct OpenCommand {
    command: Command,
    claims: Vec<Key>,
    next_claim: u32,
    /// Bytes of the transfer whose place SGL descriptors have told.
    described: u64,
    /// The list that pushes brought last, if more of it may follow.
    pushed_list: Option<Box<PushedList>>,
}

/// The state of one NVMe controller.
#[derive(Debug, Default)]
pub(super) struct Controller {
    device: Bdf,
    /// Counts resets: fetches begun before the latest one are ignored.
    generation: u64,
    capabilities: u64,
    configuration: u32,
    admin: u32,
    admin_sq: u64,
    admin_cq: u64,
    queues: Queues,
    open: BTreeMap<Uid, OpenCommand>,
    /// Open commands without a completion entry, by queue and identifier.
    ids: BTreeMap<(u16, u16), Uid>,
    claims: Claims,
    /// The MSI-X table: four double words a vector.
    vectors: BTreeMap<u16, [u32; 4]>,
    /// Bytes a block by namespace.
    block_sizes: BTreeMap<u32, u32>,
    /// Namespaces of this controller alone, without metadata.
    sole: BTreeSet<u32>,
}

impl Controller {
    pub fn new(device: Bdf) -> Self {
        Self { device, ..Self::default() }
    }

    /// Memory page in bytes.
    fn page(&self) -> u64 {
        1 << (12 + u32::from(Configuration::from_bits(self.configuration).page))
    }

    /// The host reads a double word at `offset` of BAR 0 and gets `value`.
    pub fn register_read(&mut self, offset: u64, value: u32) {
        match offset {
            register::CAP => set_low(&mut self.capabilities, value),
            4 => set_high(&mut self.capabilities, value),
            _ => {}
        }
    }

    /// The host writes a double word at `address`, which is `offset` of BAR 0. Whether there is a
    /// register, or the doorbell of a queue.
    pub fn register_write(
        &mut self,
        address: u64,
        offset: u64,
        value: u32,
        shared: &mut Shared,
    ) -> bool {
        match offset {
            register::CC => self.configure(value, shared),
            register::AQA => self.admin = value,
            register::ASQ => set_low(&mut self.admin_sq, value),
            0x2c => set_high(&mut self.admin_sq, value),
            register::ACQ => set_low(&mut self.admin_cq, value),
            0x34 => set_high(&mut self.admin_cq, value),
            register::NSSR if value == register::NSSR_VALUE => self.reset(shared),
            register::DOORBELLS.. => return self.doorbell(address, offset, value, shared),
            _ => {}
        }
        true
    }

    fn configure(&mut self, value: u32, shared: &mut Shared) {
        let before = Configuration::from_bits(self.configuration);
        let after = Configuration::from_bits(value);
        if before.enable && !after.enable {
            self.reset(shared);
        }
        self.configuration = value;
        if !before.enable && after.enable {
            let sizes = AdminQueueAttributes::from_bits(self.admin);
            let (sq, cq) = (self.admin_sq & !0xfff, self.admin_cq & !0xfff);
            let entries = |size: u16| u32::from(size) + 1;
            self.queues.add_submission(0, SubmissionQueue::new(sq, entries(sizes.sq_size)));
            // The admin queue has vector 0 (section 3.1.9).
            let queue = CompletionQueue::new(cq, entries(sizes.cq_size), Some(0));
            self.queues.add_completion(0, queue);
            self.tell_submission(0, shared);
            self.tell_completion(0, shared);
        }
    }

    /// A doorbell (sections 3.1.24 and 3.1.25), the stride as CAP says. Whether its queue exists.
    fn doorbell(&mut self, address: u64, offset: u64, value: u32, shared: &mut Shared) -> bool {
        let stride = Capabilities::from_bits(self.capabilities).doorbell_stride;
        let value = value & 0xffff;
        let known = match Doorbell::at(offset, stride) {
            None => false,
            Some(Doorbell::SubmissionTail(id)) => {
                let step = shared.step(StepKind::SqDoorbell, address, 4, None);
                let rung = self.queues.ring(id, value, step, &mut shared.counters);
                let known = rung.is_some();
                let Rung { commands, others } = rung.unwrap_or_default();
                commands.into_iter().for_each(|uid| self.add_step(uid, step, shared));
                others.into_iter().for_each(|uid| self.close(uid, None, shared));
                self.tell_submission(id, shared);
                known
            }
            Some(Doorbell::CompletionHead(id)) => {
                let step = shared.step(StepKind::CqDoorbell, address, 4, None);
                let queue = self.queues.completion.get_mut(&id);
                let taken = queue.map(|queue| queue.take(value, &mut shared.counters));
                let known = taken.is_some();
                let taken: Vec<Uid> = taken.into_iter().flatten().collect();
                let queues = self.submission_queues_of(&taken);
                taken.into_iter().for_each(|uid| self.close(uid, Some(step), shared));
                self.tell_completion(id, shared);
                queues.into_iter().for_each(|id| self.tell_submission(id, shared));
                known
            }
        };
        shared.counters.bad_doorbells += u64::from(!known);
        known
    }

    /// The host writes a double word of the MSI-X table.
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
        self.tell_gone(shared);
        self.queues = Queues::default();
        self.configuration = 0;
        shared.emit(super::Event::Reset(self.device));
    }

    /// The capture ends: commands in flight end as they are.
    pub fn end(&mut self, shared: &mut Shared) {
        shared.counters.unfetched_entries += self.queues.unfetched();
        self.close_all(shared);
    }

    /// TLPs are missing: commands in flight end as they are.
    pub fn gap(&mut self, shared: &mut Shared) {
        // Not lost by the drive, but by the capture.
        let lost = shared.counters.lost_commands;
        self.close_all(shared);
        shared.counters.lost_commands = lost;
        self.generation += 1;
        self.queues.gap();
        self.tell_all(shared);
    }

    /// Whether `fetch` was begun since the last reset.
    fn is_current(&self, fetch: &Fetch) -> bool {
        fetch.generation == self.generation
    }
}

fn set_low(register: &mut u64, value: u32) {
    *register = *register >> 32 << 32 | u64::from(value);
}

fn set_high(register: &mut u64, value: u32) {
    *register = *register & 0xffff_ffff | u64::from(value) << 32;
}
