//! Workloads of hosts: those of fio and dd, configuration reads, and recorded commands.

mod boot;
mod contents;
mod jobs;
mod replay;
mod software;
mod work;

pub use boot::BootError;
pub(crate) use boot::BringUp;
pub use replay::{IssueTiming, Operation, Replay};
pub(crate) use software::{KnownWrites, Software};

use crate::drive::MAX_TRANSFER;
use wire::{Duration, Instant};

/// Entries of the largest queue.
const MOST_ENTRIES: usize = 4096;

/// Bytes of a logical block of the simulated drives.
const LBA_SIZE: u64 = 512;

/// What a host does once its drives are up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Reads or writes blocks as fio does.
    Fio(Fio),
    /// Reads or writes blocks in order, one at a time, as `dd bs=BS count=COUNT iflag=direct` does.
    Dd {
        /// To the drive.
        write: bool,
        /// Bytes a block: a multiple of 512.
        bs: usize,
        /// Blocks.
        count: u64,
    },
    /// Reads the vendor ID of the first drive, as lspci does (MLE, "Latency
    /// Analysis for NVMe/TSN", section 4.1).
    ConfigReads {
        /// Reads.
        count: u64,
        /// Pause between an answer and the next read.
        gap: Duration,
    },
    /// Recorded commands.
    Replay(Replay),
    /// Nothing, without end: only programs run ([`World::run_program`](crate::World::run_program)).
    Idle,
}

/// The kind of I/O, as fio's `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Random reads and writes.
    RandRw,
    /// Sequential reads and writes.
    Rw,
}

/// The parameters of a fio job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fio {
    /// Kind of I/O.
    pub rw: Rw,
    /// Reads of 100 commands, where both occur.
    pub rwmixread: u8,
    /// Bytes a transfer: a multiple of 512. One above [`MAX_TRANSFER`](crate::drive::MAX_TRANSFER)
    /// is several commands, and is done when all are.
    pub bs: usize,
    /// Commands in flight a job.
    pub iodepth: usize,
    /// Jobs; each has a queue pair, a CPU and a part of the drive of its own.
    pub numjobs: usize,
    /// Bytes of the part of the drive that a job works in, and, without `runtime`, how much it
    /// moves. Bytes beyond the last whole block of `bs` are left.
    pub size: u64,
    /// Runs for this long instead.
    pub runtime: Option<Duration>,
    /// Bytes per second and job at most.
    pub rate: Option<u64>,
    /// A job pauses for this long after each `thinktime_blocks` transfers, when those in flight
    /// have ended; zero: never.
    pub thinktime: Duration,
    /// Completed transfers of a job between two pauses, at least 1.
    pub thinktime_blocks: u64,
    /// Bytes on one drive before the next one's turn, if the host has several (RAID0); a multiple
    /// of 512. 0 gives each job one drive: job n drive n modulo the number of drives.
    pub stripe: usize,
    /// The namespace of each drive that is worked on.
    pub nsid: u32,
}

impl Fio {
    /// Most commands in flight of a job: striped transfers, and those above
    /// [`MAX_TRANSFER`], are several commands.
    fn commands(&self) -> usize {
        let parts = match self.stripe {
            0 => self.bs.div_ceil(MAX_TRANSFER),
            stripe => (self.bs / stripe + 2) * stripe.div_ceil(MAX_TRANSFER),
        };
        self.iodepth * parts.max(1)
    }

    /// From one transfer of a job to the next, if its rate is limited.
    pub fn interval(&self) -> Option<Duration> {
        let ps = |rate: u64| self.bs as u128 * 1_000_000_000_000 / u128::from(rate.max(1));
        self.rate.map(|rate| Duration::from_ps(ps(rate) as u64))
    }

    /// `rw` with blocks of `bs` bytes, `iodepth` of them, one job, 1 MiB.
    pub fn new(rw: Rw, bs: usize, iodepth: usize) -> Self {
        Self {
            rw,
            rwmixread: 50,
            bs,
            iodepth,
            numjobs: 1,
            size: 1 << 20,
            runtime: None,
            rate: None,
            thinktime: Duration::ZERO,
            thinktime_blocks: 1,
            stripe: 0,
            nsid: 1,
        }
    }
}

/// How the host learns of completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionMode {
    /// By an interrupt: from the MSI-X write to the handler's first instruction.
    Interrupt {
        /// That time: waking an idle CPU included.
        latency: Duration,
    },
    /// By polling at multiples of this time.
    Polling {
        /// Time between two polls.
        interval: Duration,
    },
}

impl CompletionMode {
    /// When the host handles a completion entry that arrives at `now`.
    fn after(self, now: Instant) -> Instant {
        match self {
            Self::Interrupt { latency } => now + latency,
            Self::Polling { interval } => {
                let step = interval.as_ps().max(1);
                Instant::from_ps(now.as_ps().div_ceil(step) * step)
            }
        }
    }
}

/// CPU time and limits of host software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftwareConfig {
    /// From the moment when all drives are up to the beginning of the workload.
    pub start_delay: Duration,
    /// From the application's call to the doorbell write, CPU time.
    pub submit: Duration,
    /// How completions are signalled.
    pub completions: CompletionMode,
    /// From taking a completion entry to the application, CPU time.
    pub complete: Duration,
    /// MPS limit of enumeration in bytes.
    pub max_payload: usize,
    /// Max_Read_Request_Size in bytes.
    pub max_read_request: usize,
}

impl Workload {
    /// The equivalent fio parameters, if any.
    pub(crate) fn fio(&self) -> Option<Fio> {
        match self {
            Self::Fio(fio) => Some(fio.clone()),
            Self::Dd { write, bs, count } => {
                let rw = if *write { Rw::Write } else { Rw::Read };
                Some(Fio { size: *bs as u64 * count, ..Fio::new(rw, *bs, 1) })
            }
            Self::ConfigReads { .. } | Self::Replay(_) | Self::Idle => None,
        }
    }

    /// The namespace of each drive whose contents it knows.
    pub fn nsid(&self) -> u32 {
        self.fio().map_or(1, |fio| fio.nsid)
    }

    /// I/O queue pairs that it uses of each drive.
    pub(crate) fn queues(&self) -> u16 {
        let queues = match self {
            Self::Replay(replay) => replay.queues(),
            _ => self.fio().map_or(1, |fio| fio.numjobs),
        };
        queues.clamp(1, 64) as u16
    }

    /// Entries of its queues: one more than commands in flight.
    pub(crate) fn entries(&self) -> u16 {
        let depth = match self {
            Self::Replay(replay) => replay.depth(),
            _ => self.fio().map_or(1, |fio| fio.commands()),
        };
        (depth + 1).clamp(2, MOST_ENTRIES) as u16
    }
}
