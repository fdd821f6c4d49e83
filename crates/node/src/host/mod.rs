//! The host node: a root complex, and what is attached below its root port.

mod buses;
#[cfg(test)]
mod tests;

pub use buses::Buses;

use ::switch::upstream::next_timer;
use bytes::Bytes;
use pcie::root::{self, HostOutput, ReadToken, RootComplex, Settings};
use pcie::software::{Request, RequestId};
use pcie::{Function, Wait};
use std::ops::RangeInclusive;
use wire::Instant;

/// What reaches a host node.
#[derive(Clone, Debug)]
pub enum Input {
    /// Host software wants this; the answer carries the same name. Not while
    /// [`HostNode::accepts`] denies it, and no
    /// [`Request::Sleep`]: [`Buses`] keeps those.
    Request(RequestId, Request),
    /// The bytes that [`HostOutput::HostRead`] asked for; `None` if some of them
    /// are not the device's to read.
    HostData(ReadToken, Option<Bytes>),
}

/// What a host node wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Something of the host: answer reads with [`Input::HostData`].
    Host(HostOutput),
    /// Nothing more now; call again after an input, when what is below may have
    /// something new, or for one of these; the receiver is what is below.
    Wait(Wait),
}

/// A root complex with the function below its root port: a switch node, a drive
/// without a network in between, or the near end of a modelled PCIe link. Hot
/// resets of the root port reach it.
#[derive(Debug)]
pub struct HostNode<B> {
    root: RootComplex,
    below: B,
}

impl<B: Function> HostNode<B> {
    /// A host after power-on.
    pub fn new(settings: Settings, below: B) -> Self {
        Self { root: RootComplex::new(settings), below }
    }

    /// The root complex: counters, root port.
    pub fn root(&self) -> &RootComplex {
        &self.root
    }

    /// What is below the root port.
    pub fn below(&self) -> &B {
        &self.below
    }

    /// What is below the root port, for input that does not come from above.
    pub fn below_mut(&mut self) -> &mut B {
        &mut self.below
    }

    /// Whether a request of host software may be handed in now, as
    /// [`RootComplex::takes`].
    pub fn accepts(&self, request: &Request) -> bool {
        self.root.takes(request, &self.below)
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        let input = match input {
            Input::Request(id, request) => root::Input::Request(id, request),
            Input::HostData(token, data) => root::Input::HostData(token, data),
        };
        self.root.handle(now, input, &self.below);
    }

    /// The next thing to do; moves TLPs between the root complex and what is
    /// below until nothing moves.
    pub fn poll(&mut self, now: Instant) -> Output {
        loop {
            let mut wait = match self.root.poll(now, &self.below) {
                root::Output::Downstream(input) => {
                    self.below.handle(now, input);
                    continue;
                }
                root::Output::Host(what) => return Output::Host(what),
                root::Output::Wait(wait) => wait,
            };
            let mut fed = false;
            loop {
                match self.below.poll(now, self.root.ready()) {
                    pcie::Output::Tlp(tlp) => {
                        self.root.handle(now, root::Input::Tlp(tlp), &self.below);
                        fed = true;
                    }
                    pcie::Output::Wait(_) if fed => break,
                    pcie::Output::Wait(below) => {
                        wait.until = next_timer([wait.until, below.until]);
                        return Output::Wait(wait);
                    }
                }
            }
        }
    }

    /// Forgets what the functions on `buses` were allowed: they are gone.
    /// Whatever comes back masters the bus only when told to.
    pub fn clear_bus_masters(&mut self, buses: RangeInclusive<u8>) {
        self.root.clear_bus_masters(buses);
    }
}
