//! Push between our own initiator and our own drive, over a link.

use bytes::{Bytes, BytesMut};
use node::drive::DriveOutput;
use node::host::{Buses, Input, Output};
use node::push::{Completions, HostMemory, Mode, Settings};
use node::{DriveNode, HostNode};
use nvme::initiator::{self, Driver, Io, Op};
use nvme::{Config, NamespaceConfig, Subsystem};
use pcie::enumerate;
use pcie::root::HostOutput;
use pcie::software::Task;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use switch::push::Counters;
use switch::tunnel;
use switch::upstream::{self, LinkOutput, Upstream};
use switch::{Downstream, downstream};
use testkit::nvme::Media;
use wire::frame::Role;
use wire::{Bdf, Duration, Instant};

const RAM: u64 = 0x1_0000_0000;

#[derive(Clone)]
pub(super) struct Memory(pub Rc<RefCell<Ram>>);

impl HostMemory for Memory {
    fn peek(&mut self, _: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        self.get(address, length).inspect(|bytes| out.extend_from_slice(bytes)).is_some()
    }
}

impl Memory {
    fn get(&self, address: u64, length: usize) -> Option<Bytes> {
        self.0.borrow_mut().get(address, length).map(Bytes::copy_from_slice)
    }
}

pub(super) struct Rig {
    now: Instant,
    pub host: HostNode<Upstream>,
    device: Downstream<DriveNode, Completions>,
    media: Media,
    pub memory: Memory,
    buses: Buses,
    pub bus: Bus,
    /// Reads of the drive that reached the host.
    pub reads: usize,
}

impl Rig {
    pub fn new(mode: Mode, max_payload: u16) -> Self {
        let mut config = Config::new("PUSHED", vec![NamespaceConfig::new(4096)]);
        config.settings.max_payload = usize::from(max_payload);
        let link = |role| tunnel::Settings {
            max_payload,
            push: 1 << 20,
            ..tunnel::Settings::new(role, 1)
        };
        let (max, tunnel) = (usize::from(max_payload), link(Role::Host));
        let upstream =
            Upstream::new(upstream::Settings { ports: 1, max_payload: max, p2p: false, tunnel });
        let push = Settings { mode, ..Settings::default() };
        let mut buses = Buses::default();
        let mut rig = Self {
            now: Instant::ZERO,
            host: HostNode::new(Default::default(), upstream).with_push(push),
            device: Downstream::new(
                link(Role::Device),
                DriveNode::new(Subsystem::new(Instant::ZERO, &config)),
                Completions::default(),
            ),
            media: Media::new(&config),
            memory: Memory(Rc::new(RefCell::new(Ram::new(RAM, 8 << 20)))),
            bus: buses.new_bus(),
            buses,
            reads: 0,
        };
        rig.host.below_mut().handle_link(rig.now, 0, tunnel::Input::Connected);
        rig.device.handle(rig.now, tunnel::Input::Connected);
        rig.settle();
        rig
    }

    pub fn settle(&mut self) {
        while self.software() | self.host() | self.network() | self.storage() {
            self.now += Duration::from_ns(50);
        }
    }

    fn software(&mut self) -> bool {
        let mut moved = self.buses.wake(self.now);
        while let Some((id, request)) = self.buses.next_request(self.now, |_| true) {
            self.host.handle(self.now, Input::Request(id, request));
            moved = true;
        }
        if let (false, Some(at)) = (moved, self.buses.timer()) {
            self.now = self.now.max(at);
            return true;
        }
        moved
    }

    fn host(&mut self) -> bool {
        let mut moved = false;
        loop {
            match self.host.poll_with(self.now, &mut self.memory) {
                Output::Wait(_) => return moved,
                Output::Host(HostOutput::Answer(id, value)) => self.buses.answer(id, value),
                Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
                    self.reads += 1;
                    let data = self.memory.get(address, length);
                    self.host.handle(self.now, Input::HostData(token, data));
                }
                Output::Host(HostOutput::HostWrite { address, data, .. }) => {
                    let mut ram = self.memory.0.borrow_mut();
                    ram.get_mut(address, data.len()).expect("in RAM").copy_from_slice(&data);
                }
                Output::Host(_) => {}
            }
            moved = true;
        }
    }

    fn network(&mut self) -> bool {
        let (now, mut moved, mut frames) = (self.now, false, BytesMut::new());
        let room = tunnel::Input::CanTransmit { bytes: 1 << 20 };
        self.host.below_mut().handle_link(now, 0, room.clone());
        while let LinkOutput::Transmit(_) | LinkOutput::Up(_) =
            self.host.below_mut().poll_link(now, 0, &mut frames)
        {
            self.device.handle(now, tunnel::Input::Received(frames.split().freeze()));
            moved = true;
        }
        self.device.handle(now, room);
        while let downstream::Output::Transmit(_) | downstream::Output::Up(_) =
            self.device.poll(now, &mut frames)
        {
            let bytes = frames.split().freeze();
            self.host.below_mut().handle_link(now, 0, tunnel::Input::Received(bytes));
            moved = true;
        }
        moved
    }

    fn storage(&mut self) -> bool {
        let mut moved = false;
        while let Some(output) = self.device.function_mut().poll_drive() {
            let DriveOutput::Block(contents, request) = output else { panic!("it has no records") };
            let (id, result) = (request.id, self.media.execute(request));
            self.device.function_mut().complete_block(self.now, contents, id, result);
            moved = true;
        }
        moved
    }

    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        let mut task = Task::new(&self.bus.clone(), software);
        for _ in 0..100_000 {
            if let Some(value) = task.poll(self.now) {
                self.settle();
                return value;
            }
            self.settle();
        }
        panic!("software does not end");
    }

    /// Yields where the drive's registers are.
    pub fn enumerate(&mut self) -> u64 {
        let bus = self.bus.clone();
        self.run(async move {
            let hierarchy = enumerate::enumerate(bus.clone(), enumerate::Settings::default());
            let hierarchy = hierarchy.await.expect("enumerated");
            let node = hierarchy.endpoints()[0].clone();
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            node.bar(0).expect("BAR 0").address
        })
    }

    fn bring_up(&mut self) -> Driver {
        let (bar, bus, ram) = (self.enumerate(), self.bus.clone(), self.memory.0.clone());
        self.run(async move {
            let attached = initiator::attach(bus, ram, bar, initiator::Settings::default());
            attached.await.expect("attached")
        })
    }

    /// Commands of `blocks` blocks each, rung for one by one; all end well.
    fn commands(&mut self, driver: &mut Driver, op: Op, count: u64, blocks: u32, buffer: u64) {
        for number in 0..count {
            let bytes = u64::from(blocks) * 512;
            let (slba, buffer) = (number * u64::from(blocks), buffer + number * bytes);
            driver.submit(self.now, 0, Io { op, nsid: 1, slba, blocks, buffer }).expect("room");
        }
        while driver.outstanding(0) > 0 {
            self.settle();
            let done = driver.reap(0);
            assert!(!done.is_empty() && done.iter().all(|done| done.status.is_success()));
        }
    }
}

/// Writes `count` times `blocks` blocks and reads them back. Yields how many reads of the drive
/// reached the host for the writes and for the reads, and the counters of the store.
fn written_and_read(mode: Mode, payload: u16, count: u64, blocks: u32) -> ([usize; 2], Counters) {
    let mut rig = Rig::new(mode, payload);
    let mut driver = rig.bring_up();
    let length = count as usize * blocks as usize * 512;
    let buffers = [(); 2].map(|()| rig.memory.0.borrow_mut().allocate(length, 4096).unwrap());
    let data: Vec<u8> = (0..length).map(|i| (i / 512 * 7 + i) as u8).collect();
    rig.memory.0.borrow_mut().get_mut(buffers[0], length).unwrap().copy_from_slice(&data);
    let reads = [(Op::Write, buffers[0]), (Op::Read, buffers[1])].map(|(op, buffer)| {
        rig.reads = 0;
        rig.commands(&mut driver, op, count, blocks, buffer);
        rig.reads
    });
    assert_eq!(rig.media.namespaces[&1][..length], data, "{mode}: written");
    assert_eq!(rig.memory.0.borrow_mut().get(buffers[1], length), Some(&data[..]), "{mode}: read");
    (reads, rig.device.store().counters())
}

#[test]
fn our_drive_reads_nothing_from_the_host() {
    for payload in [256, 4096] {
        for (count, blocks) in [(1, 8), (8, 8), (1, 64)] {
            let (reads, counters) = written_and_read(Mode::All, payload, count, blocks);
            assert_eq!(reads, [0, 0], "{count} commands of {blocks} blocks, MPS {payload}");
            assert_eq!((counters.misses, counters.malformed), (0, 0));
            assert_eq!(counters.pushed_bytes, counters.hit_bytes + counters.unused_bytes);
        }
    }
}

#[test]
fn without_push_it_reads_everything() {
    let (reads, counters) = written_and_read(Mode::Off, 4096, 1, 8);
    assert!(reads[0] > reads[1] && reads[1] == 1, "{reads:?}");
    assert_eq!(counters.pushed_bytes, 0);
    let (entries, _) = written_and_read(Mode::Entries, 4096, 1, 8);
    assert_eq!(entries, [reads[0] - 1, 0], "all but the entry");
}
