//! Register writes (NVMe 1.4, section 3.1).

use super::Controller;
use super::lifecycle::Phase;
use crate::failure::NO_PARAMETER;
use crate::subsystem::Shared;
use wire::nvme::register::{CC, DOORBELLS, Doorbell, INTMC, INTMS};
use wire::nvme::{AsyncEvent, ErrorLogEntry, Status, StatusCode};

impl Controller {
    /// Handles a write of whole double words. Drops narrower writes, because only whole registers
    /// may be written (section 3.1).
    pub(super) fn write_registers(&mut self, shared: &mut Shared, offset: u64, data: &[u8]) {
        let (words, rest) = data.as_chunks::<4>();
        if !offset.is_multiple_of(4) || !rest.is_empty() {
            self.partial_accesses += 1;
            return;
        }
        for (index, word) in (0..).zip(words) {
            self.write_register(shared, offset + index * 4, u32::from_le_bytes(*word));
        }
    }

    fn write_register(&mut self, shared: &mut Shared, offset: u64, value: u32) {
        match offset {
            INTMS => self.interrupts.mask |= value,
            INTMC => self.interrupts.mask &= !value,
            CC => self.configure(shared, value),
            _ if offset >= DOORBELLS => self.doorbell(shared, offset, value),
            // The admin queue registers apply when the controller is enabled. They must not change
            // while it is enabled (sections 3.1.9 to 3.1.11).
            _ if self.phase == Phase::Disabled => self.registers.write_admin(offset, value),
            _ => {}
        }
    }

    fn doorbell(&mut self, shared: &mut Shared, offset: u64, value: u32) {
        // The effect of a doorbell before RDY is undefined; this controller ignores the write.
        if self.phase != Phase::Ready {
            return;
        }
        match Doorbell::at(offset, 0) {
            // The register only signals that host memory has a new value.
            Some(doorbell) if self.has_shadow(doorbell) => self.check_shadow(doorbell),
            doorbell => {
                self.ring(shared, doorbell, value);
            }
        }
    }

    /// Handles the value of a doorbell. For an invalid value, raises an event and returns false.
    pub(super) fn ring(
        &mut self,
        shared: &mut Shared,
        doorbell: Option<Doorbell>,
        value: u32,
    ) -> bool {
        let (id, valid) = match doorbell {
            Some(Doorbell::SubmissionTail(id)) => (id, self.queues.ring_sq(id, value)),
            Some(Doorbell::CompletionHead(id)) => {
                (id, self.queues.cq_mut(id).map(|queue| queue.ring(value)))
            }
            None => (0xffff, None),
        };
        match valid {
            Some(true) => {}
            Some(false) => self.doorbell_error(shared, AsyncEvent::INVALID_DOORBELL_VALUE, id),
            None => self.doorbell_error(shared, AsyncEvent::INVALID_DOORBELL_REGISTER, id),
        }
        valid == Some(true)
    }

    /// Raises an event for an invalid doorbell, which has no other effect (figure 147).
    fn doorbell_error(&mut self, shared: &mut Shared, event: AsyncEvent, queue: u16) {
        let count = shared.health.add_error(self.now);
        self.error_log.add(
            count,
            ErrorLogEntry {
                sq_id: queue,
                cid: 0xffff,
                status: Status::fail(StatusCode::INVALID_FIELD),
                parameter: NO_PARAMETER,
                ..ErrorLogEntry::default()
            },
        );
        self.events.raise(event);
    }
}
