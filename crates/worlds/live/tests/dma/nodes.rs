//! A device node with the DMA test function and a host, both in this process.

use live::attached::Switch;
use live::host::RamMemory;
use live::links::Links;
use live::net::{Address, CarrierListener, LinkSettings, RawSettings};
use live::status::LinkStatus;
use live::{Clock, Control, DeviceNode, HostIo, Poller, Waiting};
use pcie::dma_test::{self, DmaTest, driver};
use pcie::enumerate::{self, Node};
use pcie::{Bus, Ram, root};
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::aggregate::Policy;
use switch::tunnel::Settings;
use wire::frame::Role;

/// Address and size of host memory.
pub const RAM: u64 = 0x1_0000_0000;
const RAM_SIZE: usize = 2 << 20;

/// The kind of link between two nodes.
#[derive(Clone, Copy)]
pub struct Link {
    pub max_payload: u16,
    pub ecrc: bool,
    pub aggregation: Policy,
    /// Settings for raw Ethernet.
    pub raw: RawSettings,
    /// The time that the clocks of both nodes show at the start.
    pub uptime: wire::Instant,
}

impl Link {
    pub fn new(max_payload: u16) -> Self {
        let (aggregation, raw) = (Policy::Adaptive, RawSettings::default());
        Self { max_payload, ecrc: false, aggregation, raw, uptime: wire::Instant::ZERO }
    }

    fn tunnel(self, role: Role, number: u64) -> Settings {
        let Self { max_payload, aggregation, .. } = self;
        Settings { max_payload, aggregation, ..Settings::new(role, number) }
    }
}

/// Listens. The previous listener has closed its descriptors, but a child process that another
/// test starts has copies of them until it executes its program.
fn bind(at: &Address, raw: RawSettings) -> CarrierListener {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        match CarrierListener::bind(at, raw) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                std::thread::yield_now();
            }
            bound => return bound.unwrap(),
        }
    }
}

/// A device node in a thread, until it is dropped or stopped.
pub struct Far {
    pub address: Address,
    /// The node stops when this is closed.
    waker: Option<UnixStream>,
    thread: Option<JoinHandle<LinkStatus>>,
}

impl Far {
    /// On loopback.
    pub fn start(link: Link) -> Self {
        Self::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), link)
    }

    /// Listens in the network namespace of the caller.
    pub fn listen(at: Address, link: Link) -> Self {
        let (wake, waker) = UnixStream::pair().unwrap();
        let (announce, announced) = channel();
        let thread = std::thread::spawn(move || {
            let listener = bind(&at, link.raw);
            let max_payload = link.max_payload.into();
            let function = DmaTest::new(dma_test::Settings { max_payload, ..Default::default() });
            let poller = Poller::new(Waiting::Block).unwrap();
            let settings = link.tunnel(Role::Device, 7);
            let clock = Clock::start_at(link.uptime);
            let mut node = DeviceNode::new(clock, poller, listener, settings, function).unwrap();
            announce.send(node.address().unwrap()).unwrap();
            let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            let control = || match recv(&wake, &mut [0; 1][..], peek) {
                Ok(_) => Control::Stop,
                Err(_) => Control::Serve,
            };
            node.run(wake.as_fd(), control, |_| {}).unwrap();
            node.status().links.remove(0)
        });
        let address = announced.recv().unwrap();
        Self { address, waker: Some(waker), thread: Some(thread) }
    }

    /// Stops the node; returns the state of its link.
    pub fn stop(&mut self) -> Option<LinkStatus> {
        self.waker = None;
        self.thread.take().map(|thread| thread.join().unwrap())
    }
}

/// Whether neither the link nor the function behind it counted an error.
pub fn is_clean(link: &LinkStatus) -> bool {
    link.errors.values().chain(link.endpoint_errors.values()).all(|count| *count == 0)
}

impl Drop for Far {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// A host with a switch and a link to every far node.
pub struct Near {
    pub machine: HostIo<Switch>,
    pub memory: RamMemory,
    pub clock: Clock,
    pub bus: Bus,
    pub nodes: Vec<Node>,
}

impl Near {
    pub fn start(link: Link, far: &[&Far]) -> Self {
        let peers: Vec<Address> = far.iter().map(|far| far.address.clone()).collect();
        Self::connect(link, &peers)
    }

    /// Connects from the network namespace of the caller.
    pub fn connect(link: Link, peers: &[Address]) -> Self {
        Self::connect_over(link, peers, link.raw)
    }

    /// As [`connect`](Self::connect), over connections with these settings.
    pub fn connect_over(link: Link, peers: &[Address], over: impl Into<LinkSettings>) -> Self {
        let (links, count) = (Links::new(peers).over(over), peers.len());
        let (max_payload, ecrc) = (usize::from(link.max_payload), link.ecrc);
        let tunnel = link.tunnel(Role::Host, 8);
        let upstream =
            switch::upstream::Settings { ports: count as u8, max_payload, p2p: false, tunnel };
        let settings = root::Settings { max_payload, ecrc, ..root::Settings::default() };
        let poller = Poller::new(Waiting::Block).unwrap();
        let switch = Switch::new(upstream, links);
        let clock = Clock::start_at(link.uptime);
        let mut machine = HostIo::new(clock, poller, settings, switch).unwrap();
        let mut memory = RamMemory::new(Rc::new(RefCell::new(Ram::new(RAM, RAM_SIZE))));
        let bus = machine.new_bus();
        while !(0..count).all(|link| machine.attached().upstream().tunnel(link).is_up()) {
            let (moved, timer) = machine.pump(&mut memory).unwrap();
            machine.wait(moved, timer).unwrap();
        }
        let settings = enumerate::Settings { ecrc, ..enumerate::Settings::default() };
        let found = enumerate::enumerate(bus.clone(), settings);
        let hierarchy = machine.run(&mut memory, &bus, found).unwrap().unwrap();
        let nodes = hierarchy.endpoints().into_iter().cloned().collect();
        Self { machine, memory, clock, bus, nodes }
    }

    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        self.machine.run(&mut self.memory, &self.bus, software).unwrap()
    }

    /// Carries out nothing but the node's own work until its clock shows `at`.
    pub fn idle_until(&mut self, at: wire::Instant) {
        while self.clock.now() < at {
            let (moved, timer) = self.machine.pump(&mut self.memory).unwrap();
            self.machine.wait(moved, Some(timer.map_or(at, |timer| timer.min(at)))).unwrap();
        }
    }

    /// Lets a function master the bus and signal `data`.
    pub fn enable(&mut self, number: usize, data: u32) {
        let (bus, node) = (self.bus.clone(), self.nodes[number].clone());
        self.run(async move {
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            enumerate::write_msix_entry(&bus, &node, 0, data, false);
            enumerate::set_msix(&bus, &node, true).await;
        });
    }

    pub fn bar(&self, number: usize) -> u64 {
        self.nodes[number].bar(0).unwrap().address
    }

    pub fn copy(
        &mut self,
        number: usize,
        from: u64,
        to: u64,
        length: u32,
    ) -> Result<(), Option<u8>> {
        let (bus, bar) = (self.bus.clone(), self.bar(number));
        self.run(async move { driver::copy(&bus, bar, from, to, length).await })
            .map_err(|failed| failed.0)
    }

    pub fn memory(&self, offset: usize, length: usize) -> Vec<u8> {
        self.memory.ram.borrow_mut().get(RAM + offset as u64, length).unwrap().to_vec()
    }

    pub fn fill(&mut self, offset: usize, data: &[u8]) {
        let mut ram = self.memory.ram.borrow_mut();
        ram.get_mut(RAM + offset as u64, data.len()).unwrap().copy_from_slice(data);
    }
}

pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 31 + i / 251 + seed) % 255) as u8).collect()
}
