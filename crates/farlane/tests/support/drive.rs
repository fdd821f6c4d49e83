//! The NVMe side of the client: one admin and one I/O queue pair, polled.

use std::path::Path;

use crate::support::client::{BAR0, CONFIG, Client, Doorbells, Memory};
use crate::support::wait_until;

/// Bytes of a block.
pub const BLOCK: usize = 512;
const PAGE: usize = 4096;

/// A virtual address as a process has them: far above 4 GiB.
pub const ADDRESS: u64 = 0x7f5a_c400_0000;
pub const SIZE: u64 = 1 << 20;
// What lies where in the memory.
const ADMIN: u64 = 0;
const IO: u64 = 0x4000;
const PRP_LIST: u64 = 0x8000;
const DATA: u64 = 0x1_0000;
const DEEP_SQ: u64 = 0x8_0000;
const DEEP_CQ: u64 = 0xa_0000;

/// The Command register (PCIe Base 4.0, section 7.5.1.1.3).
const COMMAND: u64 = 4;

// Registers (NVMe 1.4, section 3.1).
const CAP: u64 = 0x00;
const CC: u64 = 0x14;
const CSTS: u64 = 0x1c;
const AQA: u64 = 0x24;
const ASQ: u64 = 0x28;
const ACQ: u64 = 0x30;

/// Opcodes of the NVM command set (NVMe 1.4, figure 346).
pub const WRITE: u8 = 0x01;
pub const READ: u8 = 0x02;

/// A submission queue entry's fields that are used here.
#[derive(Clone, Copy, Default)]
struct Command {
    opcode: u8,
    namespace: u32,
    prp: [u64; 2],
    cdw10: [u32; 3],
}

/// What a queue works with.
type Place<'a> = (&'a Client, &'a Memory, &'a Doorbells);

/// A pair of queues.
struct Queue {
    id: u16,
    sq: u64,
    cq: u64,
    tail: u16,
    head: u16,
    phase: bool,
    commands: u16,
    depth: u16,
}

impl Queue {
    /// Of 8 entries each.
    fn new(id: u16, at: u64) -> Self {
        Self::deep(id, at, at + 0x1000, 8)
    }

    fn deep(id: u16, sq: u64, cq: u64, depth: u16) -> Self {
        Self { id, sq, cq, tail: 0, head: 0, phase: true, commands: 0, depth }
    }

    /// Carries one command out; what it returns in dword 0.
    fn run(&mut self, place: Place<'_>, command: Command) -> u32 {
        let (result, status) = self.try_run(place, command);
        assert_eq!(status, 0, "status of {:#x}", command.opcode);
        result
    }

    /// The same for one that may fail: with its status code and type (NVMe 1.4, figure 124).
    fn try_run(&mut self, place: Place<'_>, command: Command) -> (u32, u16) {
        let number = self.submit(place, command);
        self.complete(place, command, number)
    }

    /// Starts a command; its identifier.
    fn submit(&mut self, (client, memory, doorbells): Place<'_>, command: Command) -> u16 {
        let number = self.commands;
        self.commands = self.commands.wrapping_add(1);
        let mut entry = Vec::new();
        entry.extend((u32::from(command.opcode) | u32::from(number) << 16).to_le_bytes());
        entry.extend(command.namespace.to_le_bytes());
        entry.extend([0; 16]);
        command.prp.iter().for_each(|prp| entry.extend(prp.to_le_bytes()));
        command.cdw10.iter().for_each(|word| entry.extend(word.to_le_bytes()));
        entry.resize(64, 0);
        memory.store(self.sq + u64::from(self.tail) * 64, &entry);
        self.tail = (self.tail + 1) % self.depth;
        doorbells.store(client, u64::from(self.id) * 2, self.tail.into());
        number
    }

    /// Whether the oldest command is completed.
    fn has_completed(&self, memory: &Memory) -> bool {
        let entry = memory.load(self.cq + u64::from(self.head) * 16, 16);
        (entry[14] & 1 == 1) == self.phase
    }

    /// Waits for the oldest command; what it returns in dword 0, and its status.
    fn complete(
        &mut self,
        (client, memory, doorbells): Place<'_>,
        command: Command,
        number: u16,
    ) -> (u32, u16) {
        let opcode = command.opcode;
        wait_until(&format!("no completion of {opcode:#x}"), || self.has_completed(memory));
        let completion = memory.load(self.cq + u64::from(self.head) * 16, 16);
        self.head = (self.head + 1) % self.depth;
        self.phase ^= self.head == 0;
        doorbells.store(client, u64::from(self.id) * 2 + 1, self.head.into());
        assert_eq!(completion[12..14], number.to_le_bytes(), "command identifier");
        let status = u16::from_le_bytes([completion[14], completion[15]]) >> 1;
        // Without Do Not Retry, More and the retry delay.
        (u32::from_le_bytes(completion[..4].try_into().unwrap()), status & 0x7ff)
    }
}

/// An attached drive.
pub struct Drive {
    /// The connection, for messages of another kind.
    pub client: Client,
    memory: Memory,
    doorbells: Doorbells,
    admin: Queue,
    io: Queue,
}

impl Drive {
    /// Connects and brings the controller up.
    pub fn attach(socket: &Path) -> Self {
        Self::attach_to(socket, true)
    }

    /// The same, with doorbells in the page that is polled or as registers.
    pub fn attach_to(socket: &Path, mapped: bool) -> Self {
        Self::bring_up(Client::attach(socket), Memory::new(ADDRESS, SIZE), mapped)
    }

    /// The same with memory of its own, [`SIZE`] bytes or more at [`ADDRESS`].
    pub fn attach_with(socket: &Path, memory: Memory) -> Self {
        Self::bring_up(Client::attach(socket), memory, true)
    }

    fn bring_up(client: Client, memory: Memory, mapped: bool) -> Self {
        let mut drive = Self::connect_with(client, memory, mapped);
        // Bus master and no INTx; memory space and the BARs are left alone.
        let command = drive.client.read(CONFIG, COMMAND, 2);
        drive.client.write(CONFIG, COMMAND, 2, command | 0x404);
        drive.enable();
        drive.create_queues();
        drive
    }

    /// Connects and leaves the function as it is.
    pub fn connect(socket: &Path) -> Self {
        Self::connect_with(Client::attach(socket), Memory::new(ADDRESS, SIZE), true)
    }

    fn connect_with(client: Client, memory: Memory, mapped: bool) -> Self {
        let doorbells = if mapped { client.doorbells() } else { Doorbells::Registers };
        client.map_memory(&memory);
        Self { client, memory, doorbells, admin: Queue::new(0, ADMIN), io: Queue::new(1, IO) }
    }

    fn enable(&self) {
        let client = &self.client;
        assert_ne!(client.read(BAR0, CAP, 8), u64::MAX);
        client.write(BAR0, CC, 4, 0);
        self.wait_ready(false);
        let entries = u64::from(self.admin.depth - 1);
        client.write(BAR0, AQA, 4, entries << 16 | entries);
        client.write(BAR0, ASQ, 8, ADDRESS + self.admin.sq);
        client.write(BAR0, ACQ, 8, ADDRESS + self.admin.cq);
        // Entries of 64 and 16 bytes, enabled.
        client.write(BAR0, CC, 4, 4 << 20 | 6 << 16 | 1);
        self.wait_ready(true);
    }

    fn wait_ready(&self, ready: bool) {
        let is_so = || (self.client.read(BAR0, CSTS, 4) & 1 == 1) == ready;
        wait_until(&format!("CSTS.RDY stays {}", !ready), is_so);
    }

    /// Disables and enables the controller and makes the queues again, as the
    /// driver of a process does after an error. Bus mastering is left alone.
    pub fn recover(&mut self) {
        self.memory.store(ADMIN, &vec![0; DATA as usize]);
        (self.admin, self.io) = (Queue::new(0, ADMIN), Queue::new(1, IO));
        self.enable();
        self.create_queues();
    }

    /// The controller reads all ones.
    pub fn is_gone(&self) -> bool {
        self.client.read(BAR0, CSTS, 4) == u64::from(u32::MAX)
    }

    /// Waits until it does.
    pub fn wait_until_gone(&self) {
        wait_until("the drive is still there", || self.is_gone());
    }

    /// Vendor and device ID as the client sees them.
    pub fn id(&self) -> u64 {
        self.client.read(CONFIG, 0, 4)
    }

    /// Whether Bus Master Enable is set.
    pub fn is_bus_master(&self) -> bool {
        self.client.read(CONFIG, COMMAND, 2) & 4 != 0
    }

    /// Sets Bus Master Enable, or clears it.
    pub fn master_bus(&self, enable: bool) {
        self.client.write(CONFIG, COMMAND, 2, if enable { 0x404 } else { 0x400 });
    }

    /// What its driver does when it has been reset: as [`recover`](Self::recover),
    /// and the bus is mastered.
    pub fn recover_from_reset(&mut self) {
        self.master_bus(true);
        self.recover();
    }

    /// Asks for VFIO_USER_DEVICE_RESET.
    pub fn reset_device(&self) {
        self.client.reset_device();
    }

    /// Asks for a function-level reset (PCIe Base 4.0, section 7.5.3.4, bit 15).
    pub fn reset_function(&self) {
        let express = self.capability(0x10);
        self.client.write(CONFIG, express + 8, 2, 1 << 15);
    }

    /// Where a capability is in configuration space.
    fn capability(&self, id: u64) -> u64 {
        let mut at = self.client.read(CONFIG, 0x34, 1);
        while at != 0 && self.client.read(CONFIG, at, 1) != id {
            at = self.client.read(CONFIG, at + 1, 1);
        }
        assert_ne!(at, 0, "no capability {id:#x}");
        at
    }

    fn administer(&mut self, command: Command) -> u32 {
        self.admin.run((&self.client, &self.memory, &self.doorbells), command)
    }

    fn delete_queues(&mut self) {
        let id = u32::from(self.io.id);
        for opcode in [0x00, 0x04] {
            self.administer(Command { opcode, cdw10: [id, 0, 0], ..Command::default() });
        }
    }

    fn create_queues(&mut self) {
        // Number of Queues: one of each kind.
        self.administer(Command { opcode: 0x09, cdw10: [7, 0, 0], ..Command::default() });
        self.create_pair();
    }

    fn create_pair(&mut self) {
        let size = u32::from(self.io.depth - 1) << 16;
        let id = u32::from(self.io.id);
        let (sq, cq) = (ADDRESS + self.io.sq, ADDRESS + self.io.cq);
        // Contiguous, and without interrupts.
        let cdw10 = [size | id, 1, 0];
        self.administer(Command { opcode: 0x05, prp: [cq, 0], cdw10, ..Command::default() });
        let cdw10 = [size | id, id << 16 | 1, 0];
        self.administer(Command { opcode: 0x01, prp: [sq, 0], cdw10, ..Command::default() });
    }

    /// Blocks of a namespace, after a look at the controller.
    pub fn identify_namespace(&mut self, namespace: u32) -> u64 {
        let prp = [ADDRESS + DATA, 0];
        self.administer(Command { opcode: 0x06, prp, cdw10: [1, 0, 0], ..Command::default() });
        let model = self.memory.load(DATA + 24, 40);
        assert!(model.starts_with(b"farlane"), "{}", String::from_utf8_lossy(&model));
        self.administer(Command { opcode: 0x06, namespace, prp, ..Command::default() });
        u64::from_le_bytes(self.memory.load(DATA, 8).try_into().unwrap())
    }

    /// The pointers to data of that size, with a list if it needs one.
    fn pointers(&self, bytes: usize) -> [u64; 2] {
        let data = ADDRESS + DATA;
        let more: Vec<u64> = (1..bytes.div_ceil(PAGE)).map(|n| data + (n * PAGE) as u64).collect();
        match more[..] {
            [] => [data, 0],
            [second] => [data, second],
            _ => {
                let list: Vec<u8> = more.iter().flat_map(|page| page.to_le_bytes()).collect();
                self.memory.store(PRP_LIST, &list);
                [data, ADDRESS + PRP_LIST]
            }
        }
    }

    fn transfer(&mut self, opcode: u8, block: u64, bytes: usize) {
        assert_eq!(self.try_transfer(opcode, block, bytes), 0, "status of {opcode:#x}");
    }

    fn try_transfer(&mut self, opcode: u8, block: u64, bytes: usize) -> u16 {
        let blocks = (bytes / BLOCK) as u32;
        let command = Command {
            opcode,
            namespace: 1,
            prp: self.pointers(bytes),
            cdw10: [block as u32, (block >> 32) as u32, blocks - 1],
        };
        self.io.try_run((&self.client, &self.memory, &self.doorbells), command).1
    }

    /// Writes whole blocks.
    pub fn write(&mut self, block: u64, data: &[u8]) {
        assert_eq!(self.try_write(block, data), 0, "status of a write");
    }

    /// Writes whole blocks; the status code and its type.
    pub fn try_write(&mut self, block: u64, data: &[u8]) -> u16 {
        self.memory.store(DATA, data);
        self.try_transfer(WRITE, block, data.len())
    }

    /// The critical warnings of the SMART log (NVMe 1.4, figure 196).
    pub fn critical_warning(&mut self) -> u8 {
        // Get Log Page 02h of 512 bytes.
        let (prp, cdw10) = ([ADDRESS + DATA, 0], [127 << 16 | 2, 0, 0]);
        let command = Command { opcode: 0x02, namespace: u32::MAX, prp, cdw10 };
        self.administer(command);
        self.memory.load(DATA, 1)[0]
    }

    /// Reads whole blocks.
    pub fn read(&mut self, block: u64, blocks: usize) -> Vec<u8> {
        // So that nothing old can pass for what was read.
        self.memory.store(DATA, &vec![0xee; blocks * BLOCK]);
        self.transfer(READ, block, blocks * BLOCK);
        self.memory.load(DATA, blocks * BLOCK)
    }

    /// Starts a read or write of one block whose data are at a DMA address of the caller's choice,
    /// and waits for nothing.
    pub fn begin(&mut self, opcode: u8, address: u64) {
        let command = Command { opcode, namespace: 1, prp: [address, 0], ..Command::default() };
        self.io.submit((&self.client, &self.memory, &self.doorbells), command);
    }

    /// Whether the oldest command of the I/O queue is completed.
    pub fn has_completed(&self) -> bool {
        self.io.has_completed(&self.memory)
    }

    /// Starts `count` reads of 128 KiB to DMA addresses from `address` on, in
    /// queues of its own, and waits for nothing.
    pub fn begin_reads_to(&mut self, address: u64, count: u16) {
        self.delete_queues();
        self.io = Queue::deep(1, DEEP_SQ, DEEP_CQ, count + 1);
        self.create_pair();
        let pages = (1..32).map(|page| address + page * PAGE as u64);
        let list: Vec<u8> = pages.flat_map(u64::to_le_bytes).collect();
        self.memory.store(PRP_LIST, &list);
        let (prp, cdw10) = ([address, ADDRESS + PRP_LIST], [0, 0, 255]);
        let command = Command { opcode: READ, namespace: 1, prp, cdw10 };
        let place = (&self.client, &self.memory, &self.doorbells);
        for _ in 0..count {
            self.io.submit(place, command);
        }
    }

    /// Rings for an entry that was never written.
    pub fn ring(&mut self) {
        let tail = (self.io.tail + 1) % self.io.depth;
        self.doorbells.store(&self.client, u64::from(self.io.id) * 2, tail.into());
    }

    /// Goes in good order.
    pub fn detach(mut self) {
        self.delete_queues();
        let client = &self.client;
        client.write(BAR0, CC, 4, 4 << 20 | 6 << 16 | 1 << 14 | 1);
        wait_until("no end of the shutdown", || client.read(BAR0, CSTS, 4) >> 2 & 3 == 2);
        client.unmap(&self.memory);
        assert!(client.is_quiet());
    }
}

/// Bytes that differ from block to block and from `seed` to `seed`.
pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|word| (seed << 32 | word).wrapping_mul(0x9e37_79b9));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes and reads the drive at `socket` without a pause for as long as `goes_on` says so of the
/// rounds so far.
pub fn work(socket: &Path, mut goes_on: impl FnMut(u64) -> bool) {
    let mut drive = Drive::attach(socket);
    let mut rounds = 0_u64;
    loop {
        let data = pattern(rounds, 16 * BLOCK);
        drive.write(rounds % 100 * 16, &data);
        assert!(drive.read(rounds % 100 * 16, 16) == data, "round {rounds}");
        rounds += 1;
        if !goes_on(rounds) {
            return drive.detach();
        }
    }
}
