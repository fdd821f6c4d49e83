//! I/O on an initialised drive, and its shutdown.

use super::admin::{ALL_ONES, Admin, entry_sizes};
use super::queue::{CommandId, CompletedCommand, QueueFull, QueuePair};
use super::{DriveInfo, Error, Io, Op, prp_list};
use wire::Instant;
use wire::nvme::register::{
    CC, CSTS, Configuration, ControllerStatus, ShutdownNotice, ShutdownStatus,
};
use wire::nvme::{Command, DsmRange, opcode};

/// AD in Dataset Management: deallocate.
const DEALLOCATE: u32 = 1 << 2;

/// The properties of a namespace, from Identify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceInfo {
    /// Namespace ID.
    pub nsid: u32,
    /// Size in blocks.
    pub blocks: u64,
    /// Logarithm to base 2 of the block size in bytes.
    pub block_shift: u8,
    /// Whether the namespace is write protected.
    pub read_only: bool,
}

/// The host memory of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueMemory {
    /// Bus address of the submission queue.
    pub submission: u64,
    /// Bus address of the completion queue.
    pub completion: u64,
    /// Number of entries of each queue.
    pub entries: u16,
}

/// A queue pair, with memory for the PRP list of each command.
#[derive(Debug)]
pub(super) struct IoQueue {
    pub pair: QueuePair,
    pub lists: u64,
    /// Size of one list in bytes.
    pub list: u64,
}

/// The driver of an initialised drive.
#[derive(Debug)]
pub struct Driver {
    pub(super) admin: Admin,
    pub(super) serial: String,
    pub(super) namespaces: Vec<NamespaceInfo>,
    pub(super) max_transfer: usize,
    pub(super) queues: Vec<IoQueue>,
}

impl Driver {
    /// The serial number (Identify Controller, SN) without the padding.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// The active namespaces, ascending.
    pub fn namespaces(&self) -> &[NamespaceInfo] {
        &self.namespaces
    }

    /// The largest transfer of one command in bytes.
    pub fn max_transfer(&self) -> usize {
        self.max_transfer
    }

    /// Number of I/O queues. Queues have numbers from 0; queue `n` interrupts with vector `n + 1`.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The host memory of queue `queue`, for observers.
    pub fn queue_memory(&self, queue: usize) -> QueueMemory {
        self.queues[queue].memory()
    }

    /// What drivers of further connections need.
    pub fn info(&self) -> DriveInfo {
        DriveInfo {
            serial: self.serial.clone(),
            namespaces: self.namespaces.clone(),
            max_transfer: self.max_transfer,
            queues: self.queues.iter().map(IoQueue::memory).collect(),
        }
    }

    /// Puts a command in a queue and rings the doorbell.
    ///
    /// # Panics
    /// If the queue or namespace does not exist, if the transfer is larger than
    /// [`max_transfer`](Self::max_transfer), or if the buffer is not aligned to 4 bytes.
    pub fn submit(&mut self, now: Instant, queue: usize, io: Io) -> Result<CommandId, QueueFull> {
        let id = self.prepare(now, queue, io)?;
        self.ring(queue);
        Ok(id)
    }

    /// Puts a command in a queue. [`ring`](Self::ring) then notifies the controller.
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    pub fn prepare(&mut self, now: Instant, queue: usize, io: Io) -> Result<CommandId, QueueFull> {
        let id = self.queues[queue].pair.next_id()?;
        let command = self.command(queue, id, io);
        let deadline = now + self.admin.settings.timeout;
        self.queues[queue].pair.put(&self.admin.host, command, deadline)
    }

    /// Rings the doorbell once for all prepared commands, if there are any.
    pub fn ring(&mut self, queue: usize) {
        self.queues[queue].pair.ring(&self.admin.host);
    }

    /// Takes all completed commands and rings the head doorbell once.
    pub fn reap(&mut self, queue: usize) -> Vec<CompletedCommand> {
        self.queues[queue].pair.reap(&self.admin.host)
    }

    /// Number of outstanding commands of a queue.
    pub fn outstanding(&self, queue: usize) -> usize {
        self.queues[queue].pair.outstanding()
    }

    /// Returns [`Error::Timeout`] if a command has exceeded its time limit at `now`.
    pub fn check_timeouts(&mut self, now: Instant) -> Result<(), Error> {
        match self.queues.iter_mut().any(|queue| queue.pair.is_late(now)) {
            true => Err(Error::Timeout("an I/O command")),
            false => Ok(()),
        }
    }

    /// Reads CSTS. The result is `Ok` if the controller is present, ready and not in the fatal
    /// state.
    pub fn check_status(&self) -> impl Future<Output = Result<(), Error>> + use<> {
        let host = &self.admin.host;
        let (bus, register) = (host.bus.clone(), host.bar0 + CSTS);
        async move {
            match bus.read(register, 4).await as u32 {
                ALL_ONES => Err(Error::Gone),
                bits => match ControllerStatus::from_bits(bits) {
                    ControllerStatus { fatal: true, .. } => Err(Error::Fatal),
                    ControllerStatus { ready: false, .. } => Err(Error::Reset),
                    _ => Ok(()),
                },
            }
        }
    }

    /// Number of completions that match no command.
    pub fn spurious_completions(&self) -> u64 {
        self.queues.iter().map(|queue| queue.pair.spurious()).sum()
    }

    /// Logarithm to base 2 of the block size of a namespace in bytes.
    fn block_shift(&self, nsid: u32) -> u8 {
        let namespace = self.namespaces.iter().find(|namespace| namespace.nsid == nsid);
        namespace.expect("a namespace of this drive").block_shift
    }

    fn command(&self, queue: usize, id: CommandId, io: Io) -> Command {
        let queue = &self.queues[queue];
        let list = queue.lists + u64::from(id.get()) * queue.list;
        let opcode = match io.op {
            Op::Read => opcode::nvm::READ,
            Op::Write => opcode::nvm::WRITE,
            Op::Flush => opcode::nvm::FLUSH,
            Op::WriteZeroes => opcode::nvm::WRITE_ZEROES,
            Op::Discard => opcode::nvm::DATASET_MANAGEMENT,
        };
        let command = Command { opcode, nsid: io.nsid, ..Command::default() };
        match io.op {
            Op::Flush => command,
            Op::Discard => {
                let range = DsmRange { attributes: 0, blocks: io.blocks, slba: io.slba };
                self.admin.host.put(list, &range.encode());
                Command { prp1: list, cdw11: DEALLOCATE, ..command }
            }
            Op::WriteZeroes => with_range(command, io),
            Op::Read | Op::Write => self.with_data(with_range(command, io), io, list),
        }
    }

    fn with_data(&self, command: Command, io: Io, list: u64) -> Command {
        let length = u64::from(io.blocks) << self.block_shift(io.nsid);
        assert!(length <= self.max_transfer as u64, "more than one command may transfer");
        assert!(io.buffer.is_multiple_of(4), "the buffer is not aligned to 4 bytes");
        let (prp1, prp2, entries) = prp_list::entries(io.buffer, length, list);
        if !entries.is_empty() {
            let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
            self.admin.host.put(list, &bytes);
        }
        Command { prp1, prp2, ..command }
    }

    /// Deletes the I/O queues and shuts the controller down normally (section 7.6.2). Outstanding
    /// commands are lost.
    pub async fn shutdown(&mut self) -> Result<(), Error> {
        for id in 1..=self.queues.len() as u32 {
            for (name, opcode) in [
                ("Delete I/O Submission Queue", opcode::admin::DELETE_SQ),
                ("Delete I/O Completion Queue", opcode::admin::DELETE_CQ),
            ] {
                let command = Command { opcode, cdw10: id, ..Command::default() };
                self.admin.run(name, command).await?;
            }
        }
        self.queues.clear();
        let (enable, shutdown) = (true, ShutdownNotice::Normal);
        let notice = Configuration { enable, shutdown, ..entry_sizes() };
        self.admin.write(CC, 4, notice.bits().into());
        let complete = |status: ControllerStatus| status.shutdown == ShutdownStatus::Complete;
        self.admin.wait_status("the shutdown", complete).await.map(drop)
    }
}

/// The command with SLBA and NLB.
fn with_range(command: Command, io: Io) -> Command {
    assert!((1..=65536).contains(&io.blocks), "1 to 65536 blocks");
    Command {
        cdw10: io.slba as u32,
        cdw11: (io.slba >> 32) as u32,
        cdw12: io.blocks - 1,
        ..command
    }
}
