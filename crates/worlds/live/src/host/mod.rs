//! The host node: a root complex, the function below its root port, and the host software that
//! uses it.

mod descriptors;
mod endpoint;
mod event_limits;
mod interrupted;
mod memory;
mod node;
mod probe;
mod state;
mod summary;
#[cfg(test)]
mod tests;

pub use ::node::slot::{Change as EndpointChange, ReadOutcome};
pub use memory::{Memory, RamMemory};
pub use node::{HostEvent, HostNode, MachineSettings};
pub use probe::{Probe, Record};
pub use summary::Summary;

use crate::attached::Attached;
use crate::clock::Clock;
use crate::poller::{Activity, Poller};
use crate::trace::Tapped;
use ::node::host::{Buses, Input, Output};
use ::node::push;
use bytes::{Bytes, BytesMut};
use pcie::root::{self, HostOutput, ReadToken, RootComplex};
use pcie::software::{Bus, Task};
use std::io;
use std::ops::{Range, RangeInclusive};
use wire::earliest;
use wire::{Bdf, Instant};

/// The I/O around [`node::HostNode`](::node::HostNode): clock, descriptors and memory.
pub struct HostIo<A> {
    clock: Clock,
    poller: Poller,
    node: ::node::HostNode<Tapped<A, Probe>>,
    buses: Buses,
}

impl<A: Attached> HostIo<A> {
    /// A machine after power-on.
    ///
    /// # Errors
    /// If the kernel refuses to watch a descriptor.
    pub fn new(
        clock: Clock,
        poller: Poller,
        settings: root::Settings,
        mut attached: A,
    ) -> io::Result<Self> {
        attached.watch(&poller)?;
        attached.begin();
        let observer = Probe::new(attached.tracer(), clock);
        let node = ::node::HostNode::new(settings, Tapped { inner: attached, observer });
        Ok(Self { clock, poller, node, buses: Buses::default() })
    }

    /// Enables push: sends bytes of host memory in front of doorbells.
    #[must_use]
    pub fn with_push(self, settings: push::Settings) -> Self {
        Self { node: self.node.with_push(settings), ..self }
    }

    /// Counters of push.
    pub fn push_counters(&self) -> push::Counters {
        self.node.push_counters()
    }

    /// As [`node::HostNode::remapped`](::node::HostNode::remapped).
    pub fn remapped(&mut self, range: Range<u64>) {
        self.node.remapped(range);
    }

    /// As [`node::HostNode::reset_event`](::node::HostNode::reset_event).
    pub fn reset_event(&self, function: Bdf) -> Option<push::ResetEvent> {
        self.node.reset_event(function)
    }

    /// A bus for another piece of host software.
    pub fn new_bus(&mut self) -> Bus {
        self.buses.new_bus()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The poller of the machine's descriptors; owners add theirs.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The function below the root port.
    pub fn attached_mut(&mut self) -> &mut A {
        &mut self.node.below_mut().inner
    }

    /// The function below the root port.
    pub fn attached(&self) -> &A {
        &self.node.below().inner
    }

    /// The root complex.
    pub fn root(&self) -> &RootComplex {
        self.node.root()
    }

    /// The recorder at the root port.
    pub fn probe_mut(&mut self) -> &mut Probe {
        &mut self.node.below_mut().observer
    }

    /// Completes a read that [`Memory::read`] returned as pending.
    pub fn complete_read(&mut self, token: ReadToken, data: Option<Bytes>) {
        let now = self.clock.now();
        self.node.handle(now, Input::HostData(token, data));
    }

    /// Makes one turn. Returns whether anything happened, and when to call again at the latest.
    ///
    /// # Errors
    /// If the kernel refuses to watch a descriptor.
    pub fn pump(&mut self, memory: &mut impl Memory) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        self.poller.refresh_if_stale(now)?;
        let mut moved = self.take_requests(now);
        let (progressed, mut timer) = self.turn(now, memory);
        moved |= progressed;
        let mut active = Activity::default();
        // Sends before the check for input.
        if moved {
            active = self.service(now)?;
        }
        if self.poller.refresh(now)? || !moved {
            let sent = active.moved;
            active = self.service(now)?;
            active.moved |= sent;
        }
        self.poller.end_turn();
        if active.moved {
            // Passes input to the root complex and sends the answers in this turn.
            moved = true;
            let progressed;
            (progressed, timer) = self.turn(now, memory);
            if progressed {
                active = self.service(now)?;
            }
        }
        let tick = self.node.below().observer.tick(now, !moved);
        Ok((moved, earliest([timer, active.timer, self.buses.timer(), tick])))
    }

    /// Serves the I/O of the attached function.
    fn service(&mut self, now: Instant) -> io::Result<Activity> {
        self.node.below_mut().inner.service(now, &self.poller)
    }

    /// Waits until something may happen; with `moved` it returns at once and restarts the spin.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn wait(&mut self, moved: bool, timer: Option<Instant>) -> io::Result<()> {
        if moved {
            self.poller.busy(self.clock.now());
            return Ok(());
        }
        self.poller.wait(&self.clock, timer)
    }

    /// Runs a piece of host software to its end.
    ///
    /// # Errors
    /// As [`pump`](Self::pump) and [`wait`](Self::wait).
    pub fn run<T>(
        &mut self,
        memory: &mut impl Memory,
        bus: &Bus,
        software: impl Future<Output = T> + 'static,
    ) -> io::Result<T> {
        run_to_end(self.clock, bus, software, || {
            let (moved, timer) = self.pump(memory)?;
            self.wait(moved, timer)
        })
    }

    /// Passes requests of the host software to the node and wakes ended sleeps.
    fn take_requests(&mut self, now: Instant) -> bool {
        let mut moved = self.buses.wake(now);
        while let Some((name, request)) =
            self.buses.next_request(now, |request| self.node.accepts(request))
        {
            moved = true;
            self.node.handle(now, Input::Request(name, request));
        }
        moved
    }

    /// Executes the node's actions on host software and memory; returns whether there was any, and
    /// the node's timer.
    fn turn(&mut self, now: Instant, memory: &mut impl Memory) -> (bool, Option<Instant>) {
        let mut moved = false;
        loop {
            match self.node.poll_with(now, &mut Lent(memory)) {
                Output::Host(HostOutput::Answer(name, value)) => self.buses.answer(name, value),
                Output::Host(HostOutput::HostRead { token, requester, address, length }) => {
                    match memory.read(now, requester, (address, length), &token) {
                        ReadOutcome::Done(data) => {
                            self.node.handle(now, Input::HostData(token, data))
                        }
                        ReadOutcome::Pending => {}
                    }
                }
                Output::Host(HostOutput::HostWrite { requester, address, data }) => {
                    memory.write(now, requester, address, &data);
                }
                Output::Host(HostOutput::Interrupt { requester, data }) => {
                    memory.interrupt(requester, data)
                }
                Output::Host(HostOutput::Intx { wire, level }) => memory.wire(wire, level),
                Output::Wait(wait) => return (moved, wait.until),
            }
            moved = true;
        }
    }

    /// Shuts down in order.
    ///
    /// # Errors
    /// If data could not be made durable.
    pub fn close(&mut self) -> io::Result<()> {
        let counters = self.push_counters();
        self.node.below().observer.not_pushed(&counters.not_pushed);
        self.node.below_mut().inner.close()
    }

    /// Removes the bus mastership of the functions on `buses`, because the functions are gone.
    pub fn clear_bus_masters(&mut self, buses: RangeInclusive<u8>) {
        self.node.clear_bus_masters(buses);
    }
}

/// Memory lent to the node for push.
struct Lent<'a, M>(&'a mut M);

impl<M: Memory> push::HostMemory for Lent<'_, M> {
    fn peek(&mut self, requester: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        self.0.peek(requester, (address, length), out)
    }
}

/// Runs a piece of host software to its end, with a turn of its machine after each step.
///
/// # Errors
/// As `turn`.
pub(crate) fn run_to_end<T>(
    clock: Clock,
    bus: &Bus,
    software: impl Future<Output = T> + 'static,
    mut turn: impl FnMut() -> io::Result<()>,
) -> io::Result<T> {
    let mut task = Task::new(bus, software);
    loop {
        if let Some(value) = task.poll(clock.now()) {
            return Ok(value);
        }
        turn()?;
    }
}
