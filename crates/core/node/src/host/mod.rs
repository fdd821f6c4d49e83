//! The host node: a root complex and the function below its root port.

mod buses;
#[cfg(test)]
mod tests;

pub use buses::Buses;

use crate::push::{self, Follower, HostMemory, ResetEvent};
use bytes::Bytes;
use pcie::root::{self, HostOutput, ROOT_PORT, ReadToken, RootComplex, Settings};
use pcie::software::{Request, RequestId};
use pcie::{Function, Wait};
use std::ops::{Range, RangeInclusive};
use wire::earliest;
use wire::tlp::Tlp;
use wire::{Bdf, Instant};

/// Input of a host node.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request of host software; the answer has the same identifier. Pass it in only if
    /// [`HostNode::accepts`] it. [`Request::Sleep`] is not allowed: [`Buses`] answers those.
    Request(RequestId, Request),
    /// The data of a [`HostOutput::HostRead`]; `None` if the device may not read all of it.
    HostData(ReadToken, Option<Bytes>),
}

/// An action for the owner of a host node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// An action of the host: answer reads with [`Input::HostData`].
    Host(HostOutput),
    /// Nothing more now; poll after the next input, when the function below may have output, or at
    /// the end of this wait. The receiver is the function below.
    Wait(Wait),
}

/// A root complex with the function below its root port: a switch node, a directly attached drive,
/// or the near end of a modelled PCIe link. Hot resets of the root port reach that function.
#[derive(Debug)]
pub struct HostNode<B> {
    root: RootComplex,
    below: B,
    /// Follows the controllers below, even if push is off.
    follower: Follower,
    /// The TLPs to send down now; empty between calls.
    down: Vec<Tlp>,
}

impl<B: Function> HostNode<B> {
    /// A host after power-on.
    pub fn new(settings: Settings, below: B) -> Self {
        let push = push::Settings { mode: push::Mode::Off, ..push::Settings::default() };
        let (root, follower) = (RootComplex::new(settings), Follower::new(push));
        Self { root, below, follower, down: Vec::new() }
    }

    /// Enables push: sends bytes of host memory in front of doorbells. Call it before host software
    /// starts.
    #[must_use]
    pub fn with_push(self, settings: push::Settings) -> Self {
        Self { follower: Follower::new(settings), ..self }
    }

    /// Counters of push.
    pub fn push_counters(&self) -> push::Counters {
        self.follower.counters()
    }

    /// Notes that the host memory in this range of bus addresses was mapped, unmapped, or lost its
    /// owner. Poll before host software is notified of the end of the change.
    pub fn remapped(&mut self, range: Range<u64>) {
        self.follower.remapped(range);
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
            Input::Request(id, request) => {
                // The root port answers these requests itself. They may turn bus mastering off.
                if let Request::ConfigWrite { target: ROOT_PORT, .. } = request {
                    self.follower.end_all();
                }
                root::Input::Request(id, request)
            }
            Input::HostData(token, data) => root::Input::HostData(token, data),
        };
        self.root.handle(now, input, &self.below);
    }

    /// The next action. Moves TLPs between the root complex and the function below until none is
    /// left to move. No host memory is available, so no bytes are pushed.
    pub fn poll(&mut self, now: Instant) -> Output {
        self.poll_with(now, &mut ())
    }

    /// As [`poll`](Self::poll), with the memory whose bytes are pushed.
    pub fn poll_with(&mut self, now: Instant, memory: &mut dyn HostMemory) -> Output {
        loop {
            self.send_due(now, memory);
            let mut wait = match self.root.poll(now, &self.below) {
                root::Output::Downstream(input) => {
                    self.send_down(now, input, memory);
                    continue;
                }
                root::Output::Host(output) => return Output::Host(output),
                root::Output::Wait(wait) => wait,
            };
            let mut fed = false;
            loop {
                match self.below.poll(now, self.root.ready().with_runs(true)) {
                    pcie::Output::Tlp(tlp) => {
                        self.follower.up(&tlp);
                        self.root.handle(now, root::Input::Tlp(tlp), &self.below);
                        fed = true;
                    }
                    pcie::Output::Wait(_) if fed => break,
                    pcie::Output::Wait(below) => {
                        wait.until = earliest([wait.until, below.until]);
                        return Output::Wait(wait);
                    }
                }
            }
        }
    }

    /// Passes an input to the function below, after the messages that must precede it.
    fn send_down(&mut self, now: Instant, input: pcie::Input, memory: &mut dyn HostMemory) {
        match input {
            pcie::Input::Tlp(tlp) => {
                let room = |bdf| self.below.ports()?.push_room(bdf);
                let host = &mut push::Host { root: &self.root, room: &room, memory };
                self.follower.down(tlp, host, &mut self.down);
                self.hand_down(now);
            }
            pcie::Input::HotReset => {
                self.follower.reset();
                self.below.handle(now, pcie::Input::HotReset);
            }
        }
    }

    /// Sends the messages that need not wait for a TLP.
    fn send_due(&mut self, now: Instant, memory: &mut dyn HostMemory) {
        if !self.follower.is_due() {
            return;
        }
        let room = |bdf| self.below.ports()?.push_room(bdf);
        let host = &push::Host { root: &self.root, room: &room, memory };
        self.follower.due(host, &mut self.down);
        self.hand_down(now);
    }

    fn hand_down(&mut self, now: Instant) {
        for tlp in self.down.drain(..) {
            self.below.handle(now, pcie::Input::Tlp(tlp));
        }
    }

    /// The event that reports to the driver of `function` that its controller was reset: an entry
    /// for the admin completion queue, whose interrupt vector is 0. `None` if the driver has no
    /// outstanding event request, or may have none. Call this before
    /// [`clear_bus_masters`](Self::clear_bus_masters) forgets the function. Write the entry once
    /// the function is back, unless the driver has accessed the function meanwhile.
    pub fn reset_event(&self, function: Bdf) -> Option<ResetEvent> {
        let event = self.follower.reset_event(function)?;
        self.root.may_read(function, event.address, event.entry.len()).then_some(event)
    }

    /// Removes the bus mastership of the functions on `buses`, because the functions are gone. A
    /// function that returns needs Bus Master Enable again.
    pub fn clear_bus_masters(&mut self, buses: RangeInclusive<u8>) {
        self.follower.forget(buses.clone());
        self.root.clear_bus_masters(buses);
    }
}
