//! Abort (NVMe 1.4, section 5.1; immediate and deferred aborts: NVM Express 2.1, section 5.1.1).
//!
//! A command is aborted at once if no part of it is under way: if it waits for the buffer, if its
//! data wait for the link, or if it is an Asynchronous Event Request. Other I/O commands end with
//! Command Abort Requested after the present media or link operation, unless this is the last
//! operation. Other admin commands continue.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::subsystem::Shared;
use wire::nvme::{Command, StatusCode};

/// Bit 0 of dword 0: the command is not aborted when the Abort command completes.
const NOT_ABORTED: u32 = 1;

impl Controller {
    pub(super) fn abort(&mut self, shared: &mut Shared, command: &Command) -> Plan {
        let (sq, cid) = (command.cdw10 as u16, (command.cdw10 >> 16) as u16);
        let requested = Failure::transient(StatusCode::ABORT_REQUESTED);
        let aborted = match self.find_waiting(sq, Some(cid)) {
            Some(key) => self.fail_waiting(shared, key, requested),
            None if sq == 0 => self.abort_event_request(cid, requested.status),
            None if self.abort_first(shared, sq, cid) => true,
            None => self.find_abortable(sq, cid).is_some_and(|key| self.abort_io(shared, key)),
        };
        Plan::Done(if aborted { 0 } else { NOT_ABORTED })
    }

    /// Aborts an I/O command. Returns whether the command has already ended.
    fn abort_io(&mut self, shared: &mut Shared, key: Key) -> bool {
        self.keep_data(key);
        self.fail(shared, key, Failure::transient(StatusCode::ABORT_REQUESTED));
        !self.is_under_way(key)
    }

    /// Aborts the commands of a queue that wait for the buffer.
    pub(super) fn abort_waiting(&mut self, shared: &mut Shared, sq: u16) {
        let deleted = Failure::permanent(StatusCode::ABORTED_SQ_DELETION);
        while let Some(key) = self.find_waiting(sq, None) {
            self.fail_waiting(shared, key, deleted);
        }
    }
}
