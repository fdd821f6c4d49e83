//! The host node: a root complex and the function below its root port.

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

/// Input of a host node.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request of host software; the answer has the same identifier. Only if
    /// [`HostNode::accepts`] it, and no [`Request::Sleep`]: [`Buses`] answers
    /// those.
    Request(RequestId, Request),
    /// The data of a [`HostOutput::HostRead`]; `None` if the device may not read all of it.
    HostData(ReadToken, Option<Bytes>),
}

/// What a host node asks of its shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An action of the host: answer reads with [`Input::HostData`].
    Host(HostOutput),
    /// Nothing more now; poll after the next input, when the function below may
    /// have output, or as this says. The receiver is the function below.
    Wait(Wait),
}

/// A root complex with the function below its root port: a switch node, a directly attached drive,
/// or the near end of a modelled PCIe link. Hot resets of the root port reach that function.
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

    /// The function below the root port.
    pub fn below(&self) -> &B {
        &self.below
    }

    /// The function below the root port, for input that does not come from above.
    pub fn below_mut(&mut self) -> &mut B {
        &mut self.below
    }

    /// Whether the root complex accepts this request now, as
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

    /// The next action. Moves TLPs between the root complex and the function below
    /// until none moves.
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

    /// Removes the bus mastership of the functions on `buses`, which are gone. A
    /// function that comes back needs Bus Master Enable again.
    pub fn clear_bus_masters(&mut self, buses: RangeInclusive<u8>) {
        self.root.clear_bus_masters(buses);
    }
}
