//! The machine around a controller: configuration and register accesses as TLPs, host memory that
//! answers DMA, and a list of interrupts.

use super::{Media, Memory, RecordStore};
use ::nvme::block::Request;
use ::nvme::state::Records;
use ::nvme::{Config, Controller, Port, Settings, Subsystem};
use bytes::Bytes;
use pcie::software::{self, Task};
use pcie::{Bus, Function, Input, Output, Ram, Ready};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use wire::tlp::{
    Completion, ConfigKind, ConfigRequest, MemoryRequest, Packet, Status, Tlp, message_code,
    whole_double_words,
};
use wire::{Bdf, Duration, Instant, Tag};

/// Address of data in host memory.
pub const DATA: u64 = 0x10_0000;
/// Address of queues, which random data do not contain.
pub const QUEUES: u64 = 0x7a5c_31d0_0000_0000;

const DRIVE: Bdf = Bdf::new(1, 0, 0);
const ROOT: Bdf = Bdf::new(0, 0, 0);
/// Address of BAR 0.
pub(super) const BAR: u64 = 0xe000_0000;
/// Address of MSI-X messages.
const MSI: u64 = 0xfee0_0000;
/// Read Completion Boundary in bytes: completions of host memory end at multiples of this number.
const READ_BOUNDARY: usize = 64;
/// Completion timeout of the drive.
const COMPLETION_TIMEOUT: Duration = Duration::from_ms(50);
/// Time after which waiting reads of host memory are lost, because a link that stalls for so long
/// is closed.
const LOST_AFTER: Duration = Duration::from_ms(90);

/// The machine around a controller.
pub struct Testbed {
    /// The drive.
    pub subsystem: Subsystem,
    /// CNTLID of the controller that the machine uses.
    pub cntlid: u16,
    /// Media of the drive.
    pub media: Media,
    /// Records of the drive, if the drive keeps records.
    pub store: RecordStore,
    /// Host memory in ranges that do not overlap.
    pub memory: Vec<Rc<RefCell<Ram>>>,
    /// Virtual time.
    pub now: Instant,
    /// Data of the MSI-X messages so far; the data are the vector.
    pub interrupts: Vec<u32>,
    /// Vectors of queues with completion entries that no interrupt has followed. The number of a
    /// queue is also its vector.
    pub unsignalled: BTreeSet<u64>,
    /// Level of INTA.
    pub intx: bool,
    /// Block requests that the media have not executed, oldest first.
    pub blocks: VecDeque<Request>,
    /// Reads of host memory without an answer, oldest first.
    pub reads: VecDeque<MemoryRequest>,
    /// Time at which the first read of `reads` was sent.
    waiting_since: Instant,
    /// Number of DMA writes to addresses without memory.
    pub stray_writes: u64,
    answer: Option<(Status, Bytes)>,
}

impl Testbed {
    /// Creates a testbed with a drive after power-on that is not configured.
    pub fn new(config: Config) -> Self {
        let ram = |base, length| Rc::new(RefCell::new(Ram::new(base, length)));
        Self {
            media: Media::new(&config),
            store: RecordStore::default(),
            subsystem: Subsystem::new(Instant::ZERO, &config),
            cntlid: 1,
            memory: vec![ram(DATA, 4 << 20), ram(QUEUES, 65 * 0x1_0000)],
            now: Instant::ZERO,
            interrupts: Vec::new(),
            unsignalled: BTreeSet::new(),
            intx: false,
            blocks: VecDeque::new(),
            reads: VecDeque::new(),
            waiting_since: Instant::ZERO,
            stray_writes: 0,
            answer: None,
        }
    }

    /// Creates a testbed as [`new`](Self::new), with a drive that keeps records.
    pub fn with_records(config: &Config) -> Self {
        Self::from_records(config, config.state().encode())
    }

    /// Creates a testbed with a drive that has these records and the settings of `config`.
    ///
    /// # Panics
    /// If the records are not valid.
    pub fn from_records(config: &Config, records: Records) -> Self {
        let mut testbed = Self::new(config.clone());
        testbed.store.records = records;
        testbed.power_cycle(&config.settings);
        testbed
    }

    /// Turns the drive's power off and on. Only stored changes of records remain.
    ///
    /// # Panics
    /// If the records are not valid.
    pub fn power_cycle(&mut self, settings: &Settings) {
        let drive = Subsystem::open(self.now, settings.clone(), &self.store.records);
        self.subsystem = drive.expect("what the drive wrote");
        self.blocks.clear();
        self.store.commits.clear();
        self.forget();
    }

    /// Adds a controller to the drive, and returns a machine for that controller. Only one of the
    /// two machines holds the drive: this one until [`swap_drive`](Self::swap_drive).
    pub fn beside(&mut self) -> Self {
        let cntlid = self.subsystem.add_controller(self.now);
        let nothing = Config::new("NONE", vec![::nvme::NamespaceConfig::new(1)]);
        Self { cntlid, ..Self::new(nothing) }
    }

    /// Exchanges the drives of two machines. Both machines get the later of their times.
    pub fn swap_drive(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.subsystem, &mut other.subsystem);
        std::mem::swap(&mut self.media, &mut other.media);
        std::mem::swap(&mut self.store, &mut other.store);
        std::mem::swap(&mut self.blocks, &mut other.blocks);
        let now = self.now.max(other.now);
        (self.now, other.now) = (now, now);
    }

    /// Creates a testbed as [`new`](Self::new), and enumerates the drive as
    /// [`enumerate`](Self::enumerate).
    pub fn enumerated(config: Config, msix: bool) -> Self {
        let mut testbed = Self::new(config);
        testbed.enumerate(msix);
        testbed
    }

    /// Sets BAR 0, memory space, bus mastering, and with `msix` MSI-X.
    pub fn enumerate(&mut self, msix: bool) {
        self.config_write(0x10, BAR as u32);
        self.config_write(0x14, (BAR >> 32) as u32);
        self.config_write(0x04, 0x0006);
        // MRRS 4096, MPS 256, extended tags.
        let control = self.capability(0x10) + 8;
        self.config_write(control, 5 << 12 | 1 << 8 | 1 << 5);
        if !msix {
            return;
        }
        let capability = self.capability(0x11);
        let control = self.config_read(capability);
        let vectors = u64::from(control >> 16 & 0x7ff) + 1;
        let table = u64::from(self.config_read(capability + 4) & !7);
        for vector in 0..vectors {
            let entry = table + vector * 16;
            for (at, value) in [(0, MSI as u32), (4, 0), (8, vector as u32), (12, 0)] {
                self.write(entry + at, 4, value.into());
            }
        }
        self.config_write(capability, control | 1 << 31);
    }

    /// Returns the function with its port.
    pub fn port(&mut self) -> Port<'_> {
        self.subsystem.port(self.cntlid)
    }

    /// Returns the controller that the machine uses.
    pub fn controller(&self) -> &Controller {
        self.subsystem.controller(self.cntlid)
    }

    /// Returns the offset of the capability with this ID, which must exist.
    pub fn capability(&mut self, id: u8) -> u16 {
        let mut at = self.config_read(0x34) as u16 & 0xfc;
        while at != 0 {
            let header = self.config_read(at);
            if header as u8 == id {
                return at;
            }
            at = (header >> 8) as u16 & 0xfc;
        }
        panic!("no capability {id:#x}");
    }

    /// Reads the double word of configuration space at byte offset `register`.
    pub fn config_read(&mut self, register: u16) -> u32 {
        self.request(Tlp::new(Packet::ConfigRead(config_request(register)), Bytes::new()));
        self.take_answer() as u32
    }

    /// Writes a double word of configuration space.
    pub fn config_write(&mut self, register: u16, value: u32) {
        let data = Bytes::copy_from_slice(&value.to_le_bytes());
        self.request(Tlp::new(Packet::ConfigWrite(config_request(register)), data));
        self.answer = None;
    }

    /// Reads `size` bytes of BAR 0.
    pub fn read(&mut self, offset: u64, size: usize) -> u64 {
        let read = Tlp::read_bytes(ROOT, Tag::default(), BAR + offset, size);
        self.request(read.expect("a register access"));
        self.take_answer() >> (8 * (offset & 3)) & (u64::MAX >> (64 - 8 * size as u32))
    }

    /// Writes `size` bytes of BAR 0.
    pub fn write(&mut self, offset: u64, size: usize, value: u64) {
        let bytes = Bytes::copy_from_slice(&value.to_le_bytes()[..size]);
        let write = Tlp::write_bytes(ROOT, BAR + offset, &bytes);
        self.request(write.expect("a register access"));
    }

    fn request(&mut self, tlp: Tlp) {
        let now = self.now;
        self.port().handle(now, Input::Tlp(tlp));
        self.take_tlps(Ready::ALL);
    }

    fn take_answer(&mut self) -> u64 {
        match self.answer.take() {
            Some((Status::Success, data)) => {
                let mut bytes = [0; 8];
                bytes[..data.len()].copy_from_slice(&data);
                u64::from_le_bytes(bytes)
            }
            _ => u64::MAX,
        }
    }

    /// Resets the link: the function loses all state, including its configuration.
    pub fn hot_reset(&mut self) {
        let now = self.now;
        self.port().handle(now, Input::HotReset);
        self.forget();
    }

    /// Sets Initiate Function Level Reset.
    pub fn function_level_reset(&mut self) {
        let control = self.capability(0x10) + 8;
        let value = self.config_read(control);
        self.config_write(control, value | 1 << 15);
        self.forget();
    }

    fn forget(&mut self) {
        self.reads.clear();
        self.intx = false;
    }

    /// Takes the drive's TLPs, block requests and changes of records until the drive has none now.
    /// `ready` limits the classes of TLPs.
    pub fn take_tlps(&mut self, ready: Ready) {
        let now = self.now;
        while let Output::Tlp(tlp) = self.port().poll(now, ready) {
            self.receive(tlp);
        }
        while let Some(request) = self.subsystem.poll_block() {
            self.blocks.push_back(request);
        }
        self.store.commits.extend(self.subsystem.poll_store());
    }

    fn receive(&mut self, tlp: Tlp) {
        match tlp.packet {
            Packet::MemoryRead(request) => {
                if self.reads.is_empty() {
                    self.waiting_since = self.now;
                }
                self.reads.push_back(request);
            }
            Packet::MemoryWrite(request) => self.store(request, &tlp.data),
            Packet::Completion(completion) => self.answer = Some((completion.status, tlp.data)),
            Packet::Message(message) => match message.code {
                message_code::ASSERT_INTA => self.intx = true,
                message_code::DEASSERT_INTA => self.intx = false,
                code => panic!("unexpected message {code:#x}"),
            },
            packet => panic!("a drive sends no {packet:?}"),
        }
    }

    fn store(&mut self, request: MemoryRequest, data: &Bytes) {
        let (address, length) = (request.first_byte(), request.byte_count());
        let data = &data[request.leading()..request.leading() + length];
        if address == MSI && length == 4 {
            let vector = u32::from_le_bytes(data.try_into().expect("a double word"));
            self.interrupts.push(vector);
            self.unsignalled.remove(&vector.into());
            return;
        }
        if let Some(at) = address.checked_sub(QUEUES)
            && at & 0x8000 != 0
        {
            self.unsignalled.insert(at >> 16);
        }
        for ram in &self.memory {
            if let Some(place) = ram.borrow_mut().get_mut(address, length) {
                place.copy_from_slice(data);
                return;
            }
        }
        self.stray_writes += 1;
    }

    /// Returns bytes of host memory; `None` if there is no memory at this address.
    pub fn load(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.memory.iter().find_map(|ram| Some(ram.borrow_mut().get(address, length)?.to_vec()))
    }

    /// Writes host memory.
    ///
    /// # Panics
    /// If there is no memory at this address.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let put = |ram: &Rc<RefCell<Ram>>| {
            let mut ram = ram.borrow_mut();
            ram.get_mut(address, bytes.len()).map(|place| place.copy_from_slice(bytes)).is_some()
        };
        assert!(self.memory.iter().any(put), "no memory at {address:#x}");
    }

    /// Writes a PRP list into host memory.
    pub fn put_list(&mut self, address: u64, entries: impl IntoIterator<Item = u64>) {
        let bytes: Vec<u8> = entries.into_iter().flat_map(u64::to_le_bytes).collect();
        self.put(address, &bytes);
    }

    /// Answers a read of host memory in pieces. Answers Unsupported Request with `refuse`, or if
    /// there is no memory.
    pub fn answer_read(&mut self, request: MemoryRequest, refuse: bool) {
        let (address, length) = (request.first_byte(), request.byte_count());
        let data = self.load(address, length).filter(|_| !refuse);
        let Some(data) = data else {
            let refusal = request.completion(ROOT, Status::UnsupportedRequest, length);
            return self.complete(refusal, Bytes::new());
        };
        let data = Bytes::from(data);
        let mut sent = 0;
        while sent < length {
            let at = address + sent as u64;
            // Pieces extend over one or two boundaries, to test both cases.
            let most = READ_BOUNDARY * (1 + request.tag.get() as usize % 2);
            let piece = (length - sent).min(most - at as usize % READ_BOUNDARY);
            let payload = whole_double_words(at, data.slice(sent..sent + piece));
            self.complete(request.completion(ROOT, Status::Success, length - sent), payload);
            sent += piece;
        }
    }

    fn complete(&mut self, completion: Completion, data: Bytes) {
        let tlp = Tlp::new(Packet::Completion(completion), data);
        let now = self.now;
        self.port().handle(now, Input::Tlp(tlp));
    }

    /// Executes the oldest block request; returns `false` if there is none.
    pub fn serve_block(&mut self) -> bool {
        let Some(request) = self.blocks.pop_front() else { return false };
        let (id, result) = (request.id, self.media.execute(request));
        self.subsystem.complete_block(self.now, id, result);
        true
    }

    /// Stores the oldest change of records; returns `false` if there is none.
    pub fn serve_store(&mut self) -> bool {
        let Some(commit) = self.store.commits.pop_front() else { return false };
        let (create, remove) = (commit.create.clone(), commit.remove.clone());
        let (id, result) = (commit.id, self.store.store(commit));
        if result.is_ok() {
            let zeroes = |one: ::nvme::Contents| (one.nsid, vec![0; one.bytes as usize]);
            self.media.namespaces.extend(create.map(zeroes));
        }
        self.subsystem.complete_store(self.now, id, result);
        for contents in remove.iter().filter(|_| result.is_ok()) {
            self.remove_media(contents.nsid);
        }
        true
    }

    /// Removes the media of a namespace, and fails its outstanding requests.
    fn remove_media(&mut self, nsid: u32) {
        self.media.namespaces.remove(&nsid);
        let lost = self.blocks.iter().filter(|request| request.nsid == nsid);
        let lost: Vec<u64> = lost.map(|request| request.id).collect();
        self.blocks.retain(|request| request.nsid != nsid);
        for id in lost {
            self.subsystem.complete_block(self.now, id, Err(::nvme::block::Error::Internal));
        }
    }

    /// Processes TLPs, block requests and changes of records until there are none. Takes no virtual
    /// time.
    pub fn settle(&mut self) {
        loop {
            self.take_tlps(Ready::ALL);
            if let Some(request) = self.reads.pop_front() {
                self.answer_read(request, false);
            } else if !self.serve_block() && !self.serve_store() {
                return;
            }
        }
    }

    /// Processes everything as [`settle`](Self::settle), and lets lost requests time out.
    pub fn settle_lost(&mut self) {
        for _ in 0..3 {
            self.settle();
            self.pass(COMPLETION_TIMEOUT);
        }
        self.settle();
    }

    /// Advances virtual time by `span`.
    pub fn pass(&mut self, span: Duration) {
        self.now += span;
        if self.now - self.waiting_since > LOST_AFTER {
            self.reads.clear();
        }
        self.take_tlps(Ready::ALL);
    }

    /// Runs a task of host software until it finishes.
    pub fn run<T>(&mut self, bus: &Bus, mut task: Task<T>) -> T {
        loop {
            if let Some(value) = task.poll(self.now) {
                self.carry(bus);
                return value;
            }
            self.carry(bus);
        }
    }

    /// Executes the requests of host software, and all that follows from them.
    pub fn carry(&mut self, bus: &Bus) {
        self.carry_requests(bus);
        self.settle();
    }

    /// Executes the requests of host software. The drive is served only while the software sleeps.
    pub fn carry_requests(&mut self, bus: &Bus) {
        while let Some((id, request)) = bus.next_request() {
            match request {
                software::Request::MemoryRead { address, size } => {
                    let value = self.read(address - BAR, size.into());
                    bus.answer(id, value);
                }
                software::Request::MemoryWrite { address, size, value } => {
                    self.write(address - BAR, size.into(), value);
                }
                software::Request::Sleep(span) => {
                    self.settle();
                    self.pass(span);
                    bus.answer(id, 0);
                }
                other => panic!("a driver does not ask for {other:?}"),
            }
        }
    }
}

impl Memory for Testbed {
    fn read_at(&mut self, address: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.load(address, bytes.len()).expect("host memory"));
    }

    fn write_at(&mut self, address: u64, bytes: &[u8]) {
        self.put(address, bytes);
    }
}

fn config_request(register: u16) -> ConfigRequest {
    ConfigRequest::whole(ConfigKind::Type0, ROOT, DRIVE, register)
}
