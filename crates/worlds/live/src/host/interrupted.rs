//! Endpoints whose link waits for its connection.

use super::HostNode;
use super::endpoint::Endpoint;
use switch::tunnel::Cause;
use wire::earliest;
use wire::{Duration, Instant};

/// How long a reset or a register read by a guest waits for the connection of its device. Less than the time limit of a
/// VMM's command (3 s, `docs/architecture.md`, "Time budget").
const PATIENCE: Duration = Duration::from_ms(2_500);

impl HostNode {
    /// Notes whether the endpoints below a port wait for its connection.
    pub(super) fn set_interrupted(&mut self, port: usize, interrupted: bool) {
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.port == port) {
            endpoint.slot.set_interrupted(interrupted);
        }
    }

    /// Whether a drive below a port is also reached through another one.
    pub(super) fn is_reached_elsewhere(&self, port: usize) -> bool {
        let (own, others): (Vec<_>, Vec<_>) =
            self.endpoints.iter().partition(|endpoint| endpoint.port == port);
        let drive = |endpoint: &&Endpoint| endpoint.summary().label;
        own.iter()
            .filter_map(drive)
            .any(|label| others.iter().filter_map(drive).any(|other| other.serial == label.serial))
    }

    /// Handles the loss of a port's link.
    pub(super) fn lose_endpoints(&mut self, now: Instant, port: usize) {
        let has_other = self.is_reached_elsewhere(port);
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.port == port) {
            let event = self.machine.reset_event(endpoint.slot.node().bdf);
            endpoint.link_down(now, event, has_other);
        }
    }

    /// Ends interrupted sessions that delay a reset or a register read for too long: when the VMM gets
    /// its answer, the device must not write to its memory any more. Returns when to call again.
    pub(super) fn end_sessions_for_clients(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for endpoint in &self.endpoints {
            let since = earliest([endpoint.resets_since, endpoint.reads_since]);
            let waits = since.filter(|_| self.interrupted[endpoint.port].is_some());
            match waits.map(|since| since + PATIENCE) {
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
