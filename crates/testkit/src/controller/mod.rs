//! A model of another vendor's NVMe controller, which shares no code with the crate `nvme`. The
//! model obeys the specification, but reads in as unusual an order as the specification permits.
//! The test moves the controller's TLPs.

mod admin;
mod command;

pub use admin::Disk;
pub use command::{Command, Manners};

use bytes::Bytes;
use command::u16_at;
pub(crate) use command::{u32_at, u64_at};
use stats::random::Random;
use std::collections::{BTreeMap, VecDeque};
use wire::tlp::{Packet, Status, Tlp};
use wire::{Bdf, Tag};

/// BDF of the controller until a configuration request has another BDF.
pub const DRIVE: Bdf = Bdf::new(1, 0, 0);
/// Address of the controller's MSI-X messages.
pub const MSI: u64 = 0xfee0_0000;
/// Size of a memory page in bytes.
pub const PAGE: u64 = 4096;

#[derive(Debug)]
struct Submission {
    base: u64,
    entries: u16,
    next: u16,
    tail: u16,
    completion: u16,
    fetching: bool,
}

#[derive(Debug)]
struct Completions {
    base: u64,
    entries: u16,
    tail: u16,
    head: u16,
    phase: bool,
    vector: Option<u16>,
}

#[derive(Debug)]
enum Purpose {
    Entries { queue: u16, count: u16 },
    List { number: u64, count: usize },
    Data { number: u64, at: usize },
    Nothing,
}

/// The use of bytes that the controller has read.
#[derive(Debug)]
pub enum Used {
    /// An entry of a submission queue.
    Entry {
        /// The queue.
        queue: u16,
        /// The entry.
        entry: Vec<u8>,
    },
    /// All data of a command from the host.
    Data {
        /// The queue.
        queue: u16,
        /// Command identifier.
        cid: u16,
        /// The data.
        data: Vec<u8>,
    },
}

/// A model of an NVMe controller with one function.
#[derive(Debug)]
pub struct Controller {
    /// Behaviour of the controller.
    pub manners: Manners,
    /// BDF of the controller, from configuration requests (PCIe Base 4.0, section 2.2.6.2).
    id: Bdf,
    bar: u64,
    sizing: bool,
    /// Whether bus mastering is enabled.
    pub master: bool,
    registers: [u8; 0x38],
    queues: BTreeMap<u16, Submission>,
    completions: BTreeMap<u16, Completions>,
    /// Fetched commands without a completion, by a number that counts fetched commands.
    pub commands: BTreeMap<u64, Command>,
    numbers: u64,
    reads: BTreeMap<u16, (Purpose, Vec<u8>, usize)>,
    next_tag: u16,
    /// TLPs that the test must deliver, oldest first.
    pub out: VecDeque<Tlp>,
    /// Uses of all bytes that the controller has read, oldest first.
    pub used: Vec<Used>,
    /// Whether tails of I/O queues come from shadow doorbells.
    shadow: bool,
    /// Whether reads continue while bus mastering is off.
    pub nasty: bool,
    /// Whether an interrupt follows each completion entry.
    pub interrupts: bool,
    /// Number of completed I/O commands.
    pub completed: u64,
    /// Blocks of the namespace; `None` for random data.
    pub disk: Option<Disk>,
}

impl Controller {
    /// Creates a controller after power-on.
    pub fn new(manners: Manners) -> Self {
        Self {
            manners,
            id: DRIVE,
            bar: 0,
            sizing: false,
            master: false,
            registers: [0; 0x38],
            queues: BTreeMap::new(),
            completions: BTreeMap::new(),
            commands: BTreeMap::new(),
            numbers: 0,
            reads: BTreeMap::new(),
            next_tag: 0,
            out: VecDeque::new(),
            used: Vec::new(),
            shadow: false,
            nasty: false,
            interrupts: false,
            completed: 0,
            disk: None,
        }
    }

    /// Performs a hot reset. Completions of outstanding reads will not arrive.
    pub fn hot_reset(&mut self) {
        let Self { numbers, next_tag, completed, .. } = *self;
        let disk = self.disk.take();
        *self = Self { numbers, next_tag, completed, disk, ..Self::new(self.manners) };
    }

    /// Performs a function level reset. Completions of outstanding reads still arrive.
    pub fn function_level_reset(&mut self) {
        self.disable();
        let reads = std::mem::take(&mut self.reads);
        self.hot_reset();
        self.reads = reads;
    }

    fn disable(&mut self) {
        self.shadow = false;
        self.queues.clear();
        self.completions.clear();
        self.commands.clear();
        self.reads.values_mut().for_each(|read| read.0 = Purpose::Nothing);
        self.out.clear();
    }

    /// Handles a TLP for the controller.
    pub fn handle(&mut self, tlp: Tlp) {
        match tlp.packet {
            Packet::ConfigRead(c) => {
                let value = match c.register {
                    0x00 => 0x0001_1234,
                    0x08 => 0x0108_0200,
                    0x10 if self.sizing => 0xffff_c004,
                    0x10 => self.bar as u32 | 4,
                    0x14 if self.sizing => !0,
                    0x14 => (self.bar >> 32) as u32,
                    _ => 0,
                };
                let data = Bytes::copy_from_slice(&value.to_le_bytes());
                self.out.push_back(Tlp {
                    data,
                    ..Tlp::completion(c.completion(c.target, Status::Success))
                });
            }
            Packet::ConfigWrite(c) => {
                let value = u32_at(&tlp.data, 0);
                self.id = c.target;
                match c.register {
                    0x04 => self.master = value & 4 != 0,
                    0x10 => (self.sizing, self.bar) = (value == !0, u64::from(value & !0xf)),
                    0x14 if value != !0 => self.bar |= u64::from(value) << 32,
                    0x48 if value & 1 << 15 != 0 => self.function_level_reset(),
                    _ => {}
                }
                self.out.push_back(Tlp::completion(c.completion(c.target, Status::Success)));
            }
            Packet::MemoryRead(r) => {
                let at = r.address.wrapping_sub(self.bar) as usize;
                let data = Bytes::from(self.register(at, r.length()));
                let completion = r.completion(self.id, Status::Success, r.length());
                self.out.push_back(Tlp { data, ..Tlp::completion(completion) });
            }
            Packet::MemoryWrite(r) => self.set_register((r.address - self.bar) as usize, &tlp.data),
            Packet::Completion(c) => {
                let Some((_, bytes, wanted)) = self.reads.get_mut(&c.tag.get()) else {
                    panic!("no read has tag {}", c.tag)
                };
                bytes.extend_from_slice(&tlp.data);
                let refused = c.status != Status::Success;
                if refused || bytes.len() == *wanted {
                    let (purpose, bytes, _) = self.reads.remove(&c.tag.get()).unwrap();
                    if !refused {
                        self.came(purpose, bytes);
                    }
                }
            }
            Packet::Message(_) => panic!("a message for the function: {tlp:?}"),
        }
    }

    /// Returns registers from offset `at` of BAR 0; zeroes where there are no registers.
    pub fn register(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = self.registers.to_vec();
        // CAP: MQES, CQR, TO, DSTRD, and the NVM command set.
        let stride = u64::from(self.manners.dstrd);
        bytes[..8]
            .copy_from_slice(&(0xff | 1 << 16 | 2 << 24 | stride << 32 | 1 << 37).to_le_bytes());
        bytes[8..12].copy_from_slice(&0x1_0400_u32.to_le_bytes());
        // CSTS: RDY, and SHST (shutdown complete).
        let configuration = u32_at(&bytes, 0x14);
        bytes[0x1c] =
            configuration as u8 & 1 | if configuration >> 14 & 3 != 0 { 2 << 2 } else { 0 };
        bytes.into_iter().skip(at).chain(std::iter::repeat(0)).take(length).collect()
    }

    /// Writes registers or a doorbell.
    ///
    /// # Panics
    /// If `at` is neither a register that can be written nor a doorbell.
    pub fn set_register(&mut self, at: usize, data: &[u8]) {
        if at >= 0x1000 {
            let index = (at - 0x1000) >> (2 + self.manners.dstrd);
            let (queue, value) = ((index / 2) as u16, u16_at(data, 0));
            match index % 2 {
                0 if self.shadow && queue != 0 => {}
                0 => self.ring(queue, value),
                _ => self.completions.get_mut(&queue).into_iter().for_each(|q| q.head = value),
            }
            return;
        }
        self.registers[at..at + data.len()].copy_from_slice(data);
        if at == 0x14 {
            self.disable();
            if data[0] & 1 != 0 {
                let sizes = u32_at(&self.registers, 0x24);
                let [asq, acq] = [0x28, 0x30].map(|at| u64_at(&self.registers, at));
                self.create_completions(0, acq, (sizes >> 16) as u16 + 1, Some(0));
                self.create_submission(0, asq, sizes as u16 + 1, 0);
            }
        }
    }

    /// Sets the tail of a submission queue, from a doorbell or a shadow doorbell.
    pub fn ring(&mut self, queue: u16, tail: u16) {
        self.queues.get_mut(&queue).into_iter().for_each(|queue| queue.tail = tail);
    }

    fn create_submission(&mut self, id: u16, base: u64, entries: u16, completion: u16) {
        let (next, tail, fetching) = (0, 0, false);
        self.queues.insert(id, Submission { base, entries, next, tail, completion, fetching });
    }

    fn create_completions(&mut self, id: u16, base: u64, entries: u16, vector: Option<u16>) {
        let (tail, head, phase) = (0, 0, true);
        self.completions.insert(id, Completions { base, entries, tail, head, phase, vector });
    }

    /// Returns whether the controller has nothing to do. Asynchronous Event Requests may be open.
    pub fn is_idle(&self) -> bool {
        let waits = |command: &Command| command.is_event_request();
        let rung = self.queues.values().any(|queue| queue.next != queue.tail);
        self.reads.is_empty() && self.out.is_empty() && !rung && self.commands.values().all(waits)
    }

    /// Performs a random action. The action may have no effect.
    pub fn act(&mut self, random: &mut Random) {
        if !self.master && !self.nasty || self.reads.len() > 60 {
            return;
        }
        match random.below(8) {
            0 | 1 => self.fetch(random),
            2 if self.manners.speculates => self.speculate(random),
            2..=5 => self.read_data(random),
            _ => self.complete(random),
        }
    }

    fn pick<'a, T>(
        random: &mut Random,
        mut all: impl ExactSizeIterator<Item = &'a T>,
    ) -> Option<&'a T> {
        let count = all.len();
        if count == 0 { None } else { all.nth(random.below(count as u64) as usize) }
    }

    fn read(&mut self, purpose: Purpose, address: u64, length: usize) {
        while self.reads.contains_key(&self.next_tag) {
            self.next_tag = (self.next_tag + 1) % 256;
        }
        let read = Tlp::read_bytes(self.id, Tag::truncate(self.next_tag), address, length);
        self.out.push_back(read.expect("within a page"));
        self.reads.insert(self.next_tag, (purpose, Vec::new(), length));
        self.next_tag = (self.next_tag + 1) % 256;
    }

    fn fetch(&mut self, random: &mut Random) {
        let Some(&id) = Self::pick(random, self.queues.keys()) else { return };
        let queue = self.queues.get_mut(&id).unwrap();
        if queue.fetching || queue.next == queue.tail {
            return;
        }
        let rung = if queue.tail > queue.next { queue.tail } else { queue.entries } - queue.next;
        let count = rung.min(self.manners.batch);
        // Fetches all entries up to the end of the ring, regardless of the tail.
        let all = self.manners.speculates && random.below(3) == 0;
        let asked = if all { queue.entries - queue.next } else { count }.min(16);
        let (count, address) = (count.min(asked), queue.base + u64::from(queue.next) * 64);
        queue.fetching = true;
        self.read(Purpose::Entries { queue: id, count }, address, usize::from(asked) * 64);
    }

    /// Reads data or a submission queue entry that the controller does not need.
    fn speculate(&mut self, random: &mut Random) {
        if let (0, Some(command)) = (random.below(3), Self::pick(random, self.commands.values())) {
            let range = command.ranges.first().filter(|(_, length)| *length > 0);
            if let Some((address, length)) = range.copied() {
                self.read(Purpose::Nothing, address, length.min(self.manners.chunk));
            }
            return;
        }
        let Some(queue) = Self::pick(random, self.queues.values()) else { return };
        let slot = random.below(queue.entries.into());
        let address = queue.base + slot * 64;
        self.read(Purpose::Nothing, address, 64);
    }

    fn read_data(&mut self, random: &mut Random) {
        let Some(&number) = Self::pick(random, self.commands.keys()) else { return };
        let command = self.commands.get_mut(&number).unwrap();
        if let Some((address, pages)) = command.list.filter(|_| !command.waits) {
            let count = pages.min((PAGE - address % PAGE) as usize / 8);
            command.waits = true;
            return self.read(Purpose::List { number, count }, address, count * 8);
        }
        let (mut begin, at) = (0, command.asked);
        for (address, length) in command.ranges.clone() {
            if command.reads_host() && at < begin + length {
                let count = (begin + length - at).min(self.manners.chunk);
                command.asked += count;
                let address = address + (at - begin) as u64;
                return self.read(Purpose::Data { number, at }, address, count);
            }
            begin += length;
        }
    }

    fn came(&mut self, purpose: Purpose, bytes: Vec<u8>) {
        match purpose {
            Purpose::Entries { queue: id, count } => {
                let Some(queue) = self.queues.get_mut(&id) else { return };
                queue.fetching = false;
                queue.next = (queue.next + count) % queue.entries;
                for entry in bytes.chunks(64).take(count.into()) {
                    self.used.push(Used::Entry { queue: id, entry: entry.to_vec() });
                    let command = Command::new(id, entry, self.manners.shift);
                    self.commands.insert(self.numbers, command);
                    self.numbers += 1;
                }
            }
            Purpose::List { number, count } => {
                let Some(command) = self.commands.get_mut(&number) else { return };
                assert_eq!(bytes.len(), count * 8);
                command.waits = false;
                command.add_list(&bytes);
            }
            Purpose::Data { number, at } => {
                let Some(command) = self.commands.get_mut(&number) else { return };
                command.data[at..at + bytes.len()].copy_from_slice(&bytes);
                command.came += bytes.len();
            }
            Purpose::Nothing => {}
        }
    }

    fn complete(&mut self, random: &mut Random) {
        let Some(&number) = Self::pick(random, self.commands.keys()) else { return };
        let command = &self.commands[&number];
        let (id, cid) = (command.queue, command.cid);
        // Asynchronous Event Requests stay open.
        if command.is_event_request() {
            return;
        }
        let completion = self.queues[&id].completion;
        let whole = command.is_whole();
        let fails = id != 0 && !whole && random.below(100) < self.manners.fails;
        let queue = &self.completions[&completion];
        if !whole && !fails || (queue.tail + 1) % queue.entries == queue.head {
            return;
        }
        let command = self.commands.remove(&number).unwrap();
        let shift = self.manners.shift;
        let (mut status, mut result) = (if fails { 4 } else { 0 }, 0);
        if let (true, Some(disk)) = (id != 0, &self.disk) {
            status = disk.status(&command, shift);
        }
        if whole && command.reads_host() {
            if let Some(disk) = &mut self.disk {
                disk.write(&command, shift);
            }
            self.used.push(Used::Data { queue: id, cid, data: command.data.clone() });
        } else if whole && id != 0 && command.entry[0] == 2 && status == 0 {
            let bytes = match &mut self.disk {
                Some(disk) => disk.read(&command, shift),
                None => random.bytes(command.data.len()),
            };
            let mut rest = &bytes[..];
            for (address, length) in &command.ranges {
                let (piece, behind) = rest.split_at(*length);
                rest = behind;
                self.write(*address, piece.to_vec());
            }
        }
        if id == 0 {
            (status, result) = self.admin(&command.entry);
        }
        self.completed += u64::from(id != 0);
        let Some(submission) = self.queues.get(&id) else { return };
        let head = if self.manners.lags && id != 0 { 0 } else { submission.next };
        let queue = self.completions.get_mut(&completion).unwrap();
        let (status, vector) = (u16::from(queue.phase) | status << 1, queue.vector);
        let mut entry = u32::to_le_bytes(result).to_vec();
        entry.extend([0; 4]);
        [head, id, cid, status].iter().for_each(|field| entry.extend(field.to_le_bytes()));
        let address = queue.base + u64::from(queue.tail) * 16;
        queue.tail = (queue.tail + 1) % queue.entries;
        queue.phase ^= queue.tail == 0;
        if self.manners.pieces && id != 0 {
            let tail = entry.split_off(8);
            self.write(address, entry);
            return self.write(address + 8, tail);
        }
        self.write(address, entry);
        if let (true, Some(vector)) = (self.interrupts, vector) {
            self.write(MSI, u32::from(vector).to_le_bytes().to_vec());
        }
    }

    /// Reads a submission queue entry that the controller does not need.
    pub fn speculate_at(&mut self, address: u64) {
        self.read(Purpose::Nothing, address, 64);
    }

    fn write(&mut self, address: u64, bytes: Vec<u8>) {
        self.out
            .push_back(Tlp::write_bytes(self.id, address, &bytes.into()).expect("within a page"));
    }
}
