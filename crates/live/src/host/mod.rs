//! The host node: a root complex, what is attached below its root port, and
//! the host software that uses it.

mod accesses;
mod comeback;
mod endpoint;
mod lines;
mod memory;
mod node;
mod probe;
mod summary;
#[cfg(test)]
mod tests;
mod twins;

pub use comeback::News;
pub use memory::{Fetched, Memory, RamMemory};
pub use node::{HostEvent, HostNode};
pub use probe::{Probe, Record};
pub use summary::Summary;

use crate::attached::Attached;
use crate::clock::Clock;
use crate::poller::Poller;
use bytes::Bytes;
use pcie::root::{self, ReadToken, RootComplex};
use pcie::software::{Bus, Request, RequestId, Task};
use pcie::{Input, Output};
use std::io;
use std::ops::RangeInclusive;
use switch::upstream::next_timer;
use wire::Instant;

/// Requests of several buses share the root complex: the bus is in the upper
/// bits of the name.
const BUS_SHIFT: u32 = 48;

/// What a turn has moved: anything, and something for what is attached.
#[derive(Clone, Copy)]
struct Went {
    any: bool,
    down: bool,
}

/// See the module.
pub struct Machine<A> {
    clock: Clock,
    poller: Poller,
    root: RootComplex,
    attached: A,
    buses: Vec<Bus>,
    sleeps: Vec<(Instant, usize, RequestId)>,
    probe: Probe,
}

impl<A: Attached> Machine<A> {
    /// A machine after power-on.
    ///
    /// # Errors
    /// If the kernel refuses to watch something.
    pub fn new(
        clock: Clock,
        poller: Poller,
        settings: root::Settings,
        mut attached: A,
    ) -> io::Result<Self> {
        attached.watch(&poller)?;
        attached.begin();
        let probe = Probe::new(attached.tracer());
        Ok(Self {
            clock,
            poller,
            root: RootComplex::new(settings),
            attached,
            buses: Vec::new(),
            sleeps: Vec::new(),
            probe,
        })
    }

    /// A bus for another piece of host software.
    pub fn new_bus(&mut self) -> Bus {
        let bus = Bus::new();
        self.buses.push(bus.clone());
        bus
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What watches the machine's descriptors; owners add theirs.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// What is attached below the root port.
    pub fn attached_mut(&mut self) -> &mut A {
        &mut self.attached
    }

    /// What is attached below the root port.
    pub fn attached(&self) -> &A {
        &self.attached
    }

    /// The root complex.
    pub fn root(&self) -> &RootComplex {
        &self.root
    }

    /// The recorder at the root port.
    pub fn probe_mut(&mut self) -> &mut Probe {
        &mut self.probe
    }

    /// Answers a read that [`Memory::read`] put off.
    pub fn host_data(&mut self, token: ReadToken, data: Option<Bytes>) {
        let now = self.clock.now();
        self.root.handle(now, root::Input::HostData(token, data));
    }

    /// Moves everything that can move once. Yields whether anything did, and
    /// when to look again at the latest.
    ///
    /// # Errors
    /// If the kernel refuses to watch something.
    pub fn pump(&mut self, memory: &mut impl Memory) -> io::Result<(bool, Option<Instant>)> {
        let now = self.clock.now();
        let mut went = Went { any: self.take_requests(now), down: false };
        let mut down = self.downwards(now, memory, &mut went);
        let mut up = self.upwards(now, &mut went);
        let mut active = self.attached.service(now, &self.poller)?;
        if active.moved {
            // What arrived goes up, and the answer down, at once: looking at
            // the network in between would cost a system call each.
            went = Went { any: true, down: false };
            up = self.upwards(now, &mut went);
            down = self.downwards(now, memory, &mut went);
            if went.down {
                active = self.attached.service(now, &self.poller)?;
            }
        }
        let moved = went.any || went.down || active.moved;
        let asleep = self.sleeps.iter().map(|(at, _, _)| *at).min();
        Ok((moved, next_timer([down, up, active.timer, asleep, self.probe.tick(now, !moved)])))
    }

    /// Waits until something may have happened; `moved` says that something
    /// just did.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn wait(&mut self, moved: bool, timer: Option<Instant>) -> io::Result<()> {
        if moved {
            self.poller.busy(self.clock.now());
            return Ok(());
        }
        self.poller.wait(&self.clock, timer)?;
        Ok(())
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
        let mut task = Task::new(bus, software);
        loop {
            if let Some(value) = task.poll(self.clock.now()) {
                return Ok(value);
            }
            let (moved, timer) = self.pump(memory)?;
            self.wait(moved, timer)?;
        }
    }

    /// Requests of the host software on their way; sleeps that are over.
    fn take_requests(&mut self, now: Instant) -> bool {
        let mut moved = false;
        for (index, bus) in self.buses.iter().enumerate() {
            while let Some((id, request)) =
                bus.next_taken(|request| self.root.takes(request, &self.attached))
            {
                moved = true;
                match request {
                    Request::Sleep(span) => self.sleeps.push((now + span, index, id)),
                    request => {
                        let name = (index as u64) << BUS_SHIFT | id;
                        self.root.handle(now, root::Input::Request(name, request));
                    }
                }
            }
        }
        let buses = &self.buses;
        self.sleeps.retain(|(at, index, id)| {
            let over = *at <= now;
            if over {
                buses[*index].answer(*id, 0);
                moved = true;
            }
            !over
        });
        moved
    }

    fn downwards(
        &mut self,
        now: Instant,
        memory: &mut impl Memory,
        went: &mut Went,
    ) -> Option<Instant> {
        loop {
            match self.root.poll(now, &self.attached) {
                root::Output::Tlp(tlp) => {
                    went.down = true;
                    self.probe.record(&self.clock, false, &tlp);
                    self.attached.handle(now, Input::Tlp(tlp));
                }
                root::Output::Answer(name, value) => {
                    let bus = &self.buses[(name >> BUS_SHIFT) as usize];
                    bus.answer(name & ((1 << BUS_SHIFT) - 1), value.unwrap_or(u64::MAX));
                }
                root::Output::HostRead { token, requester, address, length } => {
                    match memory.read(requester, address, length, &token) {
                        Fetched::Now(data) => {
                            self.root.handle(now, root::Input::HostData(token, data));
                        }
                        Fetched::Later => {}
                    }
                }
                root::Output::HostWrite { requester, address, data } => {
                    memory.write(requester, address, &data);
                }
                root::Output::Interrupt { requester, data } => memory.interrupt(requester, data),
                root::Output::Wire { wire, level } => memory.wire(wire, level),
                root::Output::HotReset => {
                    went.down = true;
                    self.attached.handle(now, Input::HotReset);
                }
                root::Output::Timeout(at) => return at,
            }
            went.any = true;
        }
    }

    fn upwards(&mut self, now: Instant, went: &mut Went) -> Option<Instant> {
        loop {
            match self.attached.poll(now, self.root.ready()) {
                Output::Tlp(tlp) => {
                    self.probe.record(&self.clock, true, &tlp);
                    self.root.handle(now, root::Input::Tlp(tlp));
                    went.any = true;
                }
                Output::Timeout(at) => return at,
            }
        }
    }

    /// Ends in order.
    ///
    /// # Errors
    /// If data could not be made durable.
    pub fn close(&mut self) -> io::Result<()> {
        self.attached.close()
    }

    /// Forgets what the functions on `buses` were allowed: they are gone.
    pub fn forget_masters(&mut self, buses: RangeInclusive<u8>) {
        self.root.forget_masters(buses);
    }
}
