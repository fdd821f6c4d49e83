//! Events of the commands of a workload.

use nvme::initiator::Op;
use wire::Instant;
use wire::nvme::Status;

/// Identifies a command of a host: drive, queue and command identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandKey {
    /// Number of the drive, from 0.
    pub drive: u16,
    /// Queue identifier; 1 is the first I/O queue.
    pub queue: u16,
    /// Command identifier.
    pub id: u16,
}

impl CommandKey {
    /// The key of a command in I/O queue `queue`, where 0 is the first I/O queue.
    pub fn new(drive: usize, queue: usize, id: u16) -> Self {
        Self { drive: drive as u16, queue: queue as u16 + 1, id }
    }
}

/// A command that a host submits.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The command.
    pub key: CommandKey,
    /// The time at which the application submitted the transfer.
    pub since: Instant,
    /// The operation of the command.
    pub op: Op,
    /// Offset of the first byte on the drive, in bytes.
    pub offset: u64,
    /// Bus address of the data buffer, if the operation has one.
    pub buffer: u64,
    /// Number of bytes.
    pub length: u64,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All commands of the transfer succeeded.
    Done,
    /// At least one command failed. This is the status of the first command that failed.
    Failed(Status),
    /// The drive was lost while a command of the transfer was outstanding or waited for the drive.
    Lost,
}

/// A transfer of `bs` bytes that has ended. It consists of one command, or of several if it is
/// longer than the drive's maximum data transfer size or is striped.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Number of the job, from 0.
    pub job: usize,
    /// [`Op::Read`] or [`Op::Write`].
    pub op: Op,
    /// Offset of the first byte on the drive, or on the volume of all drives if `stripe` is not 0,
    /// in bytes.
    pub offset: u64,
    /// Number of data bytes.
    pub length: u64,
    /// The time at which the application submitted the transfer.
    pub since: Instant,
    /// How the transfer ended.
    pub outcome: Outcome,
    /// Number of bytes that were compared with the written data.
    pub compared: u64,
    /// Whether the transfer reads back data after the workload's end
    /// ([`Jobs::read_back`](crate::Jobs)).
    pub reads_back: bool,
}

/// Data of a read that differ from the written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Number of the job, from 0.
    pub job: usize,
    /// Number of the drive, from 0.
    pub drive: usize,
    /// Offset of the first wrong byte on the drive, in bytes.
    pub offset: u64,
    /// The expected byte.
    pub expected: u8,
    /// The byte that was read.
    pub found: u8,
}

/// Receives the events of a workload. By default the methods do nothing.
pub trait Observer {
    /// A command was written to the submission queue. The doorbell has not yet been rung.
    fn submit(&mut self, _now: Instant, _submission: Submission) {}

    /// The application has the result of a command from the time `at` on.
    fn finish(&mut self, _at: Instant, _key: CommandKey) {}

    /// A command was lost, because the drive was lost.
    fn discard(&mut self, _key: CommandKey) {}

    /// A transfer ended.
    fn transfer(&mut self, _now: Instant, _transfer: &Transfer) {}

    /// A command read wrong data. There is one call per command, for the first wrong byte.
    fn mismatch(&mut self, _mismatch: &Mismatch) {}
}

/// Ignores all events.
impl Observer for () {}
