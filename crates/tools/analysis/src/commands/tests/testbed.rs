//! A driver and a drive that tests control TLP by TLP.

use super::super::{Analyser, AnalyserSettings, Command, Direction, Event, HostRequest, RingState};
use bytes::Bytes;
use wire::nvme::{self, register, register::Doorbell};
use wire::push::{self, Record};
use wire::tlp::{
    Completion, ConfigKind, ConfigRequest, MemoryRequest, Packet, Status as TlpStatus, Tlp,
};
use wire::{Bdf, Duration, Instant, Tag};

pub const HOST: Bdf = Bdf::new(0, 0, 0);
pub const ROOT_PORT: Bdf = Bdf::new(0, 1, 0);

pub const DRIVE: Bdf = Bdf::new(3, 0, 0);
/// Time between two TLPs.
pub const GAP: Duration = Duration::from_ns(100);

/// Addresses and queue positions of one drive.
#[derive(Clone, Debug)]
pub struct Drive {
    pub bdf: Bdf,
    pub bar: u64,
    /// Address of the host memory for the drive's queues.
    pub memory: u64,
    /// By queue: index of the next entry that the host submits (`tails`), that the drive posts
    /// (`posted`), and that the host takes (`heads`).
    pub tails: [u16; 4],
    pub posted: [u16; 4],
    pub heads: [u16; 4],
    /// Whether the drive posts with phase 0, by queue: in every second round.
    pub inverted: [bool; 4],
    pub entries: u16,
    pub stride: u8,
}

#[derive(Default)]
pub struct Testbed {
    pub analyser: Analyser,
    pub now: Instant,
    pub tlps: Vec<(Instant, Direction, Tlp)>,
    /// TLPs that passed only between the drive and the port in front of it.
    pub local: Vec<(Instant, Direction, Tlp)>,
    pub commands: Vec<Command>,
    pub requests: Vec<HostRequest>,
    pub resets: usize,
    pub rings: Vec<RingState>,
    pub gap: Duration,
    pub max_payload: usize,
    pub read_request: usize,
    pub completion_size: usize,
    tag: u16,
}

impl Drive {
    pub fn new(bdf: Bdf, bar: u64, memory: u64) -> Self {
        let [tails, posted, heads] = [[0; 4]; 3];
        let inverted = [false; 4];
        Self { bdf, bar, memory, tails, posted, heads, inverted, entries: 8, stride: 0 }
    }

    pub fn sq(&self, queue: u16) -> u64 {
        self.memory + u64::from(queue) * 0x2000
    }

    pub fn cq(&self, queue: u16) -> u64 {
        self.sq(queue) + 0x1000
    }

    pub fn doorbell(&self, doorbell: Doorbell) -> u64 {
        self.bar + doorbell.offset(self.stride)
    }
}

impl Testbed {
    pub fn new(settings: AnalyserSettings) -> Self {
        let (max_payload, read_request, completion_size) = (256, 512, 256);
        let analyser = Analyser::new(settings);
        Self { analyser, gap: GAP, max_payload, read_request, completion_size, ..Self::default() }
    }

    /// Creates a testbed with a drive that has `queues` queue pairs and blocks of 512 bytes.
    pub fn with_drive(settings: AnalyserSettings, gap: Duration, queues: u16) -> (Self, Drive) {
        let mut testbed = Self { gap, ..Self::new(settings) };
        let mut drive = Drive::new(DRIVE, 0xe000_0000, 0x1_0000);
        testbed.enumerate(&drive);
        testbed.bring_up(&mut drive, queues, 9);
        (testbed, drive)
    }

    pub fn send(&mut self, direction: Direction, tlp: Tlp) {
        self.now += self.gap;
        self.analyser.push(self.now, direction, &tlp);
        self.tlps.push((self.now, direction, tlp));
        while let Some(event) = self.analyser.next_event() {
            match event {
                Event::Command(command) => self.commands.push(*command),
                Event::Request(request) => self.requests.push(request),
                Event::Reset { .. } => self.resets += 1,
                Event::Ring(state) => self.rings.push(state),
            }
        }
    }

    pub fn next_tag(&mut self) -> Tag {
        self.tag = (self.tag + 1) % 256;
        Tag::truncate(self.tag)
    }

    fn config(&mut self, target: Bdf, register: u16, write: Option<u32>, read: u32) {
        let tag = self.next_tag();
        let kind = ConfigKind::Type1;
        let request = ConfigRequest { kind, requester: HOST, tag, target, register, first_be: 0xf };
        let (packet, data, answer) = match write {
            Some(value) => (Packet::ConfigWrite(request), dword(value), Bytes::new()),
            None => (Packet::ConfigRead(request), Bytes::new(), dword(read)),
        };
        self.send(Direction::Down, Tlp::new(packet, data));
        let packet = Packet::Completion(completion(target, HOST, tag, 4, 0));
        self.send(Direction::Up, Tlp::new(packet, answer));
    }

    pub fn config_read(&mut self, target: Bdf, register: u16, value: u32) {
        self.config(target, register, None, value);
    }

    pub fn config_write(&mut self, target: Bdf, register: u16, value: u32) {
        self.config(target, register, Some(value), 0);
    }

    pub fn write(&mut self, address: u64, value: u32) {
        let request = MemoryRequest::for_bytes(HOST, Tag::default(), address, 4).unwrap();
        self.send(Direction::Down, Tlp::memory_write(request, dword(value)));
    }

    pub fn read(&mut self, drive: &Drive, offset: u64, value: u64, length: usize) {
        let tag = self.next_tag();
        let address = drive.bar + offset;
        let request = MemoryRequest::for_bytes(HOST, tag, address, length).unwrap();
        self.send(Direction::Down, Tlp::memory_read(request));
        let answer = completion(drive.bdf, HOST, tag, length as u16, address as u8 & 0x7f);
        let data = Bytes::copy_from_slice(&value.to_le_bytes()[..length]);
        self.send(Direction::Up, Tlp::new(Packet::Completion(answer), data));
    }

    /// Enumerates one function with a 64-bit BAR 0 of 16 KiB, the MSI-X table at 3000h, and the PCI
    /// Express capability at 80h.
    pub fn enumerate(&mut self, drive: &Drive) {
        let bdf = drive.bdf;
        self.config_read(bdf, 0x00, 0x0010_1b36);
        self.config_read(bdf, 0x08, 0x0108_0201);
        self.config_read(bdf, 0x0c, 0);
        self.config_read(bdf, 0x34, 0x40);
        self.config_read(bdf, 0x40, 0x000f_8011);
        self.config_read(bdf, 0x44, 0x3000);
        self.config_read(bdf, 0x80, 0x0002_0010);
        self.config_read(bdf, 0x10, 0x0000_0004);
        self.config_write(bdf, 0x10, !0);
        self.config_read(bdf, 0x10, 0xffff_c004);
        self.config_write(bdf, 0x10, 0);
        self.config_write(bdf, 0x14, !0);
        self.config_read(bdf, 0x14, !0);
        self.config_write(bdf, 0x10, drive.bar as u32);
        self.config_write(bdf, 0x14, (drive.bar >> 32) as u32);
        self.config_write(bdf, 0x04, 6);
        for vector in 0..4 {
            let at = drive.bar + 0x3000 + vector * 16;
            self.write(at, 0xfee0_0000);
            self.write(at + 4, 0);
            self.write(at + 8, 0x40 + vector as u32);
            self.write(at + 12, 0);
        }
    }

    /// Writes the registers, creates the admin queue, identifies namespace 1 (blocks of `block`
    /// bytes) and creates `queues` pairs of I/O queues.
    pub fn bring_up(&mut self, drive: &mut Drive, queues: u16, block: u8) {
        let cap = register::Capabilities {
            max_queue_entries: 255,
            doorbell_stride: drive.stride,
            command_sets: 1,
            ..Default::default()
        };
        self.read(drive, register::CAP, cap.bits(), 8);
        let size = u32::from(drive.entries) - 1;
        self.write(drive.bar + register::AQA, size << 16 | size);
        for (at, value) in [(register::ASQ, drive.sq(0)), (register::ACQ, drive.cq(0))] {
            self.write(drive.bar + at, value as u32);
            self.write(drive.bar + at + 4, (value >> 32) as u32);
        }
        self.write(drive.bar + register::CC, 0x0046_0001);
        self.read(drive, register::CSTS, 1, 4);
        self.identify(drive, block);
        for queue in 1..=queues {
            let size = (u32::from(drive.entries) - 1) << 16;
            let mut entry = nvme::Command { opcode: 5, cid: 100, ..Default::default() };
            (entry.prp1, entry.cdw10) = (drive.cq(queue), size | u32::from(queue));
            entry.cdw11 = 3 | u32::from(queue.min(3)) << 16;
            self.run(drive, 0, entry);
            entry = nvme::Command { opcode: 1, cid: 101, ..entry };
            (entry.prp1, entry.cdw11) = (drive.sq(queue), 1 | u32::from(queue) << 16);
            self.run(drive, 0, entry);
        }
    }

    fn identify(&mut self, drive: &mut Drive, block: u8) {
        let entry = nvme::Command { opcode: 6, nsid: 1, prp1: 0x9_0000, ..Default::default() };
        let mut data = vec![0; 4096];
        data[130] = block;
        self.begin(drive, 0, &[entry]);
        self.write_host(drive, 0x9_0000, &data);
        self.end(drive, 0, 0, 0);
    }

    /// Runs a command without data from its doorbell to its end.
    pub fn run(&mut self, drive: &mut Drive, queue: u16, entry: nvme::Command) {
        self.begin(drive, queue, &[entry]);
        self.end(drive, queue, entry.cid, 0);
    }

    /// Writes the doorbell for `entries`; the drive fetches them.
    pub fn begin(&mut self, drive: &mut Drive, queue: u16, entries: &[nvme::Command]) {
        let index = self.submit(drive, queue, entries);
        self.fetch(drive, queue, index, entries);
    }

    /// Posts a completion entry and an interrupt; the host takes the entry.
    pub fn end(&mut self, drive: &mut Drive, queue: u16, cid: u16, status: u16) {
        self.complete(drive, queue, queue, cid, status);
        self.take(drive, queue, 1);
    }

    /// Runs reads of 512 bytes with these identifiers on queue 1, one after the other.
    pub fn reads(&mut self, drive: &mut Drive, cids: std::ops::Range<u16>) {
        for cid in cids {
            self.begin(drive, 1, &[io(2, cid, 8, 1, 0x10_0000, 0)]);
            self.write_host(drive, 0x10_0000, &[5; 512]);
            self.end(drive, 1, cid, 0);
        }
    }

    /// Writes the doorbell for `entries`; returns the index of the first.
    pub fn submit(&mut self, drive: &mut Drive, queue: u16, entries: &[nvme::Command]) -> u16 {
        let tail = &mut drive.tails[usize::from(queue)];
        let first = *tail;
        *tail = (first + entries.len() as u16) % drive.entries;
        let tail = u32::from(*tail);
        self.write(drive.doorbell(Doorbell::SubmissionTail(queue)), tail);
        first
    }

    /// Fetches `entries` from `index` on, with one request for each contiguous part of the ring.
    pub fn fetch(&mut self, drive: &Drive, queue: u16, index: u16, entries: &[nvme::Command]) {
        let room = usize::from(drive.entries - index);
        let (before, wrapped) = entries.split_at(room.min(entries.len()));
        for (start, part) in [(index, before), (0, wrapped)] {
            let bytes: Vec<u8> = part.iter().flat_map(nvme::Command::encode).collect();
            if !bytes.is_empty() {
                self.read_host(drive, drive.sq(queue) + u64::from(start) * 64, &bytes);
            }
        }
    }

    /// Sends a read request of the drive for `length` bytes.
    pub fn read_request(&mut self, drive: &Drive, address: u64, length: usize) -> MemoryRequest {
        let tag = self.next_tag();
        let request = MemoryRequest::for_bytes(drive.bdf, tag, address, length).unwrap();
        self.send(Direction::Up, Tlp::memory_read(request));
        request
    }

    /// Sends the host's completions in pieces.
    pub fn answer(&mut self, request: MemoryRequest, bytes: &[u8]) {
        let mut done = 0;
        for piece in bytes.chunks(self.completion_size) {
            let left = (bytes.len() - done) as u16;
            let low = (request.first_byte() as usize + done) as u8 & 0x7f;
            let answer = completion(ROOT_PORT, request.requester, request.tag, left, low);
            let data = Bytes::copy_from_slice(piece);
            self.send(Direction::Down, Tlp::new(Packet::Completion(answer), data));
            done += piece.len();
        }
    }

    /// Sends a push of the host.
    pub fn push(&mut self, drive: &Drive, records: &[Record]) {
        let mut payload = Vec::new();
        records.iter().for_each(|record| record.encode(&mut payload));
        let size = self.completion_size;
        let message = push::message(ROOT_PORT, drive.bdf, size, false, payload.into());
        self.send(Direction::Down, message);
    }

    /// Returns the record of queue `queue`, which the host sends in front of its first push.
    pub fn queue(&self, drive: &Drive, queue: u16) -> Record {
        let last = drive.entries - 1;
        Record::Queue(push::Queue {
            id: queue,
            last,
            head: 0,
            completion_last: last,
            base: drive.sq(queue),
            completion_base: drive.cq(queue),
        })
    }

    /// Returns the records of the next `entries` of queue `queue`.
    pub fn entries(&self, drive: &Drive, queue: u16, entries: &[nvme::Command]) -> Vec<Record> {
        let slots = (u64::from(drive.tails[usize::from(queue)])..).zip(entries);
        let record = |(slot, entry): (u64, &nvme::Command)| {
            let slot = slot % u64::from(drive.entries);
            pushed(queue, entry.cid, drive.sq(queue) + slot * 64, &entry.encode())
        };
        slots.map(record).collect()
    }

    /// Reads `bytes` that the port in front of the drive has.
    pub fn read_port(&mut self, drive: &Drive, address: u64, bytes: &[u8]) {
        let before = self.tlps.len();
        let analyser = std::mem::take(&mut self.analyser);
        self.read_host(drive, address, bytes);
        self.analyser = analyser;
        self.local.extend(self.tlps.drain(before..));
    }

    /// Reads `bytes` from the host. All requests precede the first completion.
    pub fn read_host(&mut self, drive: &Drive, address: u64, bytes: &[u8]) {
        let mut asked = Vec::new();
        for (i, piece) in bytes.chunks(self.read_request).enumerate() {
            let at = address + (i * self.read_request) as u64;
            asked.push((self.read_request(drive, at, piece.len()), piece));
        }
        asked.into_iter().for_each(|(request, piece)| self.answer(request, piece));
    }

    pub fn write_host(&mut self, drive: &Drive, address: u64, bytes: &[u8]) {
        for (i, piece) in bytes.chunks(self.max_payload).enumerate() {
            let at = address + (i * self.max_payload) as u64;
            let request =
                MemoryRequest::for_bytes(drive.bdf, Tag::default(), at, piece.len()).unwrap();
            let data = Bytes::copy_from_slice(piece);
            self.send(Direction::Up, Tlp::memory_write(request, data));
        }
    }

    /// Posts a completion entry without an interrupt. The drive has fetched all entries with a
    /// doorbell.
    pub fn post(&mut self, drive: &mut Drive, cq: u16, sq: u16, cid: u16, status: u16) {
        let posted = &mut drive.posted[usize::from(cq)];
        let index = std::mem::replace(posted, (*posted + 1) % drive.entries);
        let inverted = &mut drive.inverted[usize::from(cq)];
        let phase = !*inverted;
        *inverted ^= *posted == 0;
        let (status, sq_head) = (nvme::Status::from_bits(status), drive.tails[usize::from(sq)]);
        let sq_id = sq;
        let entry = nvme::Completion { sq_id, sq_head, cid, status, phase, result: 0 };
        self.write_host(drive, drive.cq(cq) + u64::from(index) * 16, &entry.encode());
    }

    pub fn interrupt(&mut self, drive: &Drive, vector: u16) {
        self.write_host(drive, 0xfee0_0000, &(0x40 + u32::from(vector)).to_le_bytes());
    }

    /// Posts a completion entry and an interrupt.
    pub fn complete(&mut self, drive: &mut Drive, cq: u16, sq: u16, cid: u16, status: u16) {
        self.post(drive, cq, sq, cid, status);
        self.interrupt(drive, cq.min(3));
    }

    /// Writes the head doorbell for `entries` completion entries.
    pub fn take(&mut self, drive: &mut Drive, cq: u16, entries: u16) {
        let head = &mut drive.heads[usize::from(cq)];
        *head = (*head + entries) % drive.entries;
        let head = u32::from(*head);
        self.write(drive.doorbell(Doorbell::CompletionHead(cq)), head);
    }
}

pub fn dword(value: u32) -> Bytes {
    Bytes::copy_from_slice(&value.to_le_bytes())
}

pub fn completion(completer: Bdf, requester: Bdf, tag: Tag, bytes: u16, low: u8) -> Completion {
    Completion {
        completer,
        requester,
        tag,
        status: TlpStatus::Success,
        byte_count: bytes,
        lower_address: low,
        byte_count_modified: false,
    }
}

/// Returns a record with bytes pushed for a command.
pub fn pushed(queue: u16, command: u16, address: u64, bytes: &[u8]) -> Record {
    Record::Bytes { queue, command, address, bytes: Bytes::copy_from_slice(bytes) }
}

/// A Read or Write.
pub fn io(opcode: u8, cid: u16, slba: u64, blocks: u32, prp1: u64, prp2: u64) -> nvme::Command {
    nvme::Command {
        opcode,
        cid,
        nsid: 1,
        prp1,
        prp2,
        cdw10: slba as u32,
        cdw11: (slba >> 32) as u32,
        cdw12: blocks - 1,
        ..Default::default()
    }
}
