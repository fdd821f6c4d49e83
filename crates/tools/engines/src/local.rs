//! Threads of this process, which is a worker or runs the whole sweep.

use plan::run::Watch;
use plan::run::points::{Folder, Work};
use planning::bound::latency_bounds;
use report::Failure;
use std::collections::BTreeMap;
use std::time::Instant;
use wire::Duration;

/// Runs the missing ones of the points `only`. `threads` is the number of points at once; by
/// default, one for each processor. Returns the failures that cannot be written, by point.
///
/// # Errors
/// If the plan cannot be read on this machine, or has other files here.
pub fn work(
    folder: &Folder,
    only: &[usize],
    threads: Option<usize>,
    timeout: Option<Duration>,
    watch: &Watch<'_>,
) -> Result<BTreeMap<usize, String>, Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let begin = Instant::now();
    let work = Work {
        threads: threads.unwrap_or_else(cores),
        timeout,
        clock: &|| Duration::from_ns(begin.elapsed().as_nanos() as u64),
        bounds: latency_bounds,
    };
    folder.work(only, &work, watch)
}

/// Returns the name of this machine.
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
