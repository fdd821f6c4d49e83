//! The order of a client's commands on the bus, against a model: random commands, answered in
//! any order at any time.

use super::{BARE, answer};
use crate::host::endpoint::Endpoint;
use crate::host::tests::plain_endpoint;
use pcie::enumerate::{Bar, Device, Kind, Msix, Node, Settings};
use pcie::software::{Bus, Request, RequestId};
use proptest::prelude::*;
use rustix::fd::AsFd;
use std::collections::BTreeSet;
use testkit::Folder;
use testkit::vfio_user::{Client, access, encoded, eventfd, message};
use wire::vfio_user::{
    Command, DMA_FLAG_READ, DMA_UNMAP_FLAG_ALL, DmaMap, DmaUnmap, IrqAction, IrqData, IrqSet,
    region_index,
};
use wire::{Bdf, Instant};

/// Where BAR 0 lies on the bus.
const BAR: u64 = 0xe000_0000;
/// Configuration space of the far function.
const CONFIG: u16 = 0x200;

/// A command of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// A BAR write without a reply: the only command that may pass others, and only reads.
    Posted,
    /// A read of this many bytes of the BAR.
    Read(u32),
    ConfigRead,
    /// A BAR write with a reply.
    Write,
    ConfigWrite,
    Map,
    Unmap,
    SetIrqs,
    Reset,
}
use Act as C;

impl C {
    fn reads(self) -> bool {
        matches!(self, C::Read(_) | C::ConfigRead)
    }
}

/// A step of the test.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(C),
    /// One of the requests on the bus is answered.
    Answer(usize),
}

struct World {
    endpoint: Endpoint,
    bus: Bus,
    client: Client,
    _folder: Folder,
    commands: Vec<C>,
    /// Commands that have had a request on the bus.
    begun: BTreeSet<usize>,
    replied: BTreeSet<usize>,
    /// Unanswered requests, each with its command.
    open: Vec<(RequestId, usize)>,
}

fn node() -> Node {
    let bar = Bar { index: 0, size: 0x4000, is_64bit: true, prefetchable: false, address: BAR };
    let msix = Msix { capability: 0x50, vectors: 4, table: (0, 0x2000), pending: (0, 0x3000) };
    let kind = Kind::Endpoint(Device { bars: vec![bar], msix: Some(msix), ..BARE });
    let node = super::node(Bdf::new(2, 0, 0), kind);
    Node { capabilities: vec![(0x50, 0x11)], pcie: None, ..node }
}

impl World {
    fn new() -> Self {
        let (folder, bus) = (Folder::new(), Bus::new());
        let settings = Settings::default();
        let endpoint = Endpoint::offer(
            &(&*folder).into(),
            0,
            0,
            node(),
            (plain_endpoint(), None),
            bus.clone(),
            settings,
        );
        let endpoint = endpoint.unwrap();
        let client = Client::greeted(endpoint.guest.server.path(), 9999);
        let mut world = Self {
            endpoint,
            bus,
            client,
            _folder: folder,
            commands: Vec::new(),
            begun: BTreeSet::new(),
            replied: BTreeSet::new(),
            open: Vec::new(),
        };
        // Settings that the host restores before the client is served.
        while world.endpoint.service(Instant::ZERO) || world.bus.queued() > 0 {
            while let Some((id, request)) = world.bus.next_request() {
                world.bus.answer(id, answer(request));
            }
        }
        assert_eq!(world.client.receive().header.error, None);
        world
    }

    /// Sends a command. Its number is in its address, so that its requests are recognised.
    fn send(&mut self, command: C) {
        let number = self.commands.len();
        self.commands.push(command);
        let (at, place) = (16 * number as u64, u64::from(CONFIG) + 4 * number as u64);
        let mut fds = Vec::new();
        let event = eventfd();
        let (name, payload) = match command {
            C::Posted | C::Write => (Command::RegionWrite, access(0, at, 4, &[number as u8; 4])),
            C::Read(length) => (Command::RegionRead, access(0, at, length, &[])),
            C::ConfigRead => (Command::RegionRead, access(region_index::CONFIG, place, 4, &[])),
            C::ConfigWrite => {
                (Command::RegionWrite, access(region_index::CONFIG, place, 4, &[1; 4]))
            }
            C::Map => {
                let (flags, address) = (DMA_FLAG_READ, (number as u64) << 12);
                let map = DmaMap { flags, offset: 0, address, size: 4096 };
                (Command::DmaMap, encoded(|out| map.encode(out)))
            }
            C::Unmap => {
                let flags = DMA_UNMAP_FLAG_ALL;
                let unmap = DmaUnmap { argsz: 24, flags, address: 0, size: 0 };
                (Command::DmaUnmap, encoded(|out| unmap.encode(out)))
            }
            C::SetIrqs => {
                // Alternately: MSI-X is on while a vector has a descriptor.
                let before = self.commands.iter().filter(|known| **known == C::SetIrqs).count();
                let on = before % 2 == 1;
                let data = if on { IrqData::Eventfd } else { IrqData::None };
                fds.extend(on.then(|| event.as_fd()));
                let (action, count) = (IrqAction::Trigger, u32::from(on));
                let set = IrqSet { data, action, index: 2, start: 0, count };
                (Command::DeviceSetIrqs, encoded(|out| set.encode(out)))
            }
            C::Reset => (Command::DeviceReset, Vec::new()),
        };
        let bytes = message(number as u16, name.number(), &payload, command == C::Posted);
        self.client.send(&bytes, &fds);
        self.settle();
    }

    fn answer(&mut self, which: usize) {
        if self.open.is_empty() {
            return;
        }
        let (id, _) = self.open.remove(which % self.open.len());
        self.bus.answer(id, u64::MAX);
        self.settle();
    }

    /// Runs the endpoint until it is idle, and checks the order.
    fn settle(&mut self) {
        while self.endpoint.service(Instant::ZERO) || self.bus.queued() > 0 {
            while let Some((id, request)) = self.bus.next_request() {
                let command = self.command_of(request);
                self.check_start(command);
                self.begun.insert(command);
                if !matches!(request, Request::MemoryWrite { .. }) {
                    self.open.push((id, command));
                }
            }
        }
        while !self.client.is_quiet() {
            let header = self.client.receive().header;
            assert_eq!(header.error, None, "{:?}", self.commands[usize::from(header.id)]);
            self.replied.insert(header.id.into());
        }
        // Nor may a command start late.
        for (number, command) in self.commands.iter().enumerate() {
            if *command == C::Posted {
                let free = (0..number).all(|before| self.may_pass(before));
                assert_eq!(self.begun.contains(&number), free, "write {number}");
            }
        }
    }

    /// The command that `request` belongs to. Requests of resets and of MSI-X, which carry no
    /// number, belong to the current command.
    fn command_of(&self, request: Request) -> usize {
        match request {
            Request::MemoryWrite { address, .. } | Request::MemoryRead { address, .. }
                if address < BAR + 0x1000 =>
            {
                (address - BAR) as usize / 16
            }
            Request::ConfigRead { offset, .. } | Request::ConfigWrite { offset, .. }
                if offset >= CONFIG =>
            {
                usize::from(offset - CONFIG) / 4
            }
            _ => {
                let by_itself = |number: &usize| {
                    matches!(self.commands[*number], C::SetIrqs | C::Reset)
                        && self.may_start(*number)
                };
                (0..self.commands.len()).rev().find(by_itself).expect("a command that asks for it")
            }
        }
    }

    /// Whether `number` is done: later commands may start.
    fn done(&self, number: usize) -> bool {
        let open = self.open.iter().any(|(_, command)| *command == number);
        !open
            && match self.commands[number] {
                C::Posted => self.begun.contains(&number),
                _ => self.replied.contains(&number),
            }
    }

    /// Whether a posted write behind `number` may be on the bus.
    fn may_pass(&self, number: usize) -> bool {
        self.commands[number].reads() || self.done(number)
    }

    /// Whether `number` may be on the bus, judged by requests alone: replies of this turn are
    /// not read yet.
    fn may_start(&self, number: usize) -> bool {
        let this = self.commands[number];
        (0..number).all(|before| {
            let begun = self.begun.contains(&before);
            let open = self.open.iter().any(|(_, command)| *command == before);
            match self.commands[before] {
                C::Posted => begun,
                command if command.reads() => this == C::Posted || begun && (this.reads() || !open),
                C::Write | C::ConfigWrite => begun && !open,
                _ => !open,
            }
        })
    }

    fn check_start(&self, number: usize) {
        let command = self.commands[number];
        assert!(self.may_start(number), "{number}, a {command:?}, is too early: {:?}", self.open);
        // A later command precedes it on the bus only if it may pass.
        let passed = self
            .begun
            .range(number + 1..)
            .all(|later| command.reads() && self.commands[*later] == C::Posted);
        assert!(passed, "{number}, a {command:?}, is too late: {:?}", self.begun);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop_oneof![
        6 => Just(C::Posted),
        3 => prop_oneof![Just(4_u32), Just(8), Just(16)].prop_map(C::Read),
        2 => Just(C::ConfigRead),
        1 => Just(C::Write),
        1 => Just(C::ConfigWrite),
        1 => Just(C::Map),
        1 => Just(C::Unmap),
        1 => Just(C::SetIrqs),
        1 => Just(C::Reset),
    ];
    prop_oneof![3 => command.prop_map(Step::Send), 2 => any::<usize>().prop_map(Step::Answer)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn posted_writes_pass_reads_and_nothing_else(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Send(command) => world.send(command),
                Step::Answer(which) => world.answer(which),
            }
        }
        while !world.open.is_empty() {
            world.answer(0);
        }
        prop_assert!((0..world.commands.len()).all(|number| world.done(number)));
    }
}
