//! A whole fabric in memory: a host node, device nodes and switch nodes, and the paths between
//! them, in virtual time, from one seed.
//!
//! Each node is a device node, at the far end of the link with its number. A link belongs to a port
//! of the top switch or of a switch on another node.

mod build;
mod device;
mod disk;
mod host;
mod link;
pub mod operations;
mod seat;
pub mod slot_operations;

pub use build::{Plan, dma, dma_with, script};
pub use device::Device;
pub use host::bar;
pub use link::{Link, Manner, Shape, State};

use bytes::Bytes;
use node::device::{self as device_node, DeviceNode, Event};
use node::host::{self as host_node, Buses, HostNode};
use node::path::Input;
use node::switch::{Output, SwitchNode};
use node::{LinkEvent, PathId};
use pcie::root::RootComplex;
use pcie::{Bus, Ram};
use stats::random::Random;
use switch::Upstream;
use switch::tunnel::Cause;
use wire::{Duration, Instant};

/// Start and size of host memory.
pub const RAM: u64 = 0x10_0000;
pub const RAM_SIZE: usize = 4 << 20;

/// The switch that a link belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    Top,
    Node(usize),
}

/// Events in order, for digests and assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Up(usize),
    Down(usize, Cause),
    DeviceDown(usize, Cause),
    Interrupt(wire::Bdf, u32),
    Wire(u8, bool),
    /// A device wrote host memory: address and data.
    Written(u64, Bytes),
    /// A device accessed an address that has no memory.
    Refused(u64),
}

pub struct Fabric {
    pub now: Instant,
    pub host: HostNode<SwitchNode>,
    pub nodes: Vec<DeviceNode<Device>>,
    pub links: Vec<Link>,
    buses: Buses,
    pub bus: Bus,
    /// The bus of other host software.
    pub other: Bus,
    /// Slots, if a test uses any.
    pub seats: Vec<seat::Seat>,
    pub ram: Ram,
    pub rng: Random,
    pub happened: Vec<Happened>,
    /// The outputs of the top switch, except bytes, with their times.
    pub log: Vec<(Instant, Output)>,
    /// Whether host memory answers reads after a random time, in any order.
    pub slow_memory: bool,
    /// Whether host memory does not answer reads at all.
    pub stuck_memory: bool,
    /// The device whose reads host memory does not answer.
    pub unanswered: Option<wire::Bdf>,
    reads: host::Reads,
    paths: u64,
    timers: Vec<Instant>,
}

impl Fabric {
    /// Moves everything that can move at this instant. Returns whether anything did.
    pub fn settle(&mut self) -> bool {
        for round in 0..100_000 {
            self.timers.clear();
            // Slots come before the host, which takes their new requests at this instant.
            let mut moved = self.arrive() | self.move_seats();
            moved |= self.host_requests() | self.host_memory();
            moved |= self.move_host() | self.move_switch(Parent::Top);
            for index in 0..self.nodes.len() {
                moved |= self.move_node(index) | self.hang_up(index);
            }
            if !moved {
                self.timers.extend(self.links.iter().flat_map(Link::timers));
                return round > 0;
            }
        }
        panic!("the fabric does not come to rest");
    }

    /// Delivers bytes that have arrived, and answers connections.
    fn arrive(&mut self) -> bool {
        let mut moved = false;
        for index in 0..self.links.len() {
            moved |= self.meet(index);
            while let Some(bytes) = self.links[index].down.arrived(self.now) {
                self.lower(index, Input::Received(bytes));
                moved = true;
            }
            while let Some(bytes) = self.links[index].up.arrived(self.now) {
                self.upper(index, Input::Received(bytes));
                moved = true;
            }
        }
        moved
    }

    /// Treats a connection of link `index` according to the manner of its far side.
    fn meet(&mut self, index: usize) -> bool {
        let link = &mut self.links[index];
        if link.state != State::Connecting || link.manner == Manner::Silent {
            return false;
        }
        if link.manner == Manner::Refuses {
            link.state = State::None;
            self.upper(index, Input::Failed("refused".into()));
            return true;
        }
        let group = if link.manner == Manner::TurnsAway { 7 } else { 0 };
        link.state = State::Open;
        link.path = Some(PathId(self.paths));
        self.paths += 1;
        self.nodes[index].move_to(self.now, group);
        self.upper(index, Input::Connected);
        self.lower(
            index,
            Input::Accepted { signals_close: true, rights: node::Rights::ALL, peer: None },
        );
        true
    }

    /// Passes an event of link `index`'s path to the switch above.
    pub fn upper(&mut self, index: usize, input: Input) {
        let (now, parent, port) = (self.now, self.links[index].parent, self.links[index].port);
        self.switch(parent).handle_link(now, port, input);
    }

    /// Passes an event to the node below, if it has a path.
    fn lower(&mut self, index: usize, input: Input) {
        if let Some(path) = self.links[index].path {
            self.nodes[index].handle(self.now, path, input);
        }
    }

    pub fn switch(&mut self, at: Parent) -> &mut SwitchNode {
        match at {
            Parent::Top => self.host.below_mut(),
            Parent::Node(node) => self.nodes[node].function_mut().switch(),
        }
    }

    pub fn move_host(&mut self) -> bool {
        let mut moved = false;
        loop {
            match self.host.poll(self.now) {
                host_node::Output::Wait(wait) => {
                    self.timers.extend(wait.until);
                    return moved;
                }
                output => self.host_output(output),
            }
            moved = true;
        }
    }

    pub fn move_switch(&mut self, at: Parent) -> bool {
        for index in 0..self.links.len() {
            if self.links[index].parent == at {
                let room = self.links[index].down.room();
                self.upper(index, Input::Room(room));
            }
        }
        let (now, mut moved) = (self.now, false);
        loop {
            match self.switch(at).poll_links(now) {
                Output::Timeout(timer) => {
                    self.check(timer);
                    return moved;
                }
                output => self.link_output(at, output),
            }
            moved = true;
        }
    }

    fn check(&mut self, timer: Option<Instant>) {
        assert!(timer.is_none_or(|at| at > self.now), "{timer:?} is not after {}", self.now);
        self.timers.extend(timer);
    }

    /// The link below port `port` of a switch.
    fn number(&self, at: Parent, port: usize) -> Option<usize> {
        self.links.iter().position(|link| (link.parent, link.port) == (at, port))
    }

    fn link_output(&mut self, at: Parent, output: Output) {
        if at == Parent::Top && !matches!(output, Output::Transmit { .. }) {
            self.log.push((self.now, output.clone()));
        }
        match output {
            Output::Connect { link: port, .. } => match self.number(at, port) {
                Some(index) => {
                    self.end_lower(index);
                    let before = std::mem::replace(&mut self.links[index].state, State::Connecting);
                    assert_eq!(before, State::None, "a path for link {index}, which has one");
                }
                None => {
                    let now = self.now;
                    self.switch(at).handle_link(now, port, Input::Failed("nobody".into()));
                }
            },
            Output::Transmit { link: port, bytes, .. } => {
                let index = self.number(at, port).expect("somebody is there");
                let link = &mut self.links[index];
                assert_eq!(link.state, State::Open, "a path that is not open");
                link.down.send(self.now, &mut self.rng, &bytes);
            }
            Output::Close { link: port, .. } => {
                let index = self.number(at, port).expect("somebody is there");
                let before = std::mem::replace(&mut self.links[index].state, State::None);
                assert_ne!(before, State::None, "a path that nobody wanted");
            }
            Output::Event(LinkEvent::Up(port, _)) => {
                self.seats_below(at, port).for_each(seat::Seat::link_up);
                self.happened.extend(self.number(at, port).map(Happened::Up));
            }
            Output::Event(LinkEvent::Down { link: port, cause, buses }) => {
                self.happened
                    .extend(self.number(at, port).map(|index| Happened::Down(index, cause)));
                self.seats_below(at, port).for_each(seat::Seat::link_down);
                if at == Parent::Top {
                    self.host.clear_bus_masters(buses);
                }
            }
            Output::Event(_) => {}
            Output::Timeout(_) => unreachable!("the caller's"),
        }
    }

    /// Moves a device node, and the links of a switch on it.
    fn move_node(&mut self, index: usize) -> bool {
        let room = self.links[index].up.room();
        self.lower(index, Input::Room(room));
        let mut moved = false;
        loop {
            match self.nodes[index].poll(self.now) {
                device_node::Output::Timeout(timer) => {
                    self.check(timer);
                    break;
                }
                device_node::Output::Transmit { path, bytes } => {
                    assert_eq!(self.links[index].path, Some(path), "a path that is not open");
                    self.links[index].up.send(self.now, &mut self.rng, &bytes);
                }
                device_node::Output::Close { path, .. } => {
                    self.links[index].path.take_if(|open| *open == path);
                }
                device_node::Output::Event(Event::HostDown(_, cause)) => {
                    self.happened.push(Happened::DeviceDown(index, cause));
                }
                device_node::Output::Linked { .. }
                | device_node::Output::Further { .. }
                | device_node::Output::Event(_) => {}
            }
            moved = true;
        }
        let is_switch = matches!(self.nodes[index].function(), Device::Switch(_));
        is_switch && self.move_switch(Parent::Node(index)) || moved
    }

    /// Notifies the other end of a closed path once everything that was sent before has arrived.
    fn hang_up(&mut self, index: usize) -> bool {
        let link = &self.links[index];
        let upper = link.state == State::None && link.path.is_some() && link.down.is_empty();
        let lower = link.state == State::Open && link.path.is_none() && link.up.is_empty();
        if upper {
            self.end_lower(index);
        } else if lower {
            self.end_upper(index);
        }
        upper || lower
    }

    fn end_lower(&mut self, index: usize) {
        self.links[index].clear();
        self.lower(index, Input::Closed);
        self.links[index].path = None;
    }

    fn end_upper(&mut self, index: usize) {
        if self.links[index].state == State::Open {
            self.links[index].state = State::Gone;
            self.upper(index, Input::Closed);
        }
    }

    /// The path of link `index` is lost, with all bytes in transit.
    pub fn breaks(&mut self, index: usize) {
        self.end_lower(index);
        self.end_upper(index);
    }

    /// As `breaks`, and new connections fail.
    pub fn disconnect(&mut self, index: usize) {
        self.links[index].manner = Manner::Refuses;
        self.breaks(index);
    }

    /// Allows new connections on link `index`, and waits for the next attempt.
    pub fn connect(&mut self, index: usize) {
        self.links[index].manner = Manner::Serves;
        if self.links[index].state != State::Open {
            self.pass(node::link_state::RETRY_PAUSE + Duration::from_ms(1));
        }
    }

    /// Settles, and advances to the next instant with an event, at most to `limit`. Returns whether
    /// `limit` is not reached.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.settle();
        if self.now >= limit {
            return false;
        }
        let timers = self.timers.iter().copied();
        let next = timers.chain(self.buses.timer()).chain(self.memory_timer()).min();
        let next = next.unwrap_or(limit);
        assert!(next > self.now, "a timer of the past at {}", self.now);
        self.now = next.min(limit);
        true
    }

    /// Changes pieces and delays of the streams from now on.
    pub fn shape(&mut self, shape: Shape) {
        for link in &mut self.links {
            link.down.shape = shape;
            link.up.shape = shape;
        }
    }

    pub fn root(&self) -> &RootComplex {
        self.host.root()
    }

    pub fn top(&self) -> &Upstream {
        self.host.below().upstream()
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
