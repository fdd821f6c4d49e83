//! Putting a fabric together.

use super::device::{Device, Script};
use super::host::Host;
use super::link::{Link, Shape};
use super::rng::Rng;
use super::{Fabric, Parent, RAM, RAM_SIZE};
use pcie::dma_test::{self, DmaTest};
use pcie::root::{self, RootComplex};
use pcie::{Bus, Ram};
use switch::Downstream;
use switch::tunnel;
use switch::upstream::{self, Upstream};
use wire::Instant;
use wire::frame::Role;

/// What a test may want otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub shape: Shape,
    pub p2p: bool,
    pub root: root::Settings,
    /// Of every switch.
    pub max_payload: usize,
    /// Of both ends of every link.
    pub tunnel: fn(&mut tunnel::Settings),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            shape: Shape::PLAIN,
            p2p: false,
            root: root::Settings { completion_size: 256, ..root::Settings::default() },
            max_payload: 4096,
            tunnel: |_| {},
        }
    }
}

impl Plan {
    fn tunnel(&self, role: Role) -> tunnel::Settings {
        let mut settings = tunnel::Settings::new(role, self.seed);
        (self.tunnel)(&mut settings);
        settings
    }

    /// A switch with `ports` downstream ports.
    pub fn switch(&self, ports: u8) -> Upstream {
        let tunnel = self.tunnel(Role::Host);
        let (max_payload, p2p) = (self.max_payload, self.p2p);
        Upstream::new(upstream::Settings { ports, max_payload, p2p, tunnel })
    }

    /// A fabric whose top switch has `ports` ports and nothing below them.
    pub fn build(&self, ports: u8) -> Fabric {
        Fabric {
            now: Instant::ZERO,
            root: RootComplex::new(self.root),
            top: self.switch(ports),
            nodes: Vec::new(),
            links: Vec::new(),
            bus: Bus::new(),
            other: Bus::new(),
            ram: Ram::new(RAM, RAM_SIZE),
            rng: Rng(self.seed),
            happened: Vec::new(),
            slow_memory: false,
            stuck_memory: false,
            unanswered: None,
            host: Host::default(),
            timers: Vec::new(),
        }
    }

    /// Adds a node below a port, not connected yet; its number.
    pub fn add(&self, fabric: &mut Fabric, parent: Parent, port: usize, device: Device) -> usize {
        fabric.nodes.push(Downstream::new(self.tunnel(Role::Device), device));
        let mut link = Link::new(parent, port);
        link.down.shape = self.shape;
        link.up.shape = self.shape;
        fabric.links.push(link);
        fabric.links.len() - 1
    }

    /// A switch with a DMA test function below each of its ports, connected.
    pub fn with_devices(&self, ports: u8) -> Fabric {
        let mut fabric = self.build(ports);
        for port in 0..usize::from(ports) {
            self.add(&mut fabric, Parent::Top, port, dma(port as u64));
        }
        fabric.connect_all();
        fabric
    }

    /// A switch with a scripted function below its first port and DMA test
    /// functions below the others, connected.
    pub fn with_script(&self, ports: u8) -> Fabric {
        let mut fabric = self.build(ports);
        let script = Script::new(DmaTest::new(dma_test::Settings::default()));
        self.add(&mut fabric, Parent::Top, 0, Device::Script(Box::new(script)));
        for port in 1..usize::from(ports) {
            self.add(&mut fabric, Parent::Top, port, dma(port as u64));
        }
        fabric.connect_all();
        fabric
    }

    /// Two switches in a row: the top one with a device below port 0 and the
    /// second switch below port 1, which has devices below its ports 0 and 1.
    /// Nodes: 0 device, 1 switch, 2 and 3 devices.
    pub fn cascade(&self) -> Fabric {
        let mut fabric = self.build(2);
        self.add(&mut fabric, Parent::Top, 0, dma(0));
        let second = Device::Switch(Box::new(self.switch(2)));
        let second = self.add(&mut fabric, Parent::Top, 1, second);
        self.add(&mut fabric, Parent::Node(second), 0, dma(2));
        self.add(&mut fabric, Parent::Node(second), 1, dma(3));
        fabric.connect_all();
        fabric
    }
}

/// A DMA test function with default settings.
pub fn dma(serial: u64) -> Device {
    let settings = dma_test::Settings { serial, ..dma_test::Settings::default() };
    Device::Dma(Box::new(DmaTest::new(settings)))
}

impl Fabric {
    pub fn connect_all(&mut self) {
        (0..self.links.len()).for_each(|link| self.connect(link));
        self.pass(wire::Duration::from_ms(1));
    }
}
