//! The parameters of a section of a job file.

use crate::Fio;
use wire::Duration;

/// The work of host software on its drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSpec {
    /// Reads or writes blocks as fio does.
    Fio(Fio),
    /// Reads or writes blocks in order, one at a time, as `dd bs=BS count=COUNT iflag=direct` does.
    Dd {
        /// Whether to write to the drive.
        write: bool,
        /// Bytes per block: a multiple of 512.
        bs: usize,
        /// Blocks.
        count: u64,
    },
    /// Reads the vendor ID of the first drive, as lspci does (MLE, "Latency Analysis for NVMe/TSN",
    /// section 4.1).
    ConfigReads {
        /// Reads.
        count: u64,
        /// Pause between an answer and the next read.
        gap: Duration,
    },
}

impl JobSpec {
    /// The equivalent fio parameters, if any.
    pub fn fio(&self) -> Option<Fio> {
        match self {
            Self::Fio(fio) => Some(fio.clone()),
            Self::Dd { write, bs, count } => Some(Fio::dd(*write, *bs, *count)),
            Self::ConfigReads { .. } => None,
        }
    }

    /// The namespace that the job uses on each drive.
    pub fn nsid(&self) -> u32 {
        self.fio().map_or(1, |fio| fio.nsid)
    }
}
