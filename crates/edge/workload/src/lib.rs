//! Workloads in fio's words over [`nvme::initiator::Driver`]s and [`pcie::Ram`]: which blocks are
//! read and written when, what they should hold, and what came of it.
//!
//! State machines: time is an argument, and whoever owns a workload passes interrupts in
//! ([`Work::signal`]) and runs it at the times it names ([`Work::run`], [`Work::next`]). The
//! simulator runs it in virtual time with the costs of modelled CPUs, the live side in real time
//! with none.
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

/// How host software learns of completions.
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
    pub fn after(self, now: Instant) -> Instant {
        match self {
            Self::Interrupt { latency } => now + latency,
            Self::Polling { interval } => now.next_multiple_of(interval),
        }
    }
}

/// CPU time that host software takes for each command, as a model has it.
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
    /// None: real software takes its time by itself.
    pub const NONE: Self = Self {
        submit: Duration::ZERO,
        completions: CompletionMode::Interrupt { latency: Duration::ZERO },
        complete: Duration::ZERO,
    };
}
