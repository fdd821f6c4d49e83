//! The CPUs of the nodes: a station's nodes share one CPU, because the scheduler may put both ends
//! of a link on one, and then a wake-up costs a tenth.

use linux::cpu::{allowed, pin};
use report::{Failure, Outcome};

/// The CPUs for stations.
#[derive(Clone, Debug)]
pub struct Cpus(Vec<usize>);

impl Default for Cpus {
    /// Returns the CPUs on which the caller's thread may run.
    fn default() -> Self {
        Self(allowed())
    }
}

impl Cpus {
    /// Returns the CPU of a station.
    pub fn of(&self, station: usize) -> usize {
        self.0[station % self.0.len()]
    }

    /// Keeps this thread on the CPU of a station.
    ///
    /// # Errors
    /// If this process may no longer run there.
    pub fn keep(&self, station: usize) -> Outcome {
        pin(self.of(station)).map_err(Failure)
    }
}
