//! CPU time, of this thread and of the process.

use linux::time::{process_processor_time, thread_processor_time};
use std::time::Duration;

/// CPU time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    /// CPU time of the host node, which is the calling thread.
    pub host: u64,
    /// CPU time of the whole process.
    pub all: u64,
}

impl CpuTime {
    /// Returns the CPU time until now.
    pub fn now() -> Self {
        let ns = |time: Duration| time.as_nanos() as u64;
        Self { host: ns(thread_processor_time()), all: ns(process_processor_time()) }
    }

    /// Returns the CPU time since `earlier`: of the host node, and of all other threads, of which
    /// only the measured device node is active.
    pub fn since(self, earlier: Self) -> (u64, u64) {
        let host = self.host.saturating_sub(earlier.host);
        (host, self.all.saturating_sub(earlier.all).saturating_sub(host))
    }
}
