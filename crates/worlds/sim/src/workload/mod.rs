//! Workloads of hosts: fio, dd, configuration reads, and recorded commands.

mod contents;
mod replay;
mod software;

pub(crate) use ::workload::BringUp;
pub use ::workload::{BootError, CompletionMode, Fio, Rw};
pub use replay::{IssueTiming, Operation, Replay};
pub(crate) use software::{KnownWrites, Software};

use crate::drive::MAX_TRANSFER;
use ::workload::{Costs, JobSpec, MOST_ENTRIES};
use nvme::initiator::Registration;
use wire::Duration;

/// The most I/O queue pairs of a workload per drive.
pub(crate) const MOST_QUEUES: u16 = 64;

/// Bytes of a logical block of the simulated drives.
const LBA_SIZE: u64 = 512;

/// What a host does after its drives have started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Reads or writes blocks as fio does.
    Fio(Fio),
    /// Reads or writes blocks in order, one at a time, as `dd bs=BS count=COUNT iflag=direct` does.
    Dd {
        /// Whether to write to the drive.
        write: bool,
        /// Bytes per block: a multiple of 512.
        bs: usize,
        /// Number of blocks.
        count: u64,
    },
    /// Reads the vendor ID of the first drive, as lspci does (MLE, "Latency
    /// Analysis for NVMe/TSN", section 4.1).
    ConfigReads {
        /// Number of reads.
        count: u64,
        /// Pause between an answer and the next read.
        gap: Duration,
    },
    /// Recorded commands.
    Replay(Replay),
    /// No workload, which never ends. Only programs run
    /// ([`World::run_program`](crate::World::run_program)).
    Idle,
}

/// CPU time and limits of host software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftwareConfig {
    /// Time between the start of all drives and the start of the workload.
    pub start_delay: Duration,
    /// CPU time from the application's call to the doorbell write.
    pub submit: Duration,
    /// How completions are signalled.
    pub completions: CompletionMode,
    /// CPU time from reading a completion entry to the result in the application.
    pub complete: Duration,
    /// The largest Max_Payload_Size that enumeration sets, in bytes.
    pub max_payload: usize,
    /// Max_Read_Request_Size in bytes.
    pub max_read_request: usize,
    /// The registration of the host at all its drives, which are [shared](crate::world::SharedDrive).
    pub registration: Option<Registration>,
}

impl SoftwareConfig {
    /// The CPU times of a command.
    pub(crate) fn costs(&self) -> Costs {
        let Self { submit, completions, complete, .. } = *self;
        Costs { submit, completions, complete }
    }
}

impl From<JobSpec> for Workload {
    fn from(job: JobSpec) -> Self {
        match job {
            JobSpec::Fio(fio) => Self::Fio(fio),
            JobSpec::Dd { write, bs, count } => Self::Dd { write, bs, count },
            JobSpec::ConfigReads { count, gap } => Self::ConfigReads { count, gap },
        }
    }
}

impl Workload {
    /// The equivalent fio parameters, if any.
    pub fn fio(&self) -> Option<Fio> {
        match self {
            Self::Fio(fio) => Some(fio.clone()),
            Self::Dd { write, bs, count } => Some(Fio::dd(*write, *bs, *count)),
            Self::ConfigReads { .. } | Self::Replay(_) | Self::Idle => None,
        }
    }

    /// The namespace that the workload uses on each drive.
    pub fn nsid(&self) -> u32 {
        self.fio().map_or(1, |fio| fio.nsid)
    }

    /// I/O queue pairs per drive.
    pub fn queues(&self) -> u16 {
        let queues = match self {
            Self::Replay(replay) => replay.queues(),
            _ => self.fio().map_or(1, |fio| fio.numjobs),
        };
        queues.clamp(1, MOST_QUEUES.into()) as u16
    }

    /// Entries per queue: one more than the most commands in flight.
    pub fn entries(&self) -> u16 {
        let depth = match self {
            Self::Replay(replay) => replay.depth(),
            _ => self.fio().map_or(1, |fio| fio.commands(MAX_TRANSFER)),
        };
        (depth + 1).clamp(2, MOST_ENTRIES) as u16
    }
}
