//! A host node, a link whose TLPs a test delivers one by one, the store, and the controller.

use super::ending::{Ending, Leaving, leave_out};
use bytes::{Bytes, BytesMut};
use node::HostNode;
use node::host::{Input, Output};
use node::push::{HostMemory, Mode, Settings};
use pcie::root::{HostOutput, ROOT_PORT};
use pcie::software::Request;
use pcie::{Function, Ports, PushRoom, Ready, Target, Wait};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use switch::push_store::Store;
use testkit::controller::{Controller, DRIVE, Manners, Used};
use wire::push::{Push, Record};
use wire::tlp::{Packet, Tlp};
use wire::{Bdf, Instant};

/// Start and size of host memory.
pub const RAM: u64 = 0x10_0000;
pub const RAM_BYTES: usize = 1 << 20;
/// The addresses of queues.
const QUEUES: Range<u64> = RAM..RAM + 0x1_0000;
/// The address of the controller's registers.
pub const BAR: u64 = 0xe000_0000;

const NOW: Instant = Instant::ZERO;

/// Host memory, of which the last quarter is accessed only by messages: it cannot be peeked at.
#[derive(Debug)]
pub struct Memory(Vec<u8>);

impl Memory {
    fn range(&self, address: u64, length: usize) -> Option<Range<usize>> {
        let start = usize::try_from(address.checked_sub(RAM)?).ok()?;
        (start + length <= self.0.len()).then_some(start..start + length)
    }

    pub fn get(&self, address: u64, length: usize) -> &[u8] {
        &self.0[self.range(address, length).expect("host memory")]
    }

    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let range = self.range(address, bytes.len()).expect("host memory");
        self.0[range].copy_from_slice(bytes);
    }
}

impl testkit::nvme::Memory for Memory {
    fn read_at(&mut self, address: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.get(address, bytes.len()));
    }

    fn write_at(&mut self, address: u64, bytes: &[u8]) {
        self.put(address, bytes);
    }
}

impl HostMemory for Memory {
    fn peek(&mut self, requester: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        assert_eq!(requester, DRIVE);
        let found = self.range(address, length).filter(|range| range.end <= RAM_BYTES * 3 / 4);
        found.map(|range| out.extend_from_slice(&self.0[range])).is_some()
    }
}

/// The link, with the store and the controller at its far end.
#[derive(Debug)]
pub struct Link {
    pub down: VecDeque<Tlp>,
    pub up: VecDeque<Tlp>,
    /// Number of TLPs of `up` that may arrive.
    arrived: usize,
    pub store: Store<Leaving>,
    /// The cause of invalidation that is left out.
    without: Option<Ending>,
    /// Why the host node now invalidates everything, if it does.
    cause: Ending,
    pub controller: Controller,
    pub room: PushRoom,
    /// Every TLP sent to the device.
    pub sent: Vec<Tlp>,
    /// Messages with bytes since the last other TLP, and their data credits.
    burst: (u32, u32),
}

impl Link {
    /// Messages with bytes must leave together with the doorbell behind them, without a wait for
    /// credits.
    fn check_room(&mut self, tlp: &Tlp) {
        let Some(push) = Push::decode(tlp) else { return self.burst = (0, 0) };
        let push = push.expect("a valid message");
        assert!(tlp.data.len() <= self.room.payload);
        if push.records.clone().any(|record| matches!(record, Record::Bytes { .. })) {
            self.burst.0 += 1;
            self.burst.1 += tlp.data_credits();
            assert!(self.burst.0 < self.room.headers && self.burst.1 < self.room.data);
        }
    }
}

impl Function for Link {
    fn handle(&mut self, _: Instant, input: pcie::Input) {
        match input {
            pcie::Input::Tlp(tlp) => {
                let tlp = match self.without {
                    Some(ending) => leave_out(tlp, ending, self.cause, QUEUES),
                    None => Some(tlp),
                };
                let Some(tlp) = tlp else { return };
                self.check_room(&tlp);
                self.sent.push(tlp.clone());
                self.down.push_back(tlp);
            }
            pcie::Input::HotReset => {
                (self.down, self.up, self.arrived) = Default::default();
                if self.without == Some(Ending::HotReset) {
                    while self.store.pop(Ready::ALL).is_some() {}
                } else {
                    self.store.clear().for_each(drop);
                }
                self.controller.hot_reset();
            }
        }
    }

    fn poll(&mut self, _: Instant, _: Ready) -> pcie::Output {
        if self.arrived == 0 {
            return pcie::Output::Wait(Wait::default());
        }
        self.arrived -= 1;
        pcie::Output::Tlp(self.up.pop_front().expect("as many as arrived"))
    }

    fn ready(&self) -> Ready {
        Ready::ALL
    }

    fn ports(&self) -> Option<&dyn Ports> {
        Some(self)
    }
}

impl Ports for Link {
    fn queue(&self, _: Target) -> usize {
        0
    }

    fn queue_ready(&self, _: usize) -> Ready {
        Ready::ALL
    }

    fn push_room(&self, _: Bdf) -> Option<PushRoom> {
        Some(self.room)
    }
}

pub struct World {
    pub host: HostNode<Link>,
    pub memory: Memory,
    answers: BTreeMap<u64, Option<u64>>,
    requests: u64,
    /// Whether the host refuses the function's reads, and all earlier requests have arrived.
    pub refused: bool,
    /// The store's answers in submission queues are not compared, because the driver counts
    /// commands.
    pub lagging: bool,
    pub fault: Option<String>,
}

impl World {
    pub fn new(manners: Manners, mode: Mode, bound: usize, without: Option<Ending>) -> Self {
        let link = Link {
            down: VecDeque::new(),
            up: VecDeque::new(),
            arrived: 0,
            store: Store::new(256 << 10, Leaving::new(without)),
            without,
            cause: Ending::Configuration,
            controller: Controller::new(manners),
            room: PushRoom { payload: 512, headers: 1000, data: 60_000, capacity: 256 << 10 },
            sent: Vec::new(),
            burst: (0, 0),
        };
        let host = HostNode::new(Default::default(), link).with_push(Settings { mode, bound });
        Self {
            host,
            memory: Memory(vec![0; RAM_BYTES]),
            answers: BTreeMap::new(),
            requests: 0,
            refused: false,
            lagging: manners.lags,
            fault: None,
        }
    }

    pub fn link(&mut self) -> &mut Link {
        self.host.below_mut()
    }

    fn fail(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }

    pub fn request(&mut self, request: Request) -> u64 {
        self.requests += 1;
        self.link().cause = match request {
            Request::ConfigWrite { target: ROOT_PORT, .. } => Ending::RootPort,
            Request::MemoryWrite { address, .. } if address < BAR + 0x1000 => {
                Ending::ControllerReset
            }
            Request::MemoryWrite { .. } => Ending::DoorbellBuffer,
            _ => Ending::Configuration,
        };
        self.host.handle(NOW, Input::Request(self.requests, request));
        self.poll_host();
        self.requests
    }

    /// Sends a request and returns its answer; everything before it arrives too.
    pub fn ask(&mut self, request: Request) -> Option<u64> {
        let id = self.request(request);
        for _ in 0..10_000 {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            self.deliver_down();
            self.far_side();
            self.deliver_up();
        }
        panic!("no answer to {request:?}");
    }

    pub fn poll_host(&mut self) {
        loop {
            match self.host.poll_with(NOW, &mut self.memory) {
                Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
                    let data = Bytes::copy_from_slice(self.memory.get(address, length));
                    self.host.handle(NOW, Input::HostData(token, Some(data)));
                }
                Output::Host(HostOutput::HostWrite { address, data, .. }) => {
                    self.memory.put(address, &data);
                }
                Output::Host(HostOutput::Answer(id, value)) => {
                    self.answers.insert(id, value);
                }
                Output::Host(other) => panic!("{other:?}"),
                Output::Wait(_) => return,
            }
        }
    }

    /// Delivers one TLP from the host.
    pub fn deliver_down(&mut self) {
        let link = self.link();
        if let Some(tlp) = link.down.pop_front()
            && let Some(tlp) = link.store.take(tlp)
        {
            link.controller.handle(tlp);
        }
    }

    /// Passes one TLP of the function to the store. The store's answer must be what the host would
    /// read now.
    pub fn far_side(&mut self) {
        let link = self.link();
        if let Some(reply) = link.store.pop(Ready::ALL) {
            return link.controller.handle(reply);
        }
        let Some(tlp) = link.controller.out.pop_front() else { return };
        if let Some(tlp) = link.store.answer(tlp.clone(), false) {
            return link.up.push_back(tlp);
        }
        let Packet::MemoryRead(r) = tlp.packet else { panic!("the store kept {tlp:?}") };
        let (address, length) = (r.first_byte(), r.byte_count());
        let mut found = Vec::new();
        while let Some(reply) = self.link().store.pop(Ready::ALL) {
            found.extend_from_slice(&reply.data);
            self.link().controller.handle(reply);
        }
        let mut expected = self.memory.get(address, length).to_vec();
        // The function's own writes in transit are ahead of its read.
        for write in &self.host.below().up {
            let Packet::MemoryWrite(w) = write.packet else { continue };
            for (at, byte) in (w.address..).zip(&write.data) {
                if (address..address + length as u64).contains(&at) {
                    expected[(at - address) as usize] = *byte;
                }
            }
        }
        let in_queue = QUEUES.contains(&address);
        if self.refused {
            self.fail(format!("a read of {address:#x} was answered with bus mastering off"));
        } else if found != expected && !(self.lagging && in_queue) {
            self.fail(format!("stale bytes at {address:#x}, {length} of them"));
        }
    }

    /// Delivers one TLP to the host.
    pub fn deliver_up(&mut self) {
        let link = self.link();
        if link.arrived < link.up.len() {
            link.arrived += 1;
            link.cause = Ending::PartialEntry;
            self.poll_host();
        }
    }

    /// Delivers everything in transit; the controller starts nothing.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            let link = self.link();
            if link.down.is_empty() && link.up.is_empty() && link.controller.out.is_empty() {
                return;
            }
            self.deliver_down();
            self.far_side();
            self.deliver_up();
        }
        panic!("it does not settle");
    }

    /// Delivers everything sent to the device.
    pub fn settle_down(&mut self) {
        while !self.link().down.is_empty() {
            self.deliver_down();
        }
    }

    pub fn used(&mut self) -> Vec<Used> {
        std::mem::take(&mut self.link().controller.used)
    }

    pub fn config(&mut self, target: Bdf, offset: u16, value: u32) {
        let size = if offset & 3 == 2 { 2 } else { 4 };
        self.ask(Request::ConfigWrite { target, offset, size, value });
    }

    /// Enumerates as an operating system does at boot.
    pub fn enumerate(&mut self) {
        self.config(ROOT_PORT, 0x18, 0x0001_0100);
        self.config(ROOT_PORT, 0x20, 0xe000_e000);
        self.config(ROOT_PORT, 0x04, 6);
        for offset in [0, 0x08, 0x0c, 0x10] {
            self.ask(Request::ConfigRead { target: DRIVE, offset, size: 4 });
        }
        self.place();
    }

    /// Sizes and places the registers of the controller, and turns bus mastering on.
    pub fn place(&mut self) {
        for offset in [0x10, 0x14] {
            self.config(DRIVE, offset, !0);
            self.ask(Request::ConfigRead { target: DRIVE, offset, size: 4 });
        }
        self.config(DRIVE, 0x10, BAR as u32);
        self.config(DRIVE, 0x14, 0);
        self.config(DRIVE, 0x04, 6);
        self.ask(Request::MemoryRead { address: BAR, size: 8 });
    }

    pub fn write(&mut self, offset: u64, size: u8, value: u64) {
        self.request(Request::MemoryWrite { address: BAR + offset, size, value });
    }
}
