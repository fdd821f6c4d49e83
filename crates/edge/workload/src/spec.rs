//! The parameters of a section of a job file.

use crate::Fio;
use wire::Duration;

/// The accesses of host software to the drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSpec {
    /// Reads or writes blocks as fio does.
    Fio(Fio),
    /// Reads or writes blocks in order, one at a time, as dd with direct I/O does.
    Dd {
        /// Whether blocks are written; otherwise they are read.
        write: bool,
        /// Block size in bytes, a multiple of 512.
        bs: usize,
        /// Number of blocks.
        count: u64,
    },
    /// Reads the vendor ID of the first drive, as lspci does (MLE, "Latency Analysis for NVMe/TSN",
    /// section 4.1).
    ConfigReads {
        /// Number of reads.
        count: u64,
        /// Time between an answer and the next read.
        gap: Duration,
    },
}

impl JobSpec {
    /// The equivalent fio parameters; `None` for configuration reads.
    pub fn fio(&self) -> Option<Fio> {
        match self {
            Self::Fio(fio) => Some(fio.clone()),
            Self::Dd { write, bs, count } => Some(Fio::dd(*write, *bs, *count)),
            Self::ConfigReads { .. } => None,
        }
    }

    /// ID of the namespace that the job uses on each drive; 1 for configuration reads.
    pub fn nsid(&self) -> u32 {
        self.fio().map_or(1, |fio| fio.nsid)
    }
}
