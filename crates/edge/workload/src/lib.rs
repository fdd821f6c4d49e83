//! Workloads with fio's parameters over [`nvme::initiator::Driver`]s and [`pcie::Ram`]: the order
//! and times of reads and writes, the expected data, and the results.
//!
//! Workloads are state machines, and time is an argument. The owner of a workload reports
//! interrupts ([`Work::signal`]) and calls [`Work::run`] at the times that [`Work::next`] returns.
//! The simulator runs workloads in virtual time with modelled CPU times; live nodes run them in
//! real time without modelled CPU times.
//!
//! # Modules
//!
//! - `spec`: the parameters of a section of a job file
//! - `fio`: the parameters of jobs, with the names of fio
//! - `jobs`: the jobs of a host: commands in flight, CPU time, verification
//! - `job`: one job: the part of the drives that it uses, and the choice of transfers
//! - `work`: the interface of workloads with NVMe commands
//! - `agenda`: a queue of actions, ordered by due time; CPUs
//! - `bring_up`: enumeration and initialisation of drives
//! - [`pattern`]: block contents that identify offset and version
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

pub use agenda::{Agenda, Cpu};
pub use bring_up::{BootError, BringUp, NVME, NvmeDrive, nvme_functions};
pub use fio::{Fio, MOST_ENTRIES, Rw};
pub use jobs::{Jobs, Settings, SharedDriver, Verification};
pub use observer::{CommandKey, Mismatch, Observer, Outcome, Submission, Transfer};
pub use spec::JobSpec;
pub use work::{Tally, Work, Written};

use wire::{Duration, Instant};

/// How host software notices completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionMode {
    /// By an interrupt.
    Interrupt {
        /// Time from the MSI-X write to the first instruction of the handler, including the wake-up
        /// of an idle CPU.
        latency: Duration,
    },
    /// By polling, at multiples of an interval.
    Polling {
        /// Time between two polls.
        interval: Duration,
    },
}

impl CompletionMode {
    /// The time at which host software handles a completion entry that arrives at `now`.
    pub fn after(self, now: Instant) -> Instant {
        match self {
            Self::Interrupt { latency } => now + latency,
            Self::Polling { interval } => now.next_multiple_of(interval),
        }
    }

    /// As [`after`](Self::after); the latency of an interrupt occupies the CPU `shared`.
    pub fn after_on(self, now: Instant, shared: Option<&Cpu>) -> Instant {
        match (self, shared) {
            (Self::Interrupt { latency }, Some(cpu)) => cpu.occupy(now, latency),
            _ => self.after(now),
        }
    }
}

/// The modelled CPU times of host software for each command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// CPU time from the application's call to the doorbell write.
    pub submit: Duration,
    /// How host software notices completions.
    pub completions: CompletionMode,
    /// CPU time from reading the completion entry until the application has the result.
    pub complete: Duration,
}

impl Costs {
    /// No modelled times, for real software.
    pub const NONE: Self = Self {
        submit: Duration::ZERO,
        completions: CompletionMode::Interrupt { latency: Duration::ZERO },
        complete: Duration::ZERO,
    };
}
