//! Keep Alive (NVMe 1.4, sections 5.16, 5.21.1.15 and 7.12). PCIe hosts need no timer, so the timer
//! is off until a host sets it. The timer expires only with
//! [`Settings::keep_alive_expiry`](crate::Settings::keep_alive_expiry), because a link that stalls
//! for seconds must not stop a drive.

use crate::controller::Controller;
use crate::failure::NO_PARAMETER;
use crate::plan::Plan;
use crate::subsystem::Shared;
use wire::nvme::{ErrorLogEntry, Status, StatusCode};
use wire::{Duration, Instant};

impl Controller {
    /// Restarts the timer.
    pub(super) fn keep_alive(&mut self) -> Plan {
        self.restart_keep_alive();
        Plan::Done(0)
    }

    /// Restarts the timer, if there is one.
    pub(crate) fn restart_keep_alive(&mut self) {
        self.keep_alive_due = self.next_keep_alive();
    }

    /// Sets KATO in milliseconds (0 for no timer), and starts the timer.
    pub(super) fn set_keep_alive(&mut self, milliseconds: u32) {
        self.features.set_keep_alive(milliseconds);
        self.keep_alive_due = self.next_keep_alive();
    }

    /// The time at which the timer expires if it starts now; `None` if it never expires.
    fn next_keep_alive(&self) -> Option<Instant> {
        let timeout = self.features.keep_alive;
        let expires = self.settings.keep_alive_expiry && timeout > 0;
        expires.then(|| self.now + Duration::from_ms(timeout.into()))
    }

    /// Handles an expired timer as a fatal error: logs it, fetches no more commands, and sets
    /// CSTS.CFS (section 7.12).
    pub(crate) fn check_keep_alive(&mut self, shared: &mut Shared) {
        if self.keep_alive_due.is_none_or(|due| due > self.now) {
            return;
        }
        self.keep_alive_due = None;
        let count = shared.health.add_error(self.now);
        let status = Status::fail(StatusCode::KEEP_ALIVE_EXPIRED);
        let nowhere = ErrorLogEntry { sq_id: 0xffff, cid: 0xffff, ..ErrorLogEntry::default() };
        self.error_log.add(count, ErrorLogEntry { status, parameter: NO_PARAMETER, ..nowhere });
        self.fatal();
    }
}
