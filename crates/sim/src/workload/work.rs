//! The interface of workloads with NVMe commands.

use crate::measure::{Latency, Tracker};
use nvme::initiator::Driver;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wire::{Duration, Instant};

/// The results of a workload so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The application's transfers.
    pub latency: Latency,
    pub bytes: u64,
    /// The same by drive.
    pub drive_bytes: Vec<u64>,
    /// Commands that ended with an error, or were lost.
    pub failures: u64,
    /// Transfers or blocks with other contents than expected.
    pub mismatches: u64,
    /// Blocks that were compared.
    pub verified: u64,
}

/// A range of a drive, and how often it was written; `None` if uncertain.
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

    /// When it is to be run next.
    fn next(&self) -> Option<Instant>;

    /// Signals a completion entry in queue `queue` (from 0).
    fn signal(&mut self, now: Instant, drive: usize, queue: usize);

    /// Runs the actions that are due.
    fn run(&mut self, now: Instant, tracker: &mut Tracker);

    fn tally(&self) -> &Tally;

    /// A drive is lost: its commands fail, further commands wait for it.
    fn drive_lost(&mut self, now: Instant, drive: usize, tracker: &mut Tracker);

    /// Begins no more commands on a drive; whether those under way have ended.
    fn release(&mut self, drive: usize) -> bool;

    /// What was written to a drive.
    fn written(&self, drive: usize) -> Vec<Written>;

    /// A drive is back, with a new driver. With `new_contents` it has its initial
    /// contents, and commands that waited for it fail.
    fn drive_restored(&mut self, now: Instant, drive: usize, driver: Driver, new_contents: bool);
}

/// Actions that are due at their times; those of one time in the order of scheduling.
#[derive(Debug)]
pub(super) struct Agenda<A> {
    actions: BinaryHeap<Reverse<(Instant, u64, A)>>,
    scheduled: u64,
}

impl<A: Ord> Agenda<A> {
    pub fn new() -> Self {
        Self { actions: BinaryHeap::new(), scheduled: 0 }
    }

    pub fn schedule(&mut self, at: Instant, action: A) {
        self.scheduled += 1;
        self.actions.push(Reverse((at, self.scheduled, action)));
    }

    /// The time of the next action.
    pub fn next(&self) -> Option<Instant> {
        self.actions.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next action if it is due.
    pub fn due(&mut self, now: Instant) -> Option<A> {
        self.next().filter(|at| *at <= now)?;
        self.actions.pop().map(|Reverse((.., action))| action)
    }
}

/// Occupies a CPU for `span` as soon as it is free; until when.
pub(super) fn occupy(cpu: &mut Instant, now: Instant, span: Duration) -> Instant {
    *cpu = (*cpu).max(now) + span;
    *cpu
}
