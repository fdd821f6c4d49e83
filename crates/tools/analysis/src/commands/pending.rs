//! Requests that wait for completions.

use super::HostRequest;
use super::claims::Match;
use super::queues::Fetched;
use super::step::{Direction, Step};
use std::collections::BTreeMap;
use std::ops::Range;
use wire::tlp::{Completion, MemoryRequest};
use wire::{Bdf, Instant, Tag};

/// Maximum number of waiting requests. Beyond the limit the older half is dropped.
const MOST_PENDING: usize = 8192;

/// A fetch of submission entries.
#[derive(Debug)]
pub(super) struct Fetch {
    pub queue: u16,
    pub generation: u64,
    /// The read request.
    pub step: Step,
    /// How each entry was announced; `None` if there was no doorbell for the entry.
    pub entries: Vec<Option<Fetched>>,
    /// Completions so far, each with the range of bytes that the completion returned.
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
    /// The bytes received so far, if they must be interpreted together.
    pub buffer: Vec<u8>,
    /// The received ranges that were not recorded.
    pub unknown: Vec<Range<usize>>,
    /// Number of bytes received.
    pub done: usize,
}

impl Read {
    /// Returns whether all received bytes in this range were recorded.
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

/// Requests without a complete answer, by direction, requester and tag. Each has a sequence number
/// and the time at which its wait began.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: BTreeMap<(Direction, Bdf, Tag), (u64, Instant, Waiting)>,
    next: u64,
}

impl Pending {
    /// Adds a request. Returns how many older requests were dropped: with the same tag, and beyond
    /// the limit.
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

    /// Removes and returns the request for a completion that travels in `direction`; `None` if no
    /// such request waits.
    pub fn take(&mut self, direction: Direction, c: &Completion) -> Option<Waiting> {
        let key = (direction.opposite(), c.requester, c.tag);
        self.entries.remove(&key).map(|(.., waiting)| waiting)
    }

    /// Puts a request back that needs more completions. Its wait begins again at `at`.
    pub fn put_back(&mut self, c: &Completion, at: Instant, waiting: Waiting) {
        self.insert(c.requester, c.tag, at, waiting);
    }

    fn insert(&mut self, requester: Bdf, tag: Tag, at: Instant, waiting: Waiting) -> bool {
        self.next += 1;
        let key = (waiting.direction(), requester, tag);
        self.entries.insert(key, (self.next, at, waiting)).is_some()
    }

    /// Returns the number of waiting requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Drops the requests whose wait began at `first` or later. Returns their number.
    pub fn forget_since(&mut self, first: Instant) -> u64 {
        let before = self.len();
        self.entries.retain(|_, (_, at, _)| *at < first);
        (before - self.len()) as u64
    }

    /// Drops the requests of a device.
    pub fn forget(&mut self, device: Bdf) {
        self.entries.retain(|(direction, requester, _), _| {
            *direction != Direction::Up || *requester != device
        });
    }
}
