//! The port of a controller: its PCIe function.

use super::Shared;
use crate::controller::Controller;
use pcie::{Function, Input, Output, Ports, Ready};
use wire::Instant;

/// The [`Function`] of a controller, borrowed from [`Subsystem::port`](crate::Subsystem::port) for
/// a call.
#[derive(Debug)]
pub struct Port<'a> {
    pub(super) shared: &'a mut Shared,
    pub(super) controller: &'a mut Controller,
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
