//! A whole fabric in memory: root complex, switches, device nodes and the
//! byte streams between them, in virtual time, from one seed.
//!
//! A node is a device node: the far end of one link, and what it serves. A
//! link hangs off a port of the top switch or of a switch on another node.

pub mod build;
pub mod device;
pub mod host;
pub mod link;
pub mod operations;
pub mod rng;

use bytes::{Bytes, BytesMut};
use device::Device;
use link::{Link, Shape};
use pcie::root::{self, RootComplex};
use pcie::{Bus, Function, Input, Ram};
use rng::Rng;
use switch::tunnel::{self, Cause};
use switch::upstream::LinkOutput;
use switch::{Downstream, Upstream, downstream};
use wire::Instant;

/// Where host memory begins, and its size.
pub const RAM: u64 = 0x10_0000;
pub const RAM_SIZE: usize = 4 << 20;

/// Bytes that a link holds in each direction before it stops taking more.
const CAPACITY: usize = 64 << 10;

/// Which switch a link hangs off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    Top,
    Node(usize),
}

/// What happened, in order: for digests and for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Up(usize),
    Down(usize, Cause),
    DeviceDown(usize, Cause),
    Interrupt(wire::Bdf, u32),
    Wire(u8, bool),
    /// A device wrote host memory: where and what.
    Written(u64, Bytes),
    /// A device read or wrote what is not there.
    Refused(u64),
}

pub struct Fabric {
    pub now: Instant,
    pub root: RootComplex,
    pub top: Upstream,
    pub nodes: Vec<Downstream<Device>>,
    pub links: Vec<Link>,
    pub bus: Bus,
    /// Of other software of the host.
    pub other: Bus,
    pub ram: Ram,
    pub rng: Rng,
    pub happened: Vec<Happened>,
    /// Host memory answers reads after a random while, in any order.
    pub slow_memory: bool,
    /// Host memory does not answer reads at all.
    pub stuck_memory: bool,
    /// Whose reads host memory does not answer.
    pub unanswered: Option<wire::Bdf>,
    host: host::Host,
    timers: Vec<Instant>,
}

impl Fabric {
    /// Moves everything that can move at this instant; whether anything did.
    pub fn settle(&mut self) -> bool {
        let mut rounds = 0;
        loop {
            self.timers.clear();
            let moved = self.host_requests()
                | self.host_memory()
                | self.move_root()
                | self.move_top()
                | self.move_links();
            if !moved {
                return rounds > 0;
            }
            rounds += 1;
            assert!(rounds < 100_000, "the fabric does not come to rest");
        }
    }

    fn move_root(&mut self) -> bool {
        let mut moved = false;
        loop {
            match self.root.poll(self.now, &self.top) {
                root::Output::Timeout(at) => {
                    self.timers.extend(at);
                    return moved;
                }
                root::Output::Tlp(tlp) => self.top.handle(self.now, Input::Tlp(tlp)),
                root::Output::HotReset => self.top.handle(self.now, Input::HotReset),
                output => self.host_output(output),
            }
            moved = true;
        }
    }

    fn move_top(&mut self) -> bool {
        let mut moved = false;
        loop {
            match self.top.poll(self.now, self.root.ready()) {
                pcie::Output::Timeout(at) => {
                    self.timers.extend(at);
                    return moved;
                }
                pcie::Output::Tlp(tlp) => self.root.handle(self.now, root::Input::Tlp(tlp)),
            }
            moved = true;
        }
    }

    fn move_links(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.links.len() {
            moved |= self.deliver(index);
            moved |= self.move_upper(index);
            moved |= self.move_lower(index);
            moved |= self.hang_up(index);
        }
        moved
    }

    /// Hands over what has arrived.
    fn deliver(&mut self, index: usize) -> bool {
        let mut moved = false;
        while let Some(bytes) = self.links[index].down.arrived(self.now) {
            self.nodes[index].handle(self.now, tunnel::Input::Received(bytes));
            moved = true;
        }
        while let Some(bytes) = self.links[index].up.arrived(self.now) {
            self.upper(index, tunnel::Input::Received(bytes));
            moved = true;
        }
        let link = &self.links[index];
        self.timers.extend([link.down.next(), link.up.next()].into_iter().flatten());
        moved
    }

    /// Gives an input to the host's end of link `index`.
    fn upper(&mut self, index: usize, input: tunnel::Input) {
        let (now, port) = (self.now, self.links[index].port);
        self.upstream(index).handle_link(now, port, input);
    }

    /// The switch that link `index` hangs off.
    pub fn upstream(&mut self, index: usize) -> &mut Upstream {
        match self.links[index].parent {
            Parent::Top => &mut self.top,
            Parent::Node(node) => self.nodes[node].function_mut().switch(),
        }
    }

    fn move_upper(&mut self, index: usize) -> bool {
        let mut moved = false;
        loop {
            let bytes = self.links[index].down.room(CAPACITY);
            self.upper(index, tunnel::Input::CanTransmit { bytes });
            let (now, port) = (self.now, self.links[index].port);
            let mut bytes = BytesMut::new();
            match self.upstream(index).poll_link(now, port, &mut bytes) {
                LinkOutput::Timeout(at) => {
                    self.timers.extend(at);
                    return moved;
                }
                LinkOutput::Transmit(_) => {
                    assert!(bytes.len() <= self.links[index].down.room(CAPACITY));
                    self.links[index].down.send(self.now, &mut self.rng, &bytes);
                }
                LinkOutput::Up(_) => self.happened.push(Happened::Up(index)),
                LinkOutput::Down(cause) => {
                    if self.links[index].parent == Parent::Top {
                        self.root.forget_masters(self.top.buses(port));
                    }
                    self.links[index].upper_closes = self.links[index].connected;
                    self.happened.push(Happened::Down(index, cause));
                }
                LinkOutput::EchoReply(_) => {}
            }
            moved = true;
        }
    }

    fn move_lower(&mut self, index: usize) -> bool {
        let mut moved = false;
        loop {
            let bytes = self.links[index].up.room(CAPACITY);
            self.nodes[index].handle(self.now, tunnel::Input::CanTransmit { bytes });
            let mut bytes = BytesMut::new();
            match self.nodes[index].poll(self.now, &mut bytes) {
                downstream::Output::Timeout(at) => {
                    self.timers.extend(at);
                    return moved;
                }
                downstream::Output::Transmit(_) => {
                    assert!(bytes.len() <= self.links[index].up.room(CAPACITY));
                    self.links[index].up.send(self.now, &mut self.rng, &bytes);
                }
                downstream::Output::Up(_) => {}
                downstream::Output::Down(cause) => {
                    self.links[index].lower_closes = self.links[index].connected;
                    self.happened.push(Happened::DeviceDown(index, cause));
                }
            }
            moved = true;
        }
    }

    /// An end that gave up closes its connection once everything it sent has
    /// arrived, and the other end hears of it.
    fn hang_up(&mut self, index: usize) -> bool {
        let link = &self.links[index];
        let over =
            link.upper_closes && link.down.is_empty() || link.lower_closes && link.up.is_empty();
        if over {
            self.disconnect(index);
        }
        over
    }

    /// Cuts the connection of link `index`; what is under way is lost.
    pub fn disconnect(&mut self, index: usize) {
        if !std::mem::take(&mut self.links[index].connected) {
            return;
        }
        self.links[index].clear();
        self.upper(index, tunnel::Input::Disconnected);
        self.nodes[index].handle(self.now, tunnel::Input::Disconnected);
    }

    /// Connects link `index`, if it is not.
    pub fn connect(&mut self, index: usize) {
        if std::mem::replace(&mut self.links[index].connected, true) {
            return;
        }
        self.links[index].clear();
        self.upper(index, tunnel::Input::Connected);
        self.nodes[index].handle(self.now, tunnel::Input::Connected);
    }

    /// When the next thing happens by itself.
    fn next(&self) -> Option<Instant> {
        self.timers.iter().copied().chain(self.host.next(self.stuck_memory)).min()
    }

    /// Settles, and goes on to the next instant at which something happens,
    /// but not beyond `limit`. Whether time is left.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        if self.now >= limit {
            return false;
        }
        let next = self.next().unwrap_or(limit);
        assert!(next > self.now, "a timer of the past at {}", self.now);
        self.now = next.min(limit);
        true
    }

    /// Changes how the streams cut and delay, from now on.
    pub fn shape(&mut self, shape: Shape) {
        for link in &mut self.links {
            link.down.shape = shape;
            link.up.shape = shape;
        }
    }

    /// The script on node `node`.
    pub fn script(&mut self, node: usize) -> &mut device::Script {
        self.nodes[node].function_mut().script()
    }

    /// The DMA test function of node `node`.
    pub fn dma(&self, node: usize) -> &pcie::dma_test::DmaTest {
        self.nodes[node].function().dma()
    }
}
