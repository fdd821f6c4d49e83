//! Create and Delete I/O Submission and Completion Queue (NVMe 1.4, sections 5.3 to 5.6).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::queue::{CompletionQueue, SubmissionQueue};
use crate::slots::Key;
use crate::subsystem::Shared;
use wire::nvme::register::Doorbell;
use wire::nvme::{COMPLETION_ENTRY, Command, SUBMISSION_ENTRY, StatusCode};

/// PC, physically contiguous: bit 0 of command dword 11.
const CONTIGUOUS: u32 = 1;
/// IEN, interrupts enabled: bit 1 of command dword 11.
const INTERRUPTS: u32 = 2;

/// The common fields of both Create commands.
struct Queue {
    id: u16,
    size: u32,
    base: u64,
}

impl Controller {
    pub(super) fn create_cq(&mut self, command: &Command) -> Result<Plan, Failure> {
        let entry = self.registers.configuration.cq_entry_size;
        let allocated = self.features.queues.1;
        let queue = self.queue(command, allocated, (entry, COMPLETION_ENTRY))?;
        if self.queues.cq(queue.id).is_some() {
            return Err(invalid_id());
        }
        let vector = (command.cdw11 >> 16) as u16;
        // Without MSI-X the host must write 0 (section 5.3), but controllers accept every existing
        // vector.
        if vector >= self.interrupts.vectors() {
            return Err(Failure::at_cdw(StatusCode::INVALID_INTERRUPT_VECTOR, 11, 16));
        }
        let vector = (command.cdw11 & INTERRUPTS != 0).then_some(vector);
        self.queues.add_cq(CompletionQueue::new(queue.id, vector, queue.base, queue.size));
        self.reset_doorbell(Doorbell::CompletionHead(queue.id));
        Ok(Plan::Done(0))
    }

    pub(super) fn create_sq(&mut self, command: &Command) -> Result<Plan, Failure> {
        let entry = self.registers.configuration.sq_entry_size;
        let allocated = self.features.queues;
        let queue = self.queue(command, allocated.0, (entry, SUBMISSION_ENTRY))?;
        if self.queues.sq(queue.id).is_some() {
            return Err(invalid_id());
        }
        let cq = (command.cdw11 >> 16) as u16;
        if cq == 0 || cq > allocated.1 {
            return Err(Failure::at_cdw(StatusCode::INVALID_QUEUE_ID, 11, 16));
        }
        if self.queues.cq(cq).is_none() {
            return Err(Failure::at_cdw(StatusCode::COMPLETION_QUEUE_INVALID, 11, 16));
        }
        let priority = self.queues.arbiter.priority(command.cdw11 >> 1);
        self.reset_doorbell(Doorbell::SubmissionTail(queue.id));
        let queue = SubmissionQueue::new(queue.id, cq, queue.base, queue.size);
        self.queues.add_sq(queue.with_priority(priority));
        Ok(Plan::Done(0))
    }

    /// Checks the common fields of both Create commands. `allocated` is the number of allocated
    /// queues. `entry` has the entry size that the host has set, as a power of two, and the
    /// supported entry size in bytes.
    fn queue(
        &self,
        command: &Command,
        allocated: u16,
        entry: (u8, usize),
    ) -> Result<Queue, Failure> {
        let id = command.cdw10 as u16;
        if id == 0 || id > allocated {
            return Err(invalid_id());
        }
        let size = (command.cdw10 >> 16) as u16;
        let wrong_entries = 1usize << entry.0 != entry.1;
        if size == 0 || size > self.registers.capabilities.max_queue_entries || wrong_entries {
            return Err(Failure::at_cdw(StatusCode::INVALID_QUEUE_SIZE, 10, 16));
        }
        // CAP.CQR is set, so queues must be contiguous.
        if command.cdw11 & CONTIGUOUS == 0 {
            return Err(Failure::cdw(11, 0));
        }
        if !command.prp1.is_multiple_of(self.page() as u64) {
            return Err(Failure::prp(1));
        }
        Ok(Queue { id, size: u32::from(size) + 1, base: command.prp1 })
    }

    pub(super) fn delete_cq(&mut self, command: &Command) -> Result<Plan, Failure> {
        let id = command.cdw10 as u16;
        let queue = self.queues.cq(id).filter(|_| id != 0).ok_or(invalid_id())?;
        if queue.users > 0 {
            return Err(Failure::at_cdw(StatusCode::INVALID_QUEUE_DELETION, 10, 0));
        }
        self.queues.remove_cq(id);
        Ok(Plan::Done(0))
    }

    /// Stops fetching from the queue. Aborts commands that have not begun, finishes commands under
    /// way, then completes the Delete command.
    pub(super) fn delete_sq(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let id = command.cdw10 as u16;
        let queue = self.queues.sq(id).filter(|_| id != 0).ok_or(invalid_id())?;
        if queue.deleting.is_some() {
            return Err(invalid_id());
        }
        self.queues.stop_sq(id);
        self.abort_waiting(shared, id);
        let queue = self.queues.sq_mut(id).expect("looked at above");
        if queue.is_drained() {
            self.queues.remove_sq(id);
            return Ok(Plan::Done(0));
        }
        queue.deleting = Some(key);
        Ok(Plan::Wait)
    }
}

fn invalid_id() -> Failure {
    Failure::at_cdw(StatusCode::INVALID_QUEUE_ID, 10, 0)
}
