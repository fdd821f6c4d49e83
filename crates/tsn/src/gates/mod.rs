//! Gate control lists: which of a port's eight queues may send, and when
//! (IEEE 802.1Q-2022, 8.6.8.4 and 8.6.9; formerly 802.1Qbv).
//!
//! A list repeats forever, also before its base time, which is the start of one cycle. If its
//! entries end before the cycle does, the last one lasts until then (8.6.9.2). Entries beyond the
//! cycle are an error here; the standard truncates them silently.

mod list;
mod windows;

pub use list::{Entry, GateControlList, GateStates, ListError, OpenShare, Operation};
use wire::{Duration, Instant};

use crate::{Clock, LocalTime};

/// A list that runs by a node's clock; arguments and results are in true time.
#[derive(Clone, Debug)]
pub struct Gates {
    list: GateControlList,
    clock: Clock,
}

impl Gates {
    /// A list and the clock it runs by.
    pub fn new(list: GateControlList, clock: Clock) -> Self {
        Self { list, clock }
    }

    /// The list.
    pub fn list(&self) -> &GateControlList {
        &self.list
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the gate of `queue` is open at `now`.
    pub fn is_open(&self, queue: usize, now: Instant) -> bool {
        self.list.is_open(queue, self.clock.local(now))
    }

    /// When the gate of `queue` opens or closes next, later than `now`.
    pub fn next_change(&self, queue: usize, now: Instant) -> Option<Instant> {
        let change = self.list.next_change(queue, self.clock.local(now))?;
        Some(self.clock.global(change))
    }

    /// The first instant, not before `now`, at which a transmission of `duration` may start so that
    /// it ends before the gate of `queue` closes (8.6.8.4: a frame is not available if there is
    /// "insufficient time"; its own length counts); ending at that very instant is in time. `None`:
    /// it never fits. For a guard by the largest frame, ask with that frame's duration.
    pub fn earliest_start(
        &self,
        queue: usize,
        now: Instant,
        duration: Duration,
    ) -> Option<Instant> {
        let windows = self.list.windows(queue);
        if windows.always_open() {
            return Some(now);
        }
        let mut local = self.clock.local(now);
        // One window more than a cycle has, since the first may be partly over; another one, since
        // a drifting clock makes windows a picosecond longer or shorter.
        for _ in 0..windows.len() + 2 {
            let (opens, closes) = windows.next(local)?;
            let start = now.max(self.clock.global(opens));
            if start + duration <= self.clock.global(closes) {
                return Some(start);
            }
            local = closes;
        }
        None
    }

    /// The longest time for which `queue` stays closed; see
    /// [`GateControlList::longest_closed`].
    pub fn longest_closed(&self, queue: usize) -> Option<Duration> {
        self.list.longest_closed(queue)
    }
}

impl GateControlList {
    /// Whether the gate of `queue` is open at `at`.
    pub fn is_open(&self, queue: usize, at: LocalTime) -> bool {
        self.windows(queue).is_open(at)
    }

    /// When the gate of `queue` opens or closes next, later than `after`; `None` if it never does.
    pub fn next_change(&self, queue: usize, after: LocalTime) -> Option<LocalTime> {
        self.windows(queue).next_change(after)
    }

    /// The longest time for which `queue` stays closed: zero if it never
    /// closes, `None` if it never opens. Compare it with timeouts.
    pub fn longest_closed(&self, queue: usize) -> Option<Duration> {
        self.windows(queue).longest_closed()
    }

    /// The longest time that a transmission of `duration` has to wait for the
    /// gate of `queue`: the longest closed span and the end of the window
    /// before it, into which it no longer fitted. `None`: it never fits.
    pub fn longest_wait(&self, queue: usize, duration: Duration) -> Option<Duration> {
        self.windows(queue).longest_wait(duration)
    }
}
