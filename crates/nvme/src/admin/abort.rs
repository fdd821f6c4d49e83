//! Abort (NVMe 1.4, section 5.1): best effort. Commands that wait for
//! the buffer are aborted, those under way in media or link are not.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::subsystem::Shared;
use wire::nvme::{Command, Status, StatusCode};

/// Bit 0 of dword 0: the command was not aborted.
const NOT_ABORTED: u32 = 1;

impl Controller {
    pub(super) fn abort(&mut self, shared: &mut Shared, command: &Command) -> Plan {
        let (sq, cid) = (command.cdw10 as u16, (command.cdw10 >> 16) as u16);
        let requested = Failure::transient(StatusCode::ABORT_REQUESTED);
        let aborted = self
            .find_waiting(sq, Some(cid))
            .is_some_and(|key| self.fail_waiting(shared, key, requested))
            || self.abort_first(shared, sq, cid)
            || sq == 0 && self.abort_event_request(cid, Status::retry(StatusCode::ABORT_REQUESTED));
        Plan::Done(if aborted { 0 } else { NOT_ABORTED })
    }

    /// Aborts the commands of a queue that wait for the buffer.
    pub(super) fn abort_waiting(&mut self, shared: &mut Shared, sq: u16) {
        let deleted = Failure::permanent(StatusCode::ABORTED_SQ_DELETION);
        while let Some(key) = self.find_waiting(sq, None) {
            self.fail_waiting(shared, key, deleted);
        }
    }
}
