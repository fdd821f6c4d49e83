//! Completion entries, their interrupts, and asynchronous events (NVMe 1.4, sections 4.6, 5.2 and
//! 7.5).

use super::Controller;
use super::saved::{Answer, Posted};
use crate::failure::Failure;
use crate::subsystem::Shared;
use wire::nvme::opcode::nvm;
use wire::nvme::{Command, Completion, ErrorLogEntry, Status};
use wire::trace::{CommandId, NvmeEvent};

impl Controller {
    /// Posts the completion of a command in the reserved entry.
    pub(super) fn complete(
        &mut self,
        shared: &mut Shared,
        sq: u16,
        command: &Command,
        result: u32,
        failure: Option<Failure>,
    ) {
        if sq != 0 {
            self.count_smart(shared, command, failure.is_none());
        }
        let status = match failure {
            None => Status::SUCCESS,
            Some(failure) => self.log_failure(shared, sq, command, failure),
        };
        self.count_in_flight(shared, sq, |in_flight| in_flight - 1);
        self.post(sq, command.cid, result, status, Answer::Command(*command));
        self.finish_deletion(shared, sq);
    }

    fn count_smart(&mut self, shared: &mut Shared, command: &Command, success: bool) {
        let units = match shared.namespace(self.id, command.nsid) {
            Ok(namespace) if success => namespace.bytes(u64::from(command.blocks())) >> 9,
            _ => 0,
        };
        let history = shared.health.count(self.now);
        match command.opcode {
            nvm::READ | nvm::COMPARE => {
                history.reads += 1;
                history.units_read += u128::from(units);
            }
            nvm::VERIFY => history.units_read += u128::from(units),
            nvm::WRITE => {
                history.writes += 1;
                history.units_written += u128::from(units);
            }
            _ => {}
        }
    }

    /// Adds a failure to the error log and sets More in the status.
    fn log_failure(
        &mut self,
        shared: &mut Shared,
        sq: u16,
        command: &Command,
        failure: Failure,
    ) -> Status {
        if !failure.is_logged() {
            return failure.status;
        }
        let status = Status { more: true, ..failure.status };
        let cq = self.queues.sq(sq).and_then(|queue| self.queues.cq(queue.cq));
        let count = shared.health.add_error(self.now);
        self.error_log.add(
            count,
            ErrorLogEntry {
                sq_id: sq,
                cid: command.cid,
                status,
                phase: cq.is_some_and(|cq| cq.phase),
                parameter: failure.parameter,
                lba: failure.lba.unwrap_or(if sq == 0 { 0 } else { command.slba() }),
                nsid: command.nsid,
                command_specific: failure.specific,
                ..ErrorLogEntry::default()
            },
        );
        status
    }

    fn post(&mut self, sq: u16, cid: u16, result: u32, status: Status, answer: Answer) {
        let queue = self.queues.sq_mut(sq).expect("outlives its commands");
        queue.finished(cid);
        let (sq_head, cq) = (queue.head as u16, queue.cq);
        let entry = Completion { result, sq_head, sq_id: sq, cid, phase: false, status };
        self.post_entry(cq, entry, answer);
        self.reported.add(NvmeEvent::Completed { id: CommandId { queue: sq, cid }, status });
    }

    /// Posts a reserved entry of completion queue `cq`.
    pub(super) fn post_entry(&mut self, cq: u16, entry: Completion, answer: Answer) {
        let queue = self.queues.cq_mut(cq).expect("outlives its submission queues");
        let (address, bytes) = queue.post(entry);
        if let Some(vector) = queue.vector {
            self.interrupts.posted(self.now, vector);
        }
        self.endpoint.dma_copy(address, &bytes);
        let end = self.endpoint.written();
        if let Some(posted) = &mut self.posted {
            posted.push_back(Posted { end, cq, entry, answer });
        }
    }

    /// Completes the deletion of a queue when the queue has drained.
    pub(super) fn finish_deletion(&mut self, shared: &mut Shared, sq: u16) {
        let Some(queue) = self.queues.sq(sq) else { return };
        if let Some(key) = queue.deleting.filter(|_| queue.is_drained()) {
            self.queues.remove_sq(sq);
            self.resume(shared, key);
        }
    }

    /// Completes Asynchronous Event Requests with pending events.
    pub(super) fn report_events(&mut self) {
        while self.events.is_due() {
            let Some(cq) = self.queues.cq_mut(0).filter(|cq| cq.room() > 0) else { return };
            cq.reserve(1);
            let (cid, event) = self.events.take().expect("an event is due");
            self.post(0, cid, event.bits(), Status::SUCCESS, Answer::Event(event));
        }
    }

    /// Aborts an Asynchronous Event Request. Returns false if there is no such request, or no room
    /// for the completion.
    pub(crate) fn abort_event_request(&mut self, cid: u16, status: Status) -> bool {
        let Some(cq) = self.queues.cq_mut(0).filter(|cq| cq.room() > 0) else { return false };
        if !self.events.withdraw(cid) {
            return false;
        }
        cq.reserve(1);
        self.post(0, cid, 0, status, Answer::Entry);
        true
    }

    /// Sends the interrupts that are due.
    pub(super) fn interrupt(&mut self) {
        while let Some(vector) = self.interrupts.next_due(self.now) {
            self.endpoint.interrupt(vector);
        }
        let level = !self.endpoint.msix_enabled() && self.intx_level();
        if level {
            self.look_for_heads();
        }
        if level != self.intx {
            self.intx = level;
            self.endpoint.set_intx(level);
        }
    }

    /// The level of the interrupt pin: asserted while a completion queue with interrupts has
    /// entries (section 7.5.1.1).
    fn intx_level(&self) -> bool {
        self.interrupts.mask & 1 == 0
            && self.queues.cqs().any(|cq| cq.vector.is_some() && cq.occupied() > 0)
    }
}
