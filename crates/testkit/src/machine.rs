//! A real host, switch, tunnel and drive in memory, in virtual time, with taps at the root port, in
//! the tunnel's connection and at the function.

use crate::nvme::Media;
use ::nvme::initiator::{self, Driver, Io, Op};
use ::nvme::{Config, NamespaceConfig, Subsystem, block};
use bytes::{Bytes, BytesMut};
use node::HostNode;
use node::host::{Input as HostInput, Output as FromHost};
use node::push::{Completions, HostMemory, Mode, Settings as PushSettings};
use pcie::enumerate::{self, Hierarchy};
use pcie::root::{self, HostOutput};
use pcie::software::{Request, Task};
use pcie::{Bus, Function, Input, Output, Ports, Ram, Ready};
use stats::random::Random;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use switch::tunnel::{self, Settings};
use switch::upstream::{self, LinkOutput, Upstream};
use switch::{Downstream, downstream};
use wire::frame::Role;
use wire::tlp::Tlp;
use wire::{Bdf, Duration, Instant};

const RAM: u64 = 0x1_0000_0000;

/// A function, and a record of the TLPs that pass its port; `true` is upstream.
struct Tap<F> {
    inner: F,
    seen: Vec<(bool, Tlp)>,
}

impl<F> Tap<F> {
    fn new(inner: F) -> Self {
        Self { inner, seen: Vec::new() }
    }
}

impl<F: Function> Function for Tap<F> {
    fn handle(&mut self, now: Instant, input: Input) {
        if let Input::Tlp(tlp) = &input {
            self.seen.extend(tlp.clone().singles().map(|tlp| (false, tlp)));
        }
        self.inner.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.inner.poll(now, ready.with_runs(false));
        if let Output::Tlp(tlp) = &output {
            self.seen.push((true, tlp.clone()));
        }
        output
    }

    fn ready(&self) -> Ready {
        self.inner.ready().with_runs(false)
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.inner.ports()
    }
}

/// A drive with one controller.
struct Drive(Subsystem);

impl Function for Drive {
    fn handle(&mut self, now: Instant, input: Input) {
        self.0.port(1).handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.0.port(1).poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.0.controller(1).ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

struct Memory(Rc<RefCell<Ram>>);

impl HostMemory for Memory {
    fn peek(&mut self, _: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        let mut ram = self.0.borrow_mut();
        let bytes = ram.get(address, length);
        out.extend_from_slice(bytes.unwrap_or_default());
        bytes.is_some()
    }
}

/// A host, a switch, a tunnel and a drive. `D` is the test's type of a direction, down or up.
pub struct Machine<D = ()> {
    /// Virtual time.
    pub now: Instant,
    directions: [D; 2],
    host: HostNode<Tap<Upstream>>,
    node: Downstream<Tap<Drive>, Completions>,
    media: Media,
    /// Completions of block requests that wait. The machine returns them in random order.
    blocks: Vec<(u64, block::Completion)>,
    /// The bus of host software.
    pub bus: Bus,
    /// Host memory.
    pub ram: Rc<RefCell<Ram>>,
    /// Number of the drive's memory reads that reached the host.
    pub reads: usize,
    /// Function of the drive.
    pub drive: Bdf,
    random: Random,
    /// TLPs that passed the root port.
    pub port: Vec<(Instant, D, Tlp)>,
    /// TLPs that passed the port of the function.
    pub function: Vec<(Instant, D, Tlp)>,
    /// Bytes that passed the connection from the host.
    pub down: Vec<u8>,
    /// Bytes that passed the connection to the host.
    pub up: Vec<u8>,
    /// The ranges of `down` and `up` in the order in which they passed.
    pub ranges: Vec<(Instant, D, Range<usize>)>,
}

impl<D: Copy> Machine<D> {
    /// Creates a machine with the link up. The host pushes with `mode`. The drive has one namespace
    /// of `blocks` blocks. `directions` are the values of `D` for down and up.
    pub fn new(directions: [D; 2], max_payload: u16, blocks: u64, mode: Mode) -> Self {
        let mut config = Config::new("ANALYSED", vec![NamespaceConfig::new(blocks)]);
        config.settings.max_payload = usize::from(max_payload);
        let media = Media::new(&config);
        let tunnel = |role| Settings { max_payload, push: 1 << 20, ..Settings::new(role, 7) };
        let top = Upstream::new(upstream::Settings {
            ports: 1,
            max_payload: usize::from(max_payload),
            p2p: false,
            tunnel: tunnel(Role::Host),
        });
        let drive = Drive(Subsystem::new(Instant::ZERO, &config));
        let push = PushSettings { mode, ..PushSettings::default() };
        let mut machine = Self {
            now: Instant::ZERO,
            directions,
            reads: 0,
            host: HostNode::new(root::Settings::default(), Tap::new(top)).with_push(push),
            node: Downstream::new(tunnel(Role::Device), Tap::new(drive), Completions::default()),
            media,
            blocks: Vec::new(),
            bus: Bus::new(),
            ram: Rc::new(RefCell::new(Ram::new(RAM, 32 << 20))),
            drive: Bdf::default(),
            random: Random::new(1),
            port: Vec::new(),
            function: Vec::new(),
            down: Vec::new(),
            up: Vec::new(),
            ranges: Vec::new(),
        };
        let top = &mut machine.host.below_mut().inner;
        top.handle_link(machine.now, 0, tunnel::Input::Connected);
        machine.node.handle(machine.now, tunnel::Input::Connected);
        machine.settle();
        machine
    }

    /// Moves TLPs and bytes until nothing moves.
    pub fn settle(&mut self) {
        while self.software() | self.host() | self.network() | self.storage() {}
    }

    fn tick(&mut self) {
        self.now += Duration::from_ns(50);
    }

    fn software(&mut self) -> bool {
        let mut moved = false;
        while let Some((id, request)) = self.bus.next_request() {
            moved = true;
            match request {
                Request::Sleep(span) => {
                    self.now += span;
                    self.bus.answer(id, 0);
                }
                request => self.host.handle(self.now, HostInput::Request(id, request)),
            }
        }
        moved
    }

    fn host(&mut self) -> bool {
        let mut moved = false;
        let mut memory = Memory(self.ram.clone());
        loop {
            let output = self.host.poll_with(self.now, &mut memory);
            for (up, tlp) in std::mem::take(&mut self.host.below_mut().seen) {
                self.tick();
                self.port.push((self.now, self.directions[usize::from(up)], tlp));
                moved = true;
            }
            match output {
                FromHost::Wait(_) => return moved,
                FromHost::Host(HostOutput::Answer(id, value)) => {
                    self.bus.answer(id, value.unwrap_or(u64::MAX))
                }
                FromHost::Host(HostOutput::HostRead { token, address, length, .. }) => {
                    self.reads += 1;
                    let data =
                        self.ram.borrow_mut().get(address, length).map(Bytes::copy_from_slice);
                    self.host.handle(self.now, HostInput::HostData(token, data));
                }
                FromHost::Host(HostOutput::HostWrite { address, data, .. }) => {
                    let mut ram = self.ram.borrow_mut();
                    ram.get_mut(address, data.len()).expect("in RAM").copy_from_slice(&data);
                }
                FromHost::Host(_) => {}
            }
            moved = true;
        }
    }

    fn network(&mut self) -> bool {
        let mut moved = false;
        let room = tunnel::Input::CanTransmit { bytes: 1 << 20 };
        let now = self.now;
        self.host.below_mut().inner.handle_link(now, 0, room.clone());
        loop {
            let output = self.host.below_mut().inner.poll_link(self.now, 0);
            match output {
                LinkOutput::Transmit(_, bytes) => {
                    self.captured(false, &bytes);
                    self.node.handle(self.now, tunnel::Input::Received(bytes));
                }
                LinkOutput::Up(_) => {}
                _ => break,
            }
            moved = true;
        }
        self.node.handle(self.now, room);
        loop {
            let output = self.node.poll(self.now);
            for (up, tlp) in std::mem::take(&mut self.node.function_mut().seen) {
                self.function.push((self.now, self.directions[usize::from(up)], tlp));
            }
            match output {
                downstream::Output::Transmit(_, bytes) => {
                    self.captured(true, &bytes);
                    let (now, input) = (self.now, tunnel::Input::Received(bytes));
                    self.host.below_mut().inner.handle_link(now, 0, input);
                }
                downstream::Output::Up(_) => {}
                _ => return moved,
            }
            moved = true;
        }
    }

    /// Returns the device node's counters of pushed bytes.
    pub fn store(&self) -> switch::push_store::Counters {
        self.node.store().counters()
    }

    /// Returns the host node's counters of pushes.
    pub fn pushed(&self) -> node::push::Counters {
        self.host.push_counters()
    }

    /// Records bytes in two pieces, because networks cut streams anywhere.
    fn captured(&mut self, up: bool, bytes: &[u8]) {
        for piece in [&bytes[..bytes.len() / 3], &bytes[bytes.len() / 3..]] {
            self.tick();
            let stream = if up { &mut self.up } else { &mut self.down };
            let start = stream.len();
            stream.extend_from_slice(piece);
            let bytes = start..stream.len();
            self.ranges.push((self.now, self.directions[usize::from(up)], bytes));
        }
    }

    /// Returns a random number below `below`.
    pub fn random(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    fn storage(&mut self) -> bool {
        while let Some(request) = self.node.function_mut().inner.0.poll_block() {
            let id = request.id;
            let result = self.media.execute(request);
            self.blocks.push((id, result));
        }
        if self.blocks.is_empty() {
            return false;
        }
        let index = self.random(self.blocks.len() as u64) as usize;
        let (id, result) = self.blocks.swap_remove(index);
        self.tick();
        self.node.function_mut().inner.0.complete_block(self.now, id, result);
        true
    }

    /// Runs host software until it finishes.
    ///
    /// # Panics
    /// If nothing moves before the software has finished.
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        let mut task = Task::new(&self.bus.clone(), software);
        for _ in 0..1_000_000 {
            if let Some(value) = task.poll(self.now) {
                self.settle();
                return value;
            }
            self.settle();
        }
        panic!("software does not end");
    }

    /// Enumerates the hierarchy, and enables bus mastering for the drive.
    ///
    /// # Panics
    /// If enumeration fails.
    pub fn enumerate(&mut self) -> Hierarchy {
        let bus = self.bus.clone();
        let hierarchy = self.run(async move {
            let hierarchy = enumerate::enumerate(bus.clone(), enumerate::Settings::default());
            let hierarchy = hierarchy.await.expect("enumerated");
            enumerate::enable_bus_master(&bus, hierarchy.endpoints()[0].bdf, true).await;
            hierarchy
        });
        self.drive = hierarchy.endpoints()[0].bdf;
        hierarchy
    }

    /// Enumerates and brings the drive up with `queues` queue pairs.
    ///
    /// # Panics
    /// If the drive does not come up.
    pub fn bring_up(&mut self, queues: u16) -> (Hierarchy, Driver) {
        let hierarchy = self.enumerate();
        let node = hierarchy.endpoints()[0].clone();
        let (bus, ram) = (self.bus.clone(), self.ram.clone());
        let driver = self.run(async move {
            for vector in 0..=queues {
                enumerate::write_msix_entry(&bus, &node, vector, u32::from(vector), false);
            }
            enumerate::set_msix(&bus, &node, true).await;
            let bar = node.bar(0).expect("BAR 0").address;
            let settings =
                initiator::Settings { io_queues: queues, ..initiator::Settings::default() };
            initiator::attach(bus, ram, bar, settings).await.expect("attached")
        });
        (hierarchy, driver)
    }

    /// Resets the bus below the downstream port.
    pub fn hot_reset(&mut self) {
        let bus = self.bus.clone();
        self.run(async move {
            let control = |on: u32| bus.config_write(Bdf::new(2, 0, 0), 0x3e, 2, on << 6);
            control(1).await;
            control(0).await;
        });
    }

    /// Allocates `bytes` of host memory for data; returns the address.
    ///
    /// # Panics
    /// If no memory is left.
    pub fn buffer(&mut self, bytes: usize) -> u64 {
        self.ram.borrow_mut().allocate(bytes, 4096).expect("room")
    }

    /// Writes host memory.
    ///
    /// # Panics
    /// If there is no memory at `address`.
    pub fn fill(&mut self, address: u64, bytes: &[u8]) {
        let mut ram = self.ram.borrow_mut();
        ram.get_mut(address, bytes.len()).expect("in RAM").copy_from_slice(bytes);
    }

    /// Moves TLPs and bytes until `queue` has no outstanding command. Returns the number of failed
    /// commands.
    ///
    /// # Panics
    /// If nothing moves while commands are outstanding.
    pub fn drain(&mut self, driver: &mut Driver, queue: usize) -> usize {
        let mut failed = 0;
        while driver.outstanding(queue) > 0 {
            self.settle();
            let done = driver.reap(queue);
            assert!(!done.is_empty(), "the drive is stuck");
            failed += done.iter().filter(|done| !done.status.is_success()).count();
            self.settle();
        }
        failed
    }

    /// Returns the bytes of namespace 1.
    pub fn media(&self) -> &[u8] {
        &self.media.namespaces[&1]
    }
}

/// Returns a command for blocks of namespace 1.
pub fn io(op: Op, slba: u64, blocks: u32, buffer: u64) -> Io {
    Io { op, nsid: 1, slba, blocks, buffer }
}
