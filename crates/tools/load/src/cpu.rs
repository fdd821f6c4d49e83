//! CPU time, of this thread and of the process.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds spent so far.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    /// Of the host node: the calling thread.
    pub host: u64,
    /// Of the whole process.
    pub all: u64,
}

impl CpuTime {
    /// Now.
    pub fn now() -> Self {
        let ns = |id| {
            let time = clock_gettime(id);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        Self { host: ns(ClockId::ThreadCPUTime), all: ns(ClockId::ProcessCPUTime) }
    }

    /// Spent since `earlier`: by the host node, and by everything else, which
    /// is the device node whose turn it is.
    pub fn since(self, earlier: Self) -> (u64, u64) {
        let host = self.host.saturating_sub(earlier.host);
        (host, self.all.saturating_sub(earlier.all).saturating_sub(host))
    }
}
