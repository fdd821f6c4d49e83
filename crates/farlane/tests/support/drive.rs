//! The NVMe side of the client: one admin and one I/O queue pair, polled.

use std::path::Path;

use crate::support::client::{BAR0, CONFIG, Client, Doorbells, Memory};
use crate::support::wait_until;
use testkit::nvme::{
    Pair, admin_sizes, create_polled, delete, entry_sizes, identify, io, number_of_queues,
};
use wire::nvme::opcode::admin;
use wire::nvme::register::{ACQ, AQA, ASQ, CAP, CC, CSTS, Configuration, Doorbell, ShutdownNotice};
use wire::nvme::{Command, Completion, cns, log_page};

/// Size of a block in bytes.
pub const BLOCK: usize = 512;
const PAGE: usize = 4096;

/// DMA address of the memory, like a virtual address of a process: far above 4 GiB.
pub const ADDRESS: u64 = 0x7f5a_c400_0000;
pub const SIZE: u64 = 1 << 20;
// Offsets in the memory.
const ADMIN: u64 = 0;
const IO: u64 = 0x4000;
const PRP_LIST: u64 = 0x8000;
const DATA: u64 = 0x1_0000;
const DEEP_SQ: u64 = 0x8_0000;
const DEEP_CQ: u64 = 0xa_0000;

/// Offset of the Command register (PCIe Base 4.0, section 7.5.1.1.3).
const COMMAND: u64 = 4;

/// Opcodes of the NVM command set (NVMe 1.4, figure 346).
pub use wire::nvme::opcode::nvm::{READ, WRITE};

/// Number of entries of each queue.
const ENTRIES: u16 = 8;

/// Returns an empty queue pair at offset `at` of the memory.
fn pair(id: u16, at: u64) -> Pair {
    Pair::at(id, ENTRIES, ADDRESS + at, ADDRESS + at + 0x1000)
}

/// An attached drive.
pub struct Drive {
    /// The connection, for further messages.
    pub client: Client,
    memory: Memory,
    doorbells: Doorbells,
    admin: Pair,
    io: Pair,
    /// Numbers of commands submitted to the admin queue and to the I/O queue.
    commands: [u16; 2],
}

impl Drive {
    /// Connects and brings the controller up.
    pub fn attach(socket: &Path) -> Self {
        Self::attach_to(socket, true)
    }

    /// As [`attach`](Self::attach), with doorbells in the polled page (`mapped`) or as registers.
    pub fn attach_to(socket: &Path, mapped: bool) -> Self {
        Self::bring_up(Client::attach(socket), Memory::new(ADDRESS, SIZE), mapped)
    }

    /// As [`attach`](Self::attach), with this memory: at least [`SIZE`] bytes at [`ADDRESS`].
    pub fn attach_with(socket: &Path, memory: Memory) -> Self {
        Self::bring_up(Client::attach(socket), memory, true)
    }

    fn bring_up(client: Client, memory: Memory, mapped: bool) -> Self {
        let mut drive = Self::connect_with(client, memory, mapped);
        // Sets Bus Master Enable and Interrupt Disable. Memory space and the BARs are not changed.
        let command = drive.client.read(CONFIG, COMMAND, 2);
        drive.client.write(CONFIG, COMMAND, 2, command | 0x404);
        drive.enable();
        drive.create_queues();
        drive
    }

    /// Connects without changing the function.
    pub fn connect(socket: &Path) -> Self {
        Self::connect_with(Client::attach(socket), Memory::new(ADDRESS, SIZE), true)
    }

    fn connect_with(client: Client, memory: Memory, mapped: bool) -> Self {
        let doorbells = if mapped { client.doorbells() } else { Doorbells::Registers };
        client.map_memory(&memory);
        let (admin, io) = (pair(0, ADMIN), pair(1, IO));
        Self { client, memory, doorbells, admin, io, commands: [0; 2] }
    }

    fn enable(&self) {
        let client = &self.client;
        assert_ne!(client.read(BAR0, CAP, 8), u64::MAX);
        client.write(BAR0, CC, 4, 0);
        self.wait_ready(false);
        client.write(BAR0, AQA, 4, admin_sizes(ENTRIES));
        client.write(BAR0, ASQ, 8, self.admin.sq());
        client.write(BAR0, ACQ, 8, self.admin.cq());
        let on = Configuration { enable: true, ..entry_sizes() };
        client.write(BAR0, CC, 4, on.bits().into());
        self.wait_ready(true);
    }

    fn wait_ready(&self, ready: bool) {
        let is_so = || (self.client.read(BAR0, CSTS, 4) & 1 == 1) == ready;
        wait_until(&format!("CSTS.RDY stays {}", !ready), is_so);
    }

    /// Disables and enables the controller and creates the queues again, as a driver does after an
    /// error. Bus mastering is not changed.
    pub fn recover(&mut self) {
        self.memory.store(ADMIN, &vec![0; DATA as usize]);
        (self.admin, self.io) = (pair(0, ADMIN), pair(1, IO));
        self.enable();
        self.create_queues();
    }

    /// Returns whether registers of the controller read as all ones.
    pub fn is_gone(&self) -> bool {
        self.client.read(BAR0, CSTS, 4) == u64::from(u32::MAX)
    }

    /// Waits until registers of the controller read as all ones.
    pub fn wait_until_gone(&self) {
        wait_until("the drive is still there", || self.is_gone());
    }

    /// Reads vendor and device ID.
    pub fn id(&self) -> u64 {
        self.client.read(CONFIG, 0, 4)
    }

    /// Returns whether Bus Master Enable is set.
    pub fn is_bus_master(&self) -> bool {
        self.client.read(CONFIG, COMMAND, 2) & 4 != 0
    }

    /// Sets or clears Bus Master Enable.
    pub fn master_bus(&self, enable: bool) {
        self.client.write(CONFIG, COMMAND, 2, if enable { 0x404 } else { 0x400 });
    }

    /// Does what a driver does after a reset: enables bus mastering, then
    /// [`recover`](Self::recover).
    pub fn recover_from_reset(&mut self) {
        self.master_bus(true);
        self.recover();
    }

    /// Sends VFIO_USER_DEVICE_RESET.
    pub fn reset_device(&self) {
        self.client.reset_device();
    }

    /// Sets Initiate Function Level Reset (PCIe Base 4.0, section 7.5.3.4, bit 15).
    pub fn reset_function(&self) {
        let express = self.capability(0x10);
        self.client.write(CONFIG, express + 8, 2, 1 << 15);
    }

    /// Returns the offset of the capability with this ID.
    fn capability(&self, id: u64) -> u64 {
        let mut at = self.client.read(CONFIG, 0x34, 1);
        while at != 0 && self.client.read(CONFIG, at, 1) != id {
            at = self.client.read(CONFIG, at + 1, 1);
        }
        assert_ne!(at, 0, "no capability {id:#x}");
        at
    }

    /// Submits a command; returns its identifier.
    fn submit(&mut self, admin: bool, command: Command) -> u16 {
        let next = &mut self.commands[usize::from(!admin)];
        let cid = *next;
        *next = next.wrapping_add(1);
        let pair = if admin { &mut self.admin } else { &mut self.io };
        pair.put(&mut self.memory, Command { cid, ..command });
        self.doorbells.store(&self.client, Doorbell::SubmissionTail(pair.id), pair.tail);
        cid
    }

    /// Submits a command and waits for its completion, which may have an error status.
    fn run(&mut self, admin: bool, command: Command) -> Completion {
        let cid = self.submit(admin, command);
        let pair = if admin { &mut self.admin } else { &mut self.io };
        let mut done = None;
        wait_until(&format!("no completion of {:#x}", command.opcode), || {
            done = pair.take(&mut self.memory);
            done.is_some()
        });
        self.doorbells.store(&self.client, Doorbell::CompletionHead(pair.id), pair.head);
        let done = done.expect("waited for above");
        assert_eq!(done.cid, cid, "command identifier");
        done
    }

    fn administer(&mut self, command: Command) {
        let status = self.run(true, command).status;
        assert!(status.is_success(), "{:#x}: {status:?}", command.opcode);
    }

    fn delete_queues(&mut self) {
        for opcode in [admin::DELETE_SQ, admin::DELETE_CQ] {
            self.administer(delete(opcode, self.io.id));
        }
    }

    fn create_queues(&mut self) {
        self.administer(number_of_queues());
        self.create_pair();
    }

    fn create_pair(&mut self) {
        create_polled(&self.io).into_iter().for_each(|command| self.administer(command));
    }

    /// Identifies the controller and a namespace; returns the number of blocks of the namespace.
    pub fn identify_namespace(&mut self, namespace: u32) -> u64 {
        self.administer(identify(cns::CONTROLLER, 0, ADDRESS + DATA));
        let model = self.memory.load(DATA + 24, 40);
        assert!(model.starts_with(b"farlane"), "{}", String::from_utf8_lossy(&model));
        self.administer(identify(cns::NAMESPACE, namespace, ADDRESS + DATA));
        u64::from_le_bytes(self.memory.load(DATA, 8).try_into().unwrap())
    }

    /// Returns PRP entries 1 and 2 for this number of data bytes, and writes a PRP list if one is
    /// needed.
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
        let command = io(opcode, block, (bytes / BLOCK) as u32, self.pointers(bytes));
        u64::from(self.run(false, command).status.code) as u16
    }

    /// Writes whole blocks from block `block` on.
    pub fn write(&mut self, block: u64, data: &[u8]) {
        assert_eq!(self.try_write(block, data), 0, "status of a write");
    }

    /// Writes whole blocks; returns status code type × 256 + status code.
    pub fn try_write(&mut self, block: u64, data: &[u8]) -> u16 {
        self.memory.store(DATA, data);
        self.try_transfer(WRITE, block, data.len())
    }

    /// Returns the critical warnings of the SMART log (NVMe 1.4, figure 196).
    pub fn critical_warning(&mut self) -> u8 {
        // Get Log Page with 512 bytes of log 02h.
        let (prp1, cdw10) = (ADDRESS + DATA, 127 << 16 | u32::from(log_page::SMART));
        let (opcode, nsid) = (admin::GET_LOG_PAGE, u32::MAX);
        self.administer(Command { opcode, nsid, prp1, cdw10, ..Command::default() });
        self.memory.load(DATA, 1)[0]
    }

    /// Reads whole blocks from block `block` on.
    pub fn read(&mut self, block: u64, blocks: usize) -> Vec<u8> {
        // Overwrites old data, which must not look like the data read.
        self.memory.store(DATA, &vec![0xee; blocks * BLOCK]);
        self.transfer(READ, block, blocks * BLOCK);
        self.memory.load(DATA, blocks * BLOCK)
    }

    /// Reads one block; returns status code type × 256 + status code.
    pub fn try_read(&mut self, block: u64) -> u16 {
        self.try_transfer(READ, block, BLOCK)
    }

    /// Submits a read or write of one block with data at DMA address `address`. Does not wait for
    /// the completion.
    pub fn begin(&mut self, opcode: u8, address: u64) {
        self.submit(false, io(opcode, 0, 1, [address, 0]));
    }

    /// Returns whether the oldest command of the I/O queue has completed.
    pub fn has_completed(&mut self) -> bool {
        self.io.peek(&mut self.memory).is_some()
    }

    /// Submits `count` reads of 128 KiB to DMA addresses from `address` on, in additional queues.
    /// Does not wait for completions.
    pub fn begin_reads_to(&mut self, address: u64, count: u16) {
        self.delete_queues();
        self.io = Pair::at(1, count + 1, ADDRESS + DEEP_SQ, ADDRESS + DEEP_CQ);
        self.create_pair();
        let pages = (1..32).map(|page| address + page * PAGE as u64);
        let list: Vec<u8> = pages.flat_map(u64::to_le_bytes).collect();
        self.memory.store(PRP_LIST, &list);
        for _ in 0..count {
            self.submit(false, io(READ, 0, 256, [address, ADDRESS + PRP_LIST]));
        }
    }

    /// Rings the doorbell for an entry that was not written.
    pub fn ring(&mut self) {
        let tail = (self.io.tail + 1) % self.io.entries;
        self.doorbells.store(&self.client, Doorbell::SubmissionTail(self.io.id), tail);
    }

    /// Deletes the queues, shuts the controller down, removes the memory and disconnects.
    pub fn detach(mut self) {
        self.delete_queues();
        let client = &self.client;
        let shutdown = ShutdownNotice::Normal;
        let off = Configuration { enable: true, shutdown, ..entry_sizes() };
        client.write(BAR0, CC, 4, off.bits().into());
        wait_until("no end of the shutdown", || client.read(BAR0, CSTS, 4) >> 2 & 3 == 2);
        client.unmap(&self.memory);
        assert!(client.is_quiet());
    }
}

/// Returns bytes that differ from block to block and from `seed` to `seed`.
pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|word| (seed << 32 | word).wrapping_mul(0x9e37_79b9));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Writes and reads the drive at `socket` without a pause. `goes_on` receives the number of
/// finished rounds, and ends the work by `false`.
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
