//! The slot between a scripted client and a scripted bus.

mod accesses;
mod changes;
mod client;
mod software;
mod stand_in;

use super::*;
use bytes::BytesMut;
use pcie::Ready;
use pcie::enumerate::{Bar, Contents, Device, Msix};
use pcie::root::{self, HostOutput, ReadToken, RootComplex};
use pcie::software::{Request, RequestId};
use wire::tlp::Tlp;
use wire::{Bdf, Tag};

const SERIAL: u64 = 5;
const INCARNATION: u64 = 7;

/// A function with a BAR of 16 KiB, two vectors and contents.
fn node() -> Node {
    let bar = Bar { index: 0, size: 0x4000, is_64bit: true, prefetchable: false, address: 0x8000 };
    let (table, pending) = ((0, 0x2000), (0, 0x3000));
    let msix = Msix { capability: 0x48, vectors: 2, table, pending };
    let contents = Contents { capability: 0x10c, incarnation: INCARNATION, owner: 0 };
    let (serial, contents) = (Some(SERIAL), Some(contents));
    Node {
        bdf: Bdf::new(3, 0, 0),
        id: (0xfa12, 1),
        class: [1, 8, 2],
        capabilities: Vec::new(),
        pcie: Some(0x60),
        max_payload_supported: 256,
        max_payload: 256,
        kind: Kind::Endpoint(Device { bars: vec![bar], msix: Some(msix), serial, contents }),
    }
}

/// The configuration space of such a function, with this serial number and incarnation.
fn config(serial: u64, incarnation: u64) -> impl Fn(u16) -> u32 {
    move |offset| match offset {
        0x00 => 0x0001_fa12,
        0x100 => 0x10c1_0003,
        0x104 => serial as u32,
        0x10c => 0x0001_000b,
        0x110 => 0x0141_0001,
        0x114 => incarnation as u32,
        0x10 => 0xffff_c004,
        0x14 => u32::MAX,
        0x34 => 0x48,
        0x48 => 0x11,
        0x4a => 1,
        0x4c => 0x2000,
        0x50 => 0x3000,
        _ => 0,
    }
}

/// What was read of such a controller.
fn snapshot() -> Snapshot {
    let mut bytes = Box::new([0; 4096]);
    for (at, place) in bytes.chunks_exact_mut(4).enumerate() {
        place.copy_from_slice(&config(SERIAL, INCARNATION)(at as u16 * 4).to_le_bytes());
    }
    Snapshot { config: bytes, capabilities: 0x20_1401_03ff, version: 0x1_0400 }
}

/// A client with memory `memory`.
#[derive(Default)]
struct Script {
    active: bool,
    command: [Option<u8>; 2],
    written_registers: bool,
    /// Whether the client accepts no access from the function now.
    full: bool,
    memory: Vec<(u64, Vec<u8>)>,
    signals: Vec<u16>,
}

/// Reads beyond this address fail.
const END: u64 = 0x10_0000;

impl Client for Script {
    fn is_active(&self) -> bool {
        self.active
    }

    fn command(&self) -> [Option<u8>; 2] {
        self.command
    }

    fn has_written_registers(&self) -> bool {
        self.written_registers
    }

    fn read(
        &mut self,
        _: Instant,
        (address, length): (u64, usize),
        _: &ReadToken,
    ) -> Option<ReadOutcome> {
        let data = (address < END).then(|| Bytes::from(vec![1; length]));
        (!self.full).then_some(ReadOutcome::Done(data))
    }

    fn write(&mut self, _: Instant, address: u64, data: &[u8]) -> Option<bool> {
        if self.full {
            return None;
        }
        self.memory.push((address, data.to_vec()));
        Some(address < END)
    }

    fn peek(&mut self, (_, length): (u64, usize), out: &mut BytesMut) -> bool {
        out.extend_from_slice(&vec![1; length]);
        !self.full
    }

    fn signal(&mut self, vector: u16) {
        self.signals.push(vector);
    }
}

/// A slot, its client, and the function's answers on the bus.
struct World {
    slot: Slot,
    client: Script,
    bus: Bus,
    presence: Presence,
    changes: Vec<Change>,
    replies: Vec<(Token, Vec<u8>)>,
    host_data: Vec<Option<Bytes>>,
    ready: usize,
    /// Serial number and incarnation of the device; `None`: no device answers.
    device: Option<(u64, u64)>,
    /// Requests, in order.
    requests: Vec<Request>,
    /// Requests without an answer.
    open: Vec<(RequestId, Request)>,
}

const OWNER: u32 = 9;

/// In the order of the table.
const CONDITIONS: [Condition; 7] = [
    Condition::Attached,
    Condition::Interrupted,
    Condition::Preparing,
    Condition::Awaited,
    Condition::LinkDown,
    Condition::NewContents,
    Condition::Detached,
];

/// The function reads four bytes of the client's memory.
fn read(world: &mut World, address: u64) -> ReadOutcome {
    let token = token();
    world.slot.memory_read(Instant::ZERO, &mut world.client, (address, 4), &token)
}

/// A read of host memory as a root complex names it.
fn token() -> ReadToken {
    let mut root = RootComplex::new(root::Settings::default());
    let write = |target, offset, size, value| Request::ConfigWrite { target, offset, size, value };
    let function = Bdf::new(1, 0, 0);
    let (port, master) = (root::ROOT_PORT, pcie::config::command::BUS_MASTER.into());
    let requests =
        [write(port, 0x18, 4, 0x10100), write(port, 4, 2, master), write(function, 4, 2, master)];
    for (id, request) in (0..).zip(requests) {
        root.handle(Instant::ZERO, root::Input::Request(id, request), &Ready::ALL);
    }
    let read = Tlp::read_bytes(function, Tag::default(), 0x1000, 4).unwrap();
    root.handle(Instant::ZERO, root::Input::Tlp(read), &Ready::ALL);
    loop {
        match root.poll(Instant::ZERO, &Ready::ALL) {
            root::Output::Host(HostOutput::HostRead { token, .. }) => return token,
            root::Output::Wait(_) => panic!("no read"),
            _ => {}
        }
    }
}

impl World {
    /// A client that uses a ready function.
    fn new() -> Self {
        let bus = Bus::new();
        let settings = Settings { owner: OWNER, ..Settings::default() };
        let client =
            Script { active: true, command: [Some(0x06), Some(0x04)], ..Script::default() };
        let mut world = Self {
            slot: Slot::new(node(), bus.clone(), settings),
            client,
            bus,
            presence: Presence::Present,
            changes: Vec::new(),
            replies: Vec::new(),
            host_data: Vec::new(),
            ready: 0,
            device: Some((SERIAL, INCARNATION)),
            requests: Vec::new(),
            open: Vec::new(),
        };
        world.settle();
        world
    }

    /// Takes the outputs and requests of the slot, without answers.
    fn turn(&mut self) -> bool {
        let mut moved = false;
        while let Some(output) = self.slot.poll(Instant::ZERO, &mut self.client) {
            moved = true;
            match output {
                Output::Reply(token, data) => self.replies.push((token, data)),
                Output::Presence(presence) => self.presence = presence,
                Output::HostData(_, data) => self.host_data.push(data),
                Output::Change(change) => self.changes.push(change),
                Output::Ready { .. } => self.ready += 1,
            }
        }
        while let Some((id, request)) = self.bus.next_request() {
            moved = true;
            self.requests.push(request);
            if !matches!(request, Request::MemoryWrite { .. }) {
                self.open.push((id, request));
            }
        }
        moved
    }

    /// Answers the open requests as the function.
    fn answer(&mut self) {
        for (id, request) in std::mem::take(&mut self.open) {
            let value = match (request, self.device) {
                (Request::ConfigRead { offset, .. }, Some((serial, incarnation))) => {
                    config(serial, incarnation)(offset).into()
                }
                (_, Some(_)) => 0,
                (_, None) => u64::MAX,
            };
            self.bus.answer(id, value);
        }
    }

    /// Answers as the function until nothing is open.
    fn settle(&mut self) {
        while self.turn() || !self.open.is_empty() {
            self.answer();
        }
    }

    fn lose(&mut self) {
        self.slot.link_down(None, &self.client);
        self.turn();
    }

    /// The link comes up with `device` behind it. Later requests are not answered.
    fn find(&mut self, device: Option<(u64, u64)>) {
        self.device = device;
        let found = device.map(|(serial, incarnation)| {
            let mut node = node();
            let Kind::Endpoint(device) = &mut node.kind else { unreachable!() };
            device.serial = Some(serial);
            device.contents.as_mut().unwrap().incarnation = incarnation;
            node
        });
        self.slot.link_up(found.as_slice(), &self.client);
        self.turn();
    }

    /// As `find`, with answers until the slot is idle.
    fn returns(&mut self, device: Option<(u64, u64)>) {
        self.lose();
        self.find(device);
        self.settle();
    }

    /// The client requests a reset, which is carried out.
    fn reset(&mut self) {
        assert!(self.slot.accepts());
        self.slot.reset(0);
        self.settle();
    }

    fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// A world with the slot in a condition.
    fn to(condition: Condition) -> Self {
        let mut world = Self::new();
        match condition {
            Condition::Attached => {}
            Condition::Interrupted => world.slot.set_interrupted(true),
            Condition::Preparing => {
                world.lose();
                world.find(SAME);
            }
            Condition::Awaited => {
                world.slot = world.slot.with_snapshot(Some(snapshot()));
                world.slot.set_other(true);
                world.lose();
            }
            Condition::LinkDown => world.lose(),
            Condition::NewContents => world.returns(NEW),
            Condition::Detached => world.returns(ANOTHER),
        }
        assert_eq!(world.slot.condition(), condition);
        world.requests.clear();
        world
    }
}

const SAME: Option<(u64, u64)> = Some((SERIAL, INCARNATION));
const NEW: Option<(u64, u64)> = Some((SERIAL, INCARNATION + 1));
const ANOTHER: Option<(u64, u64)> = Some((SERIAL + 1, INCARNATION));
const LOST: ContentsChange = ContentsChange::Incarnation;
