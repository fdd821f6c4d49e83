//! What the kinds of workload with NVMe commands have in common.

use crate::measure::{Latency, Tracker};
use wire::Instant;

/// What a workload came to so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The application's transfers.
    pub latency: Latency,
    pub bytes: u64,
    /// Commands that ended with an error.
    pub failures: u64,
    /// Transfers or blocks read that held something else than they should.
    pub mismatches: u64,
    /// Blocks that were compared.
    pub verified: u64,
}

/// A workload on drives that are up.
pub(super) trait Work {
    fn start(&mut self, now: Instant);

    fn is_done(&self) -> bool;

    /// When it has something to do.
    fn next(&self) -> Option<Instant>;

    /// A completion entry of queue `queue` (from 0) is announced.
    fn announced(&mut self, now: Instant, drive: usize, queue: usize);

    /// Does what is due.
    fn run(&mut self, now: Instant, tracker: &mut Tracker);

    fn tally(&self) -> &Tally;
}
