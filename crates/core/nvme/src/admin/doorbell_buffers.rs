//! Doorbell Buffer Config (NVMe 1.4, section 5.7), only with
//! [`Settings::doorbell_buffer`](crate::Settings::doorbell_buffer), because over a network a read
//! of host memory costs more than a doorbell.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use wire::nvme::register::{DOORBELLS, Doorbell};
use wire::nvme::{Command, StatusCode};

impl Controller {
    /// PRP entry 1 is the address of the shadow doorbell buffer, PRP entry 2 of the EventIdx
    /// buffer. Each buffer begins at a memory page and is as long as the doorbell registers.
    pub(super) fn doorbell_buffers(&mut self, command: &Command) -> Result<Plan, Failure> {
        let end = Doorbell::SubmissionTail(self.settings.io_queues + 1).offset(0) - DOORBELLS;
        for (address, byte) in [(command.prp1, 24), (command.prp2, 32)] {
            let aligned = address.is_multiple_of(self.page() as u64);
            if !aligned || address.checked_add(end).is_none() {
                return Err(Failure::field(StatusCode::INVALID_FIELD, byte, 0));
            }
        }
        self.set_doorbell_buffers(command.prp1, command.prp2);
        Ok(Plan::Done(0))
    }
}
