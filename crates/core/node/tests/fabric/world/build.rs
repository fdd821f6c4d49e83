//! Builds a fabric.

use super::device::{Device, Script};
use super::link::{Link, Shape};
use super::{Fabric, Parent, RAM, RAM_SIZE};
use node::host::Buses;
use node::{DeviceNode, HostNode, SwitchNode};
use pcie::dma_test::{self, DmaTest};
use pcie::{Ram, root};
use stats::random::Random;
use switch::congestion::Rate;
use switch::{tunnel, upstream};
use wire::Instant;
use wire::frame::Role;

/// Settings of a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub shape: Shape,
    pub p2p: bool,
    /// Rate limit of each switch's links together.
    pub limit: Option<Rate>,
    pub root: root::Settings,
    /// Largest payload of every switch.
    pub max_payload: usize,
    /// Changes the settings of both ends of every link.
    pub tunnel: fn(&mut tunnel::Settings),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            shape: Shape::PLAIN,
            p2p: false,
            limit: None,
            root: root::Settings { completion_size: 256, ..root::Settings::default() },
            max_payload: 4096,
            tunnel: |_| {},
        }
    }
}

impl Plan {
    fn tunnel(&self, role: Role, instance: u64) -> tunnel::Settings {
        let mut settings = tunnel::Settings::new(role, instance);
        (self.tunnel)(&mut settings);
        settings
    }

    /// A switch with `ports` downstream ports.
    pub fn switch(&self, ports: u8) -> SwitchNode {
        let tunnel = self.tunnel(Role::Host, self.seed);
        let (max_payload, p2p) = (self.max_payload, self.p2p);
        SwitchNode::new(upstream::Settings { ports, max_payload, p2p, tunnel }, self.limit)
    }

    /// A fabric whose top switch has `ports` ports and nothing below them.
    pub fn build(&self, ports: u8) -> Fabric {
        let mut buses = Buses::default();
        let [bus, other] = [buses.new_bus(), buses.new_bus()];
        Fabric {
            now: Instant::ZERO,
            host: HostNode::new(self.root, self.switch(ports)),
            nodes: Vec::new(),
            links: Vec::new(),
            buses,
            bus,
            other,
            seats: Vec::new(),
            ram: Ram::new(RAM, RAM_SIZE),
            rng: Random::new(self.seed),
            happened: Vec::new(),
            log: Vec::new(),
            slow_memory: false,
            stuck_memory: false,
            unanswered: None,
            reads: Vec::new(),
            paths: 0,
            timers: Vec::new(),
        }
    }

    /// Adds a node below a port. Returns the number of the node and its link.
    pub fn add(&self, fabric: &mut Fabric, parent: Parent, port: usize, device: Device) -> usize {
        let number = fabric.nodes.len();
        let settings = self.tunnel(Role::Device, 10 + number as u64);
        fabric.nodes.push(DeviceNode::new(settings, device).in_group(Some(0)));
        fabric.links.push(Link::new(parent, port, self.shape));
        number
    }

    /// A switch with these devices below its ports; nothing has been polled.
    pub fn unpolled(&self, devices: impl ExactSizeIterator<Item = Device>) -> Fabric {
        let mut fabric = self.build(devices.len() as u8);
        for (port, device) in devices.enumerate() {
            self.add(&mut fabric, Parent::Top, port, device);
        }
        fabric
    }

    /// As `unpolled`, connected.
    pub fn with(&self, devices: impl IntoIterator<Item = Device>) -> Fabric {
        let devices: Vec<Device> = devices.into_iter().collect();
        self.unpolled(devices.into_iter()).connected()
    }

    /// A switch with a DMA test function below each of its ports, connected.
    pub fn with_devices(&self, ports: u8) -> Fabric {
        self.with((0..ports).map(dma))
    }

    /// A switch with a scripted function below its first port and DMA test
    /// functions below the others, connected.
    pub fn with_script(&self, ports: u8) -> Fabric {
        self.with([script()].into_iter().chain((1..ports).map(dma)))
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
        fabric.connected()
    }
}

/// A DMA test function with default settings.
pub fn dma(serial: u8) -> Device {
    let settings = dma_test::Settings { serial: serial.into(), ..dma_test::Settings::default() };
    dma_with(settings)
}

pub fn dma_with(settings: dma_test::Settings) -> Device {
    Device::Dma(Box::new(DmaTest::new(settings)))
}

/// A scripted function.
pub fn script() -> Device {
    let behind = DmaTest::new(dma_test::Settings::default());
    Device::Script(Box::new(Script::new(behind)))
}

impl Fabric {
    /// Lets time pass until links are up.
    pub fn connected(mut self) -> Self {
        self.pass(wire::Duration::from_ms(1));
        self
    }
}
