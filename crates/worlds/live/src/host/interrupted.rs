//! Endpoints whose link waits for its connection.

use super::HostNode;
use switch::tunnel::Cause;
use wire::earliest;
use wire::{Duration, Instant};

/// How long a reset by a guest waits for the connection of its device. Less than the time limit of a
/// VMM's command (3 s, `docs/architecture.md`, "Time budget").
const RESET_PATIENCE: Duration = Duration::from_ms(2_500);

impl HostNode {
    /// Notes whether the endpoints below a port wait for its connection.
    pub(super) fn set_interrupted(&mut self, port: usize, interrupted: bool) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.port == port) {
            endpoint.slot.set_interrupted(interrupted);
        }
    }

    /// Ends interrupted sessions that delay a reset for too long: when the VMM gets its answer, the
    /// device must not write to its memory any more. Returns when to call again.
    pub(super) fn end_sessions_for_resets(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for endpoint in &self.endpoints {
            let waits = endpoint.resets_since.filter(|_| self.interrupted[endpoint.port].is_some());
            match waits.map(|since| since + RESET_PATIENCE) {
                Some(at) if at > now => next = earliest([next, Some(at)]),
                Some(_) => {
                    self.machine.attached_mut().take_down(now, endpoint.port, Cause::GuestReset);
                }
                None => {}
            }
        }
        next
    }
}
