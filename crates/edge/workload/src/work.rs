//! The interface of workloads with NVMe commands.

use crate::Observer;
use nvme::initiator::Driver;
use stats::Latency;
use wire::Instant;

/// The results of a workload so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Latencies of the application's transfers.
    pub latency: Latency,
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes transferred, by drive.
    pub drive_bytes: Vec<u64>,
    /// Commands that ended with an error, or were lost.
    pub failures: u64,
    /// Transfers or blocks with unexpected contents.
    pub mismatches: u64,
    /// Blocks compared.
    pub verified: u64,
}

/// A range of a drive with its number of writes.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Number of writes; `None` if uncertain.
    pub version: Option<u32>,
}

/// A workload on drives that are up.
pub trait Work {
    /// Starts the workload.
    fn start(&mut self, now: Instant);

    /// Whether the workload is complete.
    fn is_done(&self) -> bool;

    /// When to run the workload next.
    fn next(&self) -> Option<Instant>;

    /// Signals a completion entry in queue `queue` (from 0).
    fn signal(&mut self, now: Instant, drive: usize, queue: usize);

    /// Runs the actions that are due.
    fn run(&mut self, now: Instant, observer: &mut dyn Observer);

    /// The results so far.
    fn tally(&self) -> &Tally;

    /// A drive is lost: its commands fail, further commands wait for it.
    fn drive_lost(&mut self, now: Instant, drive: usize, observer: &mut dyn Observer);

    /// Starts no more commands on a drive; returns whether the commands under way have ended.
    fn release(&mut self, drive: usize) -> bool;

    /// The writes to a drive.
    fn written(&self, drive: usize) -> Vec<Written>;

    /// A drive is back, with a new driver. With `new_contents` it has its initial
    /// contents, and commands that waited for it fail.
    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool);
}
