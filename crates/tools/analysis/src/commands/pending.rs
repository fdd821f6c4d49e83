//! Requests that wait for completions.

use super::HostRequest;
use super::claims::Match;
use super::queues::Fetched;
use super::step::{Direction, Step};
use std::collections::BTreeMap;
use std::ops::Range;
use wire::tlp::{Completion, MemoryRequest};
use wire::{Bdf, Instant, Tag};

/// Requests that may wait; beyond it the older half is forgotten.
const MOST_PENDING: usize = 8192;

/// A fetch of submission entries.
#[derive(Debug)]
pub(super) struct Fetch {
    pub queue: u16,
    pub generation: u64,
    /// The request itself.
    pub step: Step,
    /// What each entry is; `None` if no doorbell rang for it.
    pub entries: Vec<Option<Fetched>>,
    /// Completions so far, with the bytes they brought.
    pub answers: Vec<(Range<usize>, Step)>,
}

/// The purpose of a device's read of host memory.
#[derive(Debug)]
pub(super) enum Purpose {
    Fetch(Fetch),
    /// Data or PRP entries.
    Claimed(Match),
    Unknown,
}

/// A device's read of host memory.
#[derive(Debug)]
pub(super) struct Read {
    pub request: MemoryRequest,
    pub purpose: Purpose,
    /// The bytes so far, where all of them are needed together.
    pub buffer: Vec<u8>,
    /// The parts of what came that were not recorded.
    pub unknown: Vec<Range<usize>>,
    /// Bytes received.
    pub done: usize,
}

impl Read {
    /// Whether all of these bytes are known, of those that came.
    pub fn knows(&self, bytes: &Range<usize>) -> bool {
        self.unknown.iter().all(|hole| hole.end <= bytes.start || bytes.end <= hole.start)
    }
}

/// A request that waits for completions.
#[derive(Debug)]
pub(super) enum Waiting {
    Host(HostRequest),
    Device(Box<Read>),
}

impl Waiting {
    fn direction(&self) -> Direction {
        match self {
            Self::Host(_) => Direction::Down,
            Self::Device(_) => Direction::Up,
        }
    }
}

/// Requests by direction, requester and tag, each with its number in their order and the time since
/// which it waits.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: BTreeMap<(Direction, Bdf, Tag), (u64, Instant, Waiting)>,
    next: u64,
}

impl Pending {
    /// Notes a request. Returns how many older ones were forgotten for it:
    /// one with the same tag, or those beyond the limit.
    pub fn add(&mut self, requester: Bdf, tag: Tag, at: Instant, waiting: Waiting) -> (u64, u64) {
        let mut dropped = 0;
        if self.entries.len() >= MOST_PENDING {
            let mut orders: Vec<u64> = self.entries.values().map(|(order, ..)| *order).collect();
            orders.sort_unstable();
            let middle = orders[orders.len() / 2];
            self.entries.retain(|_, (order, ..)| *order >= middle);
            dropped = (MOST_PENDING - self.entries.len()) as u64;
        }
        (u64::from(self.insert(requester, tag, at, waiting)), dropped)
    }

    /// The request that a completion going in `direction` answers.
    pub fn take(&mut self, direction: Direction, c: &Completion) -> Option<Waiting> {
        let key = (direction.opposite(), c.requester, c.tag);
        self.entries.remove(&key).map(|(.., waiting)| waiting)
    }

    /// Puts a request back that waits for more, from `at` on.
    pub fn put_back(&mut self, c: &Completion, at: Instant, waiting: Waiting) {
        self.insert(c.requester, c.tag, at, waiting);
    }

    fn insert(&mut self, requester: Bdf, tag: Tag, at: Instant, waiting: Waiting) -> bool {
        self.next += 1;
        let key = (waiting.direction(), requester, tag);
        self.entries.insert(key, (self.next, at, waiting)).is_some()
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the requests that have waited only since `first` or later; how many.
    pub fn forget_since(&mut self, first: Instant) -> u64 {
        let before = self.len();
        self.entries.retain(|_, (_, at, _)| *at < first);
        (before - self.len()) as u64
    }

    /// Forgets the requests of a device.
    pub fn forget(&mut self, device: Bdf) {
        self.entries.retain(|(direction, requester, _), _| {
            *direction != Direction::Up || *requester != device
        });
    }
}
