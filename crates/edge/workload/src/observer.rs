//! Events of the commands of a workload.

use nvme::initiator::Op;
use wire::Instant;
use wire::nvme::Status;

/// Identifies a command: drive of the host, queue (1 is the first I/O queue), command identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandKey {
    /// Number of the drive.
    pub drive: u16,
    /// Number of the queue, from 1.
    pub queue: u16,
    /// Command identifier.
    pub id: u16,
}

impl CommandKey {
    /// The key of a command in the I/O queue `queue`, counted from 0.
    pub fn new(drive: usize, queue: usize, id: u16) -> Self {
        Self { drive: drive as u16, queue: queue as u16 + 1, id }
    }
}

/// A command as its host submits it.
#[derive(Clone, Copy, Debug)]
pub struct Submission {
    /// The command.
    pub key: CommandKey,
    /// When the application submitted it.
    pub since: Instant,
    /// The operation.
    pub op: Op,
    /// First byte on the drive.
    pub offset: u64,
    /// Bus address of the data, if any.
    pub buffer: u64,
    /// Bytes.
    pub length: u64,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its commands succeeded.
    Done,
    /// A command ended with this status, the first one that did.
    Failed(Status),
    /// Its drive was lost while one of its commands was outstanding.
    Lost,
}

/// The end of a transfer of `bs` bytes: one command, or several if the transfer exceeds the drive's
/// largest.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Number of the job, from 0.
    pub job: usize,
    /// [`Op::Read`] or [`Op::Write`].
    pub op: Op,
    /// First byte in the drives' volume.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// When the application submitted it.
    pub since: Instant,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes that were compared with what was written.
    pub compared: u64,
    /// Whether the transfer reads back data after the workload's end
    /// ([`Jobs::read_back`](crate::Jobs)).
    pub reads_back: bool,
}

/// Data that a read returned although other data were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Number of the job, from 0.
    pub job: usize,
    /// Number of the drive.
    pub drive: usize,
    /// The first wrong byte on the drive.
    pub offset: u64,
    /// The byte that was written.
    pub expected: u8,
    /// The byte that was read.
    pub found: u8,
}

/// Receives the events of a workload. Every method does nothing by default.
pub trait Observer {
    /// A command is in its queue; its doorbell follows.
    fn submit(&mut self, _now: Instant, _submission: Submission) {}

    /// The application has the result of a command.
    fn finish(&mut self, _at: Instant, _key: CommandKey) {}

    /// A command is lost with its drive.
    fn discard(&mut self, _key: CommandKey) {}

    /// A transfer ended.
    fn transfer(&mut self, _now: Instant, _transfer: &Transfer) {}

    /// A command read wrong data. One call per command: the first wrong byte.
    fn mismatch(&mut self, _mismatch: &Mismatch) {}
}

/// Ignores all events.
impl Observer for () {}
