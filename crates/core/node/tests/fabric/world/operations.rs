//! Fuzzing of a fabric with operations made from bytes: whatever software, devices and networks do,
//! no panic, time advances, and every host request is answered.

use super::build::Plan;
use super::link::Shape;
use super::{Fabric, Parent, RAM};
use bytes::Bytes;
use pcie::dma_test::driver;
use pcie::enumerate::Hierarchy;
use pcie::software::Task;
use testkit::Source;
use wire::tlp::Tlp;
use wire::{Bdf, Duration};

struct Run<'a> {
    source: Source<'a>,
    fabric: Fabric,
    hierarchy: Hierarchy,
    tasks: Vec<Task<()>>,
}

/// The most operations of one run.
const MOST: usize = 100;

/// Decodes `bytes` as operations and carries them out.
///
/// # Panics
/// If the fabric violates a requirement.
pub fn run_operations(bytes: &[u8]) {
    let mut source = Source(bytes);
    let kind = source.byte();
    let plan = Plan {
        seed: source.u32().into(),
        shape: if kind & 1 != 0 { Shape::ROUGH } else { Shape::PLAIN },
        p2p: kind & 2 != 0,
        ..Plan::default()
    };
    let mut fabric = match kind >> 4 & 3 {
        0 => plan.cascade(),
        1 => plan.with_devices(2),
        _ => plan.with_script(2),
    };
    let hierarchy = fabric.enumerate();
    for node in hierarchy.endpoints() {
        fabric.enable(node, 1);
    }
    fabric.slow_memory = kind & 4 != 0;
    let mut run = Run { source, fabric, hierarchy, tasks: Vec::new() };
    for _ in 0..MOST {
        if run.source.0.is_empty() {
            break;
        }
        run.operation();
        run.fabric.settle();
        let now = run.fabric.now;
        run.tasks.retain_mut(|task| task.poll(now).is_none());
    }
    run.finish();
}

impl Run<'_> {
    fn operation(&mut self) {
        match self.source.below(14) {
            0 => self.config_read(),
            1 => self.config_write(),
            2 => self.memory_read(),
            3 => {
                let (address, value) = (self.address(), self.source.u32());
                self.fabric.bus.write(address & !3, 4, value.into());
            }
            4 => {
                let (bar, from, to) = (self.bar(), self.address(), self.address());
                let length = self.source.u32() % 9000;
                driver::start_copy(&self.fabric.bus, bar, from, to, length);
            }
            5 => {
                let link = self.link();
                self.fabric.disconnect(link);
            }
            6 => {
                let link = self.link();
                self.fabric.connect(link);
            }
            7 => self.stall(),
            8 => {
                let (link, at) = (self.link(), self.source.u32() as usize);
                self.fabric.links[link].up.spoil = Some(at);
            }
            9 => {
                let span = Duration::from_us(self.source.u32().into());
                self.fabric.pass(Duration::from_ps(span.as_ps() % 200_000_000_000));
            }
            10 => self.reset(),
            11 => self.scripted(),
            12 => self.fabric.shape(if self.source.byte() & 1 != 0 {
                Shape::ROUGH
            } else {
                Shape::PLAIN
            }),
            _ => {
                let span = self.source.byte();
                self.fabric.pass(Duration::from_us(span.into()));
            }
        }
    }

    fn spawn(&mut self, software: impl Future<Output = ()> + 'static) {
        let mut task = Task::new(&self.fabric.bus.clone(), software);
        if task.poll(self.fabric.now).is_none() {
            self.tasks.push(task);
        }
    }

    fn function(&mut self) -> Bdf {
        let which = self.source.byte();
        let nodes = self.hierarchy.nodes();
        match which {
            0xf0.. => Bdf::from_bits(u16::from(which & 0xf) << 8 | u16::from(which & 7) << 3),
            _ => nodes[usize::from(which) % nodes.len()].bdf,
        }
    }

    fn config_read(&mut self) {
        let (bus, target) = (self.fabric.bus.clone(), self.function());
        let offset = self.source.u32() as u16 & 0xffc;
        self.spawn(async move {
            bus.config_read(target, offset, 4).await;
        });
    }

    fn config_write(&mut self) {
        let (bus, target) = (self.fabric.bus.clone(), self.function());
        let offset = u16::from(self.source.byte()) << 2 & 0x1fc;
        let value = self.source.u32();
        self.spawn(async move { bus.config_write(target, offset, 4, value).await });
    }

    fn memory_read(&mut self) {
        let (bus, address) = (self.fabric.bus.clone(), self.address());
        self.spawn(async move {
            bus.read(address & !3, 4).await;
        });
    }

    fn bar(&mut self) -> u64 {
        let endpoints = self.hierarchy.endpoints();
        let index = usize::from(self.source.0.first().copied().unwrap_or(0)) % endpoints.len();
        let bar = endpoints[index].bar(0).map_or(0xe000_0000, |bar| bar.address);
        self.source.byte();
        bar
    }

    /// In a BAR, in host memory, or outside both.
    fn address(&mut self) -> u64 {
        let kind = self.source.byte();
        let offset = u64::from(self.source.u32());
        match kind & 3 {
            0 | 1 => self.bar() + offset % pcie::dma_test::BAR0_SIZE,
            2 => RAM + offset % (1 << 20),
            _ => offset << (kind >> 6),
        }
    }

    fn link(&mut self) -> usize {
        self.source.below(self.fabric.links.len())
    }

    fn stall(&mut self) {
        let (link, how) = (self.link(), self.source.byte());
        self.fabric.links[link].up.stalled = how & 1 != 0;
        self.fabric.links[link].down.stalled = how & 2 != 0;
    }

    /// Secondary Bus Reset, set or cleared, of any port.
    fn reset(&mut self) {
        let (bus, target) = (self.fabric.bus.clone(), self.function());
        let value = u32::from(self.source.byte() & 1) << 6;
        self.spawn(async move { bus.config_write(target, 0x3e, 2, value).await });
    }

    /// Sends a packet from a script.
    fn scripted(&mut self) {
        let length = usize::from(self.source.byte());
        let mut bytes = Bytes::from(self.source.take(length));
        if self.fabric.links[0].parent == Parent::Top
            && let super::device::Device::Script(script) = self.fabric.nodes[0].function_mut()
            && let Ok(tlp) = Tlp::decode(&mut bytes)
        {
            script.send.push_back(tlp);
        }
    }

    /// Restores the networks; every waiting request must be answered.
    fn finish(&mut self) {
        for link in &mut self.fabric.links {
            (link.up.stalled, link.down.stalled) = (false, false);
        }
        for _ in 0..3 {
            self.fabric.pass(Duration::from_ms(1_000));
            let now = self.fabric.now;
            self.tasks.retain_mut(|task| task.poll(now).is_none());
        }
        assert!(self.tasks.is_empty(), "{} requests of the host have no answer", self.tasks.len());
    }
}
