//! Random operations against a model: no loss, no duplicate, every byte correct, and the same run
//! for the same seed.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, Shape, bar};
use pcie::dma_test::{MAGIC, RAM_SIZE, driver, register};
use pcie::enumerate::{Hierarchy, Node};
use proptest::prelude::*;
use stats::random::Random;
use std::hash::{DefaultHasher, Hash, Hasher};
use wire::Duration;

/// Host memory that the test uses: sources in the lower half, targets in the upper half.
const HALF: usize = 64 << 10;

/// The expected state of a device.
struct Model {
    /// The node of the device, and the links on the way to the node.
    node: usize,
    links: &'static [usize],
    place: Node,
    ram: Vec<u8>,
    alive: bool,
    /// Finished jobs, successful or not, each with one interrupt.
    signals: usize,
}

struct Run {
    fabric: Fabric,
    rng: Random,
    hierarchy: Hierarchy,
    devices: Vec<Model>,
    memory: Vec<u8>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Random::new(seed);
        let shape = if rng.below(2) == 0 { Shape::PLAIN } else { Shape::ROUGH };
        let mut fabric = Plan { seed, shape, p2p: true, ..Plan::default() }.cascade();
        let hierarchy = fabric.enumerate();
        let memory = rng.bytes(2 * HALF);
        fabric.memory(0, 2 * HALF).copy_from_slice(&memory);
        let places = hierarchy.endpoints();
        let ways: [(usize, &[usize]); 3] = [(0, &[0]), (2, &[1, 2]), (3, &[1, 3])];
        let device = |((node, links), place): ((usize, &'static [usize]), &&Node)| Model {
            node,
            links,
            place: (*place).clone(),
            ram: vec![0; RAM_SIZE],
            alive: true,
            signals: 0,
        };
        let devices = ways.into_iter().zip(&places).map(device).collect();
        let mut run = Self { fabric, rng, hierarchy, devices, memory };
        run.enable_all();
        run
    }

    /// Enables bus mastering and interrupts of every endpoint present.
    fn enable_all(&mut self) {
        for index in 0..self.devices.len() {
            if self.devices[index].alive {
                self.fabric.enable(&self.devices[index].place.clone(), index as u32);
            }
        }
    }

    fn bar(&self, device: usize) -> u64 {
        bar(&self.devices[device].place)
    }

    fn step(&mut self) {
        let device = self.rng.below(3) as usize;
        match self.rng.below(16) {
            0..=2 => self.write(device),
            3 | 4 => self.read(device),
            5..=7 => self.copy(device),
            8 => self.peer(device),
            9 => self.all_at_once(),
            10 => self.function_reset(device),
            11 => self.bus_reset(),
            12 => self.disconnect(),
            13 => self.connect(),
            14 => self.interrupted(device),
            _ => self.weather(),
        }
    }

    fn write(&mut self, device: usize) {
        let size = 1 << self.rng.below(4);
        let at = (self.rng.below(RAM_SIZE as u64 / size) * size) as usize;
        let value = self.rng.bits();
        self.fabric.bus.write(self.bar(device) + register::RAM + at as u64, size as u8, value);
        if self.devices[device].alive {
            let bytes = &value.to_le_bytes()[..size as usize];
            self.devices[device].ram[at..at + size as usize].copy_from_slice(bytes);
        }
    }

    fn read(&mut self, device: usize) {
        let at = self.rng.below(RAM_SIZE as u64 / 8) * 8;
        let value = self.fabric.read(self.bar(device) + register::RAM + at, 8);
        let model = &self.devices[device];
        let bytes = &model.ram[at as usize..at as usize + 8];
        let wanted = if model.alive { u64::from_le_bytes(bytes.try_into().unwrap()) } else { !0 };
        assert_eq!(value, wanted, "device {device} at {at:#x}");
        let id = self.fabric.config(model.place.bdf, 0, 4);
        assert_eq!(id != !0, model.alive, "device {device}");
    }

    /// A range in host memory: from, to and length.
    fn range(&mut self) -> (usize, usize, usize) {
        let most = [90, 20_000][self.rng.below(2) as usize];
        let length = self.rng.within(1..=most) as usize;
        let from = self.rng.below((HALF - length) as u64) as usize;
        let to = HALF + self.rng.below((HALF - length) as u64) as usize;
        (from, to, length)
    }

    fn copy(&mut self, device: usize) {
        let (from, to, length) = self.range();
        let (bar, base) = (self.bar(device), RAM);
        let ended = self.fabric.copy(bar, base + from as u64, base + to as u64, length as u32);
        if self.devices[device].alive {
            assert_eq!(ended, Ok(()));
            self.memory.copy_within(from..from + length, to);
            self.devices[device].signals += 1;
        } else {
            assert_eq!(ended, Err(None));
        }
    }

    /// Between a device's RAM and host memory, copied by another device.
    fn peer(&mut self, device: usize) {
        let other = (device + 1 + self.rng.below(2) as usize) % 3;
        if !self.devices[device].alive || !self.devices[other].alive {
            return;
        }
        let length = self.rng.within(1..=4000) as usize;
        let at = self.rng.below((RAM_SIZE - length) as u64) as usize;
        let place = self.rng.below((HALF - length) as u64) as usize;
        let there = self.bar(other) + register::RAM + at as u64;
        let (bar, here) = (self.bar(device), RAM + place as u64);
        assert_eq!(self.fabric.copy(bar, here, there, length as u32), Ok(()));
        let bytes = self.memory[place..place + length].to_vec();
        self.devices[other].ram[at..at + length].copy_from_slice(&bytes);
        let target = RAM + (HALF + place) as u64;
        assert_eq!(self.fabric.copy(bar, there, target, length as u32), Ok(()));
        self.memory[HALF + place..HALF + place + length].copy_from_slice(&bytes);
        self.devices[device].signals += 2;
    }

    /// Every device copies while the host reads and writes registers.
    fn all_at_once(&mut self) {
        for device in 0..3 {
            let third = HALF / 3;
            let length = self.rng.within(1..=third as u64) as usize;
            let from = self.rng.below((HALF - length) as u64) as usize;
            let to = HALF + device * third;
            let bar = self.bar(device);
            let (source, target) = (RAM + from as u64, RAM + to as u64);
            driver::start_copy(&self.fabric.bus, bar, source, target, length as u32);
            if self.devices[device].alive {
                self.memory.copy_within(from..from + length, to);
                self.devices[device].signals += 1;
            }
        }
        for device in [0, 1, 2, 1] {
            self.write(device);
            self.read(device);
        }
        self.wait();
    }

    fn wait(&mut self) {
        for device in 0..3 {
            let (bus, bar) = (self.fabric.bus.clone(), self.bar(device));
            let ended = self.fabric.run(async move { driver::wait(&bus, bar).await });
            assert_eq!(ended.is_ok(), self.devices[device].alive);
        }
    }

    /// A copy interrupted by a reset of its bus: every byte of the target is the old or the new
    /// one, and all others are unchanged.
    fn interrupted(&mut self, device: usize) {
        if !self.devices[device].alive {
            return;
        }
        let (from, to, length) = self.range();
        let (source, target) = (RAM + from as u64, RAM + to as u64);
        driver::start_copy(&self.fabric.bus, self.bar(device), source, target, length as u32);
        let span = self.rng.below(300);
        self.fabric.pass(Duration::from_us(span));
        let signals = self.signals(device);
        self.devices[device].signals = signals;
        self.reset_below(self.port_of(device));
        let now = self.fabric.memory(to, length).to_vec();
        let old = &self.memory[to..to + length];
        let new = &self.memory[from..from + length];
        let sound = now.iter().zip(old.iter().zip(new)).all(|(n, (a, b))| n == a || n == b);
        assert!(sound, "bytes that nobody wrote");
        self.memory[to..to + length].copy_from_slice(&now);
        self.devices[device].signals = self.signals(device);
        assert!(self.devices[device].signals <= signals + 1);
    }

    /// The downstream port above a device.
    fn port_of(&self, device: usize) -> Node {
        let bus = self.devices[device].place.bdf.bus();
        let nodes = self.hierarchy.nodes();
        let above = |node: &&&Node| node.port().is_some_and(|port| port.secondary == bus);
        (*nodes.iter().find(above).unwrap()).clone()
    }

    fn signals(&self, device: usize) -> usize {
        let bdf = self.devices[device].place.bdf;
        self.fabric.count(|h| *h == Happened::Interrupt(bdf, device as u32))
    }

    fn function_reset(&mut self, device: usize) {
        if !self.devices[device].alive {
            return;
        }
        let place = self.devices[device].place.clone();
        let control = place.pcie.unwrap() + 8;
        let before = self.fabric.config(place.bdf, control, 2);
        self.fabric.set_config(place.bdf, control, 2, before | 1 << 15);
        self.program(device);
    }

    /// Programs a device again that was reset.
    fn program(&mut self, device: usize) {
        let place = self.devices[device].place.clone();
        self.devices[device].ram.fill(0);
        self.fabric.program(&place);
        self.fabric.enable(&place, device as u32);
    }

    fn bus_reset(&mut self) {
        let ports: Vec<Node> = self.hierarchy.nodes().into_iter().cloned().collect();
        let ports: Vec<_> = ports.into_iter().filter(|node| node.port().is_some()).collect();
        let port = ports[self.rng.below(ports.len() as u64) as usize].clone();
        self.reset_below(port);
    }

    /// Secondary Bus Reset; everything below is then enumerated again.
    fn reset_below(&mut self, port: Node) {
        if self.fabric.config(port.bdf, 0, 4) == !0 {
            return;
        }
        self.fabric.set_config(port.bdf, 0x3e, 2, 1 << 6);
        let span = self.rng.below(500);
        self.fabric.pass(Duration::from_us(span));
        self.fabric.set_config(port.bdf, 0x3e, 2, 0);
        let buses = port.port().unwrap();
        for model in &mut self.devices {
            if (buses.secondary..=buses.subordinate).contains(&model.place.bdf.bus()) {
                model.ram.fill(0);
            }
        }
        self.look_again();
    }

    /// Enumerates and programs the devices present.
    fn look_again(&mut self) {
        self.fabric.pass(Duration::from_ms(3));
        self.hierarchy = self.fabric.enumerate();
        let found: Vec<Node> = self.hierarchy.endpoints().into_iter().cloned().collect();
        for model in &mut self.devices {
            let serial = Some(model.node as u64);
            let place = found.iter().find(|node| node.device().unwrap().serial == serial);
            assert_eq!(place.is_some(), model.alive, "node {}", model.node);
            if let Some(place) = place {
                model.place = place.clone();
            }
        }
        // Earlier interrupts belong to other places.
        self.fabric.happened.retain(|h| !matches!(h, Happened::Interrupt(..)));
        self.devices.iter_mut().for_each(|model| model.signals = 0);
        self.enable_all();
    }

    fn disconnect(&mut self) {
        let link = self.rng.below(4) as usize;
        self.fabric.disconnect(link);
        self.fabric.pass(Duration::from_us(1));
        for model in self.devices.iter_mut().filter(|model| model.links.contains(&link)) {
            model.alive = false;
            model.ram.fill(0);
        }
    }

    fn connect(&mut self) {
        (0..4).for_each(|link| self.fabric.connect(link));
        self.devices.iter_mut().for_each(|model| model.alive = true);
        self.look_again();
    }

    /// The network changes; a link stalls for less than the loss limit.
    fn weather(&mut self) {
        let shape = if self.rng.below(2) == 0 { Shape::PLAIN } else { Shape::ROUGH };
        self.fabric.shape(shape);
        self.fabric.slow_memory = self.rng.below(2) == 0;
        let (link, span) = (self.rng.below(4) as usize, self.rng.below(500));
        let pipes = &mut self.fabric.links[link];
        (pipes.up.stalled, pipes.down.stalled) = (span & 1 != 0, true);
        self.fabric.pass(Duration::from_ms(span));
        let pipes = &mut self.fabric.links[link];
        (pipes.up.stalled, pipes.down.stalled) = (false, false);
        // Both ends receive bytes before the next stall.
        self.fabric.pass(Duration::from_ms(120));
    }

    fn check(&mut self) {
        self.fabric.pass(Duration::from_ms(5));
        let memory = self.fabric.memory(0, 2 * HALF).to_vec();
        let differs = memory.iter().zip(&self.memory).position(|(a, b)| a != b);
        assert_eq!(differs, None, "host memory");
        for device in 0..3 {
            let model = &self.devices[device];
            if model.alive {
                assert!(self.fabric.dma(model.node).ram() == model.ram, "RAM of device {device}");
                assert_eq!(self.signals(device), model.signals, "signals of device {device}");
            }
        }
        assert_eq!(self.fabric.root().errors().malformed, 0);
    }

    fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        format!("{:?}", self.fabric.happened).hash(&mut digest);
        self.fabric.now.hash(&mut digest);
        self.memory.hash(&mut digest);
        format!("{:?}", self.fabric.root().errors()).hash(&mut digest);
        digest.finish()
    }
}

/// A whole run. Returns its digest.
fn run(seed: u64, steps: usize) -> u64 {
    let mut run = Run::new(seed);
    assert_eq!(run.fabric.read(run.bar(0), 4), u64::from(MAGIC));
    for step in 0..steps {
        run.step();
        if step % 8 == 7 {
            run.check();
        }
    }
    run.check();
    run.digest()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn data_is_correct_and_same_seed_repeats_run(seed in any::<u64>()) {
        prop_assert_eq!(run(seed, 60), run(seed, 60));
    }
}
