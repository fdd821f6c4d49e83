//! Effects of reservations on a running controller.

use super::Controller;
use crate::failure::Failure;
use crate::reservation::is_reservation;
use crate::slots::Key;
use crate::subsystem::Shared;
use wire::nvme::{AsyncEvent, ReservationNotice, StatusCode};

impl Controller {
    /// Adds a notification to the log, unless the host has masked it.
    pub(crate) fn notify_reservation(&mut self, nsid: u32, notice: ReservationNotice) {
        let mask = self.features.reservation_masks.get(&nsid).copied().unwrap_or(0);
        if mask & 1 << notice as u32 == 0 {
            self.reservation_log.add(nsid, notice);
            self.events.raise(AsyncEvent::RESERVATION_NOTIFICATION);
        }
    }

    /// Aborts the I/O commands for a namespace whose host was preempted. Returns the commands that
    /// have not ended yet. Commands that wait for a record end on their own, so that they have no
    /// effect after their completion.
    pub(crate) fn abort_preempted(&mut self, shared: &mut Shared, nsid: u32) -> Vec<Key> {
        let aborted = Failure::permanent(StatusCode::ABORTED_PREEMPTED);
        let of_it = self.commands.iter().filter(|(_, one)| one.sq != 0 && one.command.nsid == nsid);
        let mut keys: Vec<Key> = of_it.map(|(key, _)| key).collect();
        for key in &keys {
            // The end of its partner may have ended the command.
            let Some(execution) = self.commands.get(*key) else { continue };
            let reserves = is_reservation(execution.command.opcode);
            if execution.waiting && !reserves || self.fail_waiting(shared, *key, aborted) {
                continue;
            }
            self.keep_data(*key);
            self.fail(shared, *key, aborted);
        }
        keys.retain(|key| self.is_under_way(*key));
        keys
    }

    /// Completes commands whose aborted commands have ended.
    pub(super) fn complete_aborting(&mut self, shared: &mut Shared) {
        while let Some(key) = shared.hosts.next_aborted(self.id) {
            self.resume(shared, key);
            self.advance(shared);
        }
    }
}
