//! Workloads with fio's parameters over [`nvme::initiator::Driver`]s and [`pcie::Ram`]: the order
//! and times of reads and writes, the expected data, and the results.
//!
//! State machines: time is an argument. The owner of a workload passes interrupts in
//! ([`Work::signal`]) and runs it at the returned times ([`Work::run`], [`Work::next`]). The
//! simulator runs it in virtual time with modelled CPU costs, live nodes in real time without
//! costs.
//!
//! # Modules
//!
//! - `spec`: the parameters of a section of a job file
//! - `fio`: the parameters of jobs, in fio's words
//! - `jobs`: jobs: commands in flight, CPU time, verification
//! - `job`: one job: its part of the drives and its transfers
//! - `work`: the interface of workloads with NVMe commands
//! - `agenda`: due times
//! - `bring_up`: enumeration and initialisation of drives
//! - [`pattern`]: block contents that identify place and version
//! - `versions`: the number of writes of each block
//! - `observer`: the events that a workload reports

mod agenda;
mod bring_up;
mod fio;
mod job;
mod jobs;
mod observer;
pub mod pattern;
mod spec;
#[cfg(test)]
mod tests;
mod versions;
mod work;

pub use agenda::{Agenda, occupy};
pub use bring_up::{BootError, BringUp, NVME, NvmeDrive, nvme_functions};
pub use fio::{Fio, MOST_ENTRIES, Rw};
pub use jobs::{Jobs, Settings, SharedDriver, Verification};
pub use observer::{CommandKey, Mismatch, Observer, Outcome, Submission, Transfer};
pub use spec::JobSpec;
pub use work::{Tally, Work, Written};

use wire::{Duration, Instant};

/// How completions reach host software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionMode {
    /// By an interrupt: from the MSI-X write to the handler's first instruction.
    Interrupt {
        /// The latency, including the wake-up of an idle CPU.
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
    pub fn after(self, now: Instant) -> Instant {
        match self {
            Self::Interrupt { latency } => now + latency,
            Self::Polling { interval } => now.next_multiple_of(interval),
        }
    }
}

/// CPU time of host software for each command, in models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// From the application's call to the doorbell write.
    pub submit: Duration,
    /// How completions are signalled.
    pub completions: CompletionMode,
    /// From taking a completion entry to the application.
    pub complete: Duration,
}

impl Costs {
    /// No modelled time: real software takes its own time.
    pub const NONE: Self = Self {
        submit: Duration::ZERO,
        completions: CompletionMode::Interrupt { latency: Duration::ZERO },
        complete: Duration::ZERO,
    };
}
