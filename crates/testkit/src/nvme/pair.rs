//! A queue pair of a host driver, in any kind of memory.

use super::QUEUES;
use pcie::Ram;
use wire::nvme::opcode::admin;
use wire::nvme::register::{AdminQueueAttributes, Configuration};
use wire::nvme::{COMPLETION_ENTRY, Command, Completion, SUBMISSION_ENTRY, feature};

/// Host memory by bus address.
pub trait Memory {
    /// Reads `bytes.len()` bytes from `address` on.
    fn read_at(&mut self, address: u64, bytes: &mut [u8]);
    /// Writes `bytes` from `address` on.
    fn write_at(&mut self, address: u64, bytes: &[u8]);
}

impl Memory for Ram {
    fn read_at(&mut self, address: u64, bytes: &mut [u8]) {
        self.read(address, bytes).expect("host memory");
    }

    fn write_at(&mut self, address: u64, bytes: &[u8]) {
        self.write(address, bytes).expect("host memory");
    }
}

/// A queue pair of a host. The caller rings the doorbells.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Identifier of both queues.
    pub id: u16,
    /// Number of entries of each queue.
    pub entries: u16,
    /// Submission queue tail.
    pub tail: u16,
    /// Completion queue head.
    pub head: u16,
    /// Phase tag of the next completion entry.
    pub phase: bool,
    sq: u64,
    cq: u64,
}

impl Pair {
    /// Creates empty queues at addresses in the testbed that depend on `id`.
    pub fn new(id: u16, entries: u16) -> Self {
        let sq = QUEUES + u64::from(id) * 0x1_0000;
        Self::at(id, entries, sq, sq + 0x8000)
    }

    /// Creates empty queues at these bus addresses.
    pub fn at(id: u16, entries: u16, sq: u64, cq: u64) -> Self {
        Self { id, entries, tail: 0, head: 0, phase: true, sq, cq }
    }

    /// Returns the bus address of the submission queue.
    pub fn sq(&self) -> u64 {
        self.sq
    }

    /// Returns the bus address of the completion queue.
    pub fn cq(&self) -> u64 {
        self.cq
    }

    /// Zeroes the completion queue.
    pub fn clear(&self, memory: &mut impl Memory) {
        memory.write_at(self.cq, &vec![0; usize::from(self.entries) * COMPLETION_ENTRY]);
    }

    /// Puts a command into the submission queue without changes.
    pub fn put(&mut self, memory: &mut impl Memory, command: Command) {
        memory
            .write_at(self.sq + u64::from(self.tail) * SUBMISSION_ENTRY as u64, &command.encode());
        self.tail = (self.tail + 1) % self.entries;
    }

    /// Returns the completion entry at the head; `None` if the controller has not written one.
    pub fn peek(&self, memory: &mut impl Memory) -> Option<Completion> {
        let mut entry = [0; COMPLETION_ENTRY];
        memory.read_at(self.cq + u64::from(self.head) * COMPLETION_ENTRY as u64, &mut entry);
        Some(Completion::decode(&entry)).filter(|completion| completion.phase == self.phase)
    }

    /// Takes the completion entry at the head; `None` if the controller has not written one.
    pub fn take(&mut self, memory: &mut impl Memory) -> Option<Completion> {
        let completion = self.peek(memory)?;
        self.head = (self.head + 1) % self.entries;
        self.phase ^= self.head == 0;
        Some(completion)
    }
}

/// Returns CC with entry sizes of 64 and 16 bytes.
pub fn entry_sizes() -> Configuration {
    Configuration { sq_entry_size: 6, cq_entry_size: 4, ..Configuration::default() }
}

/// Returns AQA for admin queues of `entries` entries.
pub fn admin_sizes(entries: u16) -> u64 {
    let size = entries - 1;
    AdminQueueAttributes { sq_size: size, cq_size: size }.bits().into()
}

/// Returns the commands that create a pair: contiguous queues, and the identifier of the pair as
/// vector. No controller has more than 2048 vectors.
pub fn create_commands(pair: &Pair) -> [Command; 2] {
    let (id, vector) = (u32::from(pair.id), u32::from(pair.id.min(2047)));
    let cdw10 = id | u32::from(pair.entries - 1) << 16;
    let (opcode, prp1) = (admin::CREATE_CQ, pair.cq);
    let cq = Command { opcode, prp1, cdw10, cdw11: vector << 16 | 0b11, ..Command::default() };
    let (opcode, prp1) = (admin::CREATE_SQ, pair.sq);
    [cq, Command { opcode, prp1, cdw11: id << 16 | 1, ..cq }]
}

/// Returns the commands that create a pair without interrupts.
pub fn create_polled(pair: &Pair) -> [Command; 2] {
    create_commands(pair).map(|command| match command.opcode {
        admin::CREATE_CQ => Command { cdw11: 1, ..command },
        _ => command,
    })
}

/// Returns the command that deletes a queue.
pub fn delete(opcode: u8, id: u16) -> Command {
    Command { opcode, cdw10: id.into(), ..Command::default() }
}

/// Returns Identify, with the data at `page`.
pub fn identify(cns: u8, nsid: u32, page: u64) -> Command {
    let (opcode, cdw10) = (admin::IDENTIFY, cns.into());
    Command { opcode, nsid, prp1: page, cdw10, ..Command::default() }
}

/// Returns Get Log Page of `bytes` bytes from the beginning, with the data at `page`.
pub fn get_log(id: u8, bytes: usize, page: u64) -> Command {
    let (opcode, cdw10) = (admin::GET_LOG_PAGE, u32::from(id) | (bytes as u32 / 4 - 1) << 16);
    Command { opcode, nsid: u32::MAX, prp1: page, cdw10, ..Command::default() }
}

/// Returns Abort of command `cid` of submission queue `queue`.
pub fn abort(queue: u16, cid: u16) -> Command {
    let cdw10 = u32::from(queue) | u32::from(cid) << 16;
    Command { opcode: admin::ABORT, cdw10, ..Command::default() }
}

/// Returns Asynchronous Event Request.
pub fn event_request() -> Command {
    Command { opcode: admin::ASYNC_EVENT_REQUEST, ..Command::default() }
}

/// Returns Set Features, Number of Queues, for one queue of each kind.
pub fn number_of_queues() -> Command {
    let cdw10 = feature::NUMBER_OF_QUEUES.into();
    Command { opcode: admin::SET_FEATURES, cdw10, ..Command::default() }
}

/// Returns an I/O command for blocks of namespace 1.
pub fn io(opcode: u8, slba: u64, blocks: u32, [prp1, prp2]: [u64; 2]) -> Command {
    let [cdw10, cdw11] = [slba as u32, (slba >> 32) as u32];
    Command { opcode, nsid: 1, prp1, prp2, cdw10, cdw11, cdw12: blocks - 1, ..Command::default() }
}
