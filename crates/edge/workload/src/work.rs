//! The interface of workloads with NVMe commands.

use crate::Observer;
use nvme::initiator::Driver;
use stats::Latency;
use wire::Instant;

/// Results of a workload.
#[derive(Debug, Default)]
pub struct Tally {
    /// Latencies of transfers, as the application sees them. Lost transfers are not included.
    pub latency: Latency,
    /// Number of bytes transferred. Lost transfers are not included.
    pub bytes: u64,
    /// Number of bytes transferred on each drive. Lost transfers are not included.
    pub drive_bytes: Vec<u64>,
    /// Number of commands that failed or were lost.
    pub failures: u64,
    /// Number of commands that failed with Reservation Conflict.
    pub conflicts: u64,
    /// Number of completion entries that match no outstanding command; [`Jobs`](crate::Jobs) only.
    pub spurious: u64,
    /// Number of differences between data and expected data: [`Jobs`](crate::Jobs) counts commands,
    /// a replay counts logical blocks.
    pub mismatches: u64,
    /// Number of logical blocks that were compared.
    pub verified: u64,
}

/// A range of bytes of a drive, and the number of writes of the range.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Offset of the first byte, in bytes.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Number of writes; `None` if the contents are uncertain.
    pub version: Option<u32>,
}

/// A workload on initialised drives.
pub trait Work {
    /// Starts the transfers.
    fn start(&mut self, now: Instant);

    /// Whether the workload is complete: no transfer is left or in flight.
    fn is_done(&self) -> bool;

    /// The time of the next call of [`run`](Self::run); `None` if the workload waits for
    /// completions only.
    fn next(&self) -> Option<Instant>;

    /// Reports that a completion entry arrived in I/O queue `queue` of drive `drive`, both counted
    /// from 0.
    fn signal(&mut self, now: Instant, drive: usize, queue: usize);

    /// Executes all actions that are due at `now`.
    fn run(&mut self, now: Instant, observer: &mut dyn Observer);

    /// The results so far.
    fn tally(&self) -> &Tally;

    /// Whether a command of a drive has exceeded the driver's time limit.
    fn is_late(&mut self, now: Instant, drive: usize) -> bool;

    /// Handles the loss of a drive: outstanding commands fail, and further commands wait until the
    /// drive is restored.
    fn drive_lost(&mut self, now: Instant, drive: usize, observer: &mut dyn Observer);

    /// Prevents further transfers on a drive. Returns whether all transfers in flight on the drive
    /// have ended.
    fn release(&mut self, drive: usize) -> bool;

    /// The writes to a drive.
    fn written(&self, drive: usize) -> Vec<Written>;

    /// Continues on a drive that was lost, with a new driver. `new_contents` means that the drive
    /// has its initial contents; then transfers that waited for the drive fail.
    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool);
}
