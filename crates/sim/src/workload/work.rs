//! What the kinds of workload with NVMe commands have in common.

use crate::measure::{Latency, Tracker};
use nvme::initiator::Driver;
use wire::Instant;

/// What a workload came to so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The application's transfers.
    pub latency: Latency,
    pub bytes: u64,
    /// The same by drive.
    pub drive_bytes: Vec<u64>,
    /// Commands that ended with an error, or never.
    pub failures: u64,
    /// Transfers or blocks read that held something else than they should.
    pub mismatches: u64,
    /// Blocks that were compared.
    pub verified: u64,
}

/// Bytes of a drive, and how often they were written; not known for sure with
/// `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub offset: u64,
    pub length: u64,
    pub version: Option<u32>,
}

/// A workload on drives that are up.
pub(super) trait Work {
    fn start(&mut self, now: Instant);

    fn is_done(&self) -> bool;

    /// When it has something to do.
    fn next(&self) -> Option<Instant>;

    /// A completion entry of queue `queue` (from 0) is announced.
    fn signal(&mut self, now: Instant, drive: usize, queue: usize);

    /// Does what is due.
    fn run(&mut self, now: Instant, tracker: &mut Tracker);

    fn tally(&self) -> &Tally;

    /// A drive is gone: its commands have failed, others wait for it.
    fn drive_lost(&mut self, now: Instant, drive: usize, tracker: &mut Tracker);

    /// Begins nothing more on a drive; whether what was begun there has ended.
    fn release(&mut self, drive: usize) -> bool;

    /// What was written to a drive.
    fn written(&self, drive: usize) -> Vec<Written>;

    /// It is back, with a driver that knows nothing of before. With
    /// `new_contents`, commands that waited for it have failed, and it holds
    /// what it held at first.
    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool);
}
