//! The port of a controller: its PCIe function.

use super::Shared;
use crate::controller::Controller;
use crate::state::HostId;
use pcie::{Function, Input, Output, Ports, Ready};
use wire::Instant;

/// The [`Function`] of a controller, borrowed from [`Subsystem::port`](crate::Subsystem::port) for
/// a call.
#[derive(Debug)]
pub struct Port<'a> {
    pub(super) shared: &'a mut Shared,
    pub(super) controller: &'a mut Controller,
}

impl Port<'_> {
    /// Binds the controller to a host whose identity the owner of the subsystem knows, such as a
    /// digest of the peer's key; `None` ends the binding. The identity is then the Host Identifier
    /// (feature 81h, 128 bits), also after resets. The host cannot set another Host Identifier:
    /// Invalid Field in Command. Zeroes count as `None`.
    ///
    /// Registrations belong to the identity, so bind before commands are handled, also before
    /// [`Subsystem::restore`](crate::Subsystem::restore): saved states have no bindings. If other
    /// controllers have Host Identifiers of 64 bits, reports pad them with zeroes.
    pub fn bind_host(&mut self, identity: Option<[u8; 16]>) {
        let host = identity.and_then(|identity| HostId::new(&identity));
        self.shared.hosts.bind(self.controller.id, host);
    }
}

impl Port<'_> {
    /// Sets whether the link that begins has several connections. Otherwise the controller serves all
    /// queue pairs itself. Call this before the controller is enabled.
    pub fn bind_link(&mut self, several: bool) {
        self.controller.parts.set_active(several);
    }
}

impl Function for Port<'_> {
    fn handle(&mut self, now: Instant, input: Input) {
        self.controller.handle(self.shared, now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.shared.tick(now);
        match self.controller.poll(self.shared, now, ready) {
            Output::Wait(mut wait) => {
                wait.until = wait.until.into_iter().chain(self.shared.counters_due()).min();
                Output::Wait(wait)
            }
            tlp => tlp,
        }
    }

    fn ready(&self) -> Ready {
        self.controller.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}
