//! Gate control lists: which of a port's eight queues may send, and when
//! (IEEE 802.1Q-2022, 8.6.8.4 and 8.6.9; formerly 802.1Qbv).
//!
//! A list repeats forever, also before its base time. The base time is the start of one cycle. If
//! the entries end before the cycle, the last entry lasts to the end of the cycle (8.6.9.2).
//! Entries beyond the cycle are an error; the standard truncates them silently.
//!
//! A port can change from one list to the next ([`Gates::then`]), and a class can have its own list
//! ([`Gates::with_class_list`]).

mod change;
mod cycles;
mod hardware;
mod hold;
mod list;
mod merged;
mod open_time;
mod step;
mod track;
mod windows;

pub use cycles::{cycles_divide, hyperperiod};
pub use hardware::Hardware;
pub use hold::{Hold, HoldAdvance};
pub use list::{Entry, GateControlList, GateStates, ListError, OpenShare, Operation};
use step::Detour;
pub use step::{BURST_ENTRY, StepPolicy};
use track::Phase;
use windows::Windows;
use wire::{Duration, Instant};

use crate::{Clock, LocalTime};

/// The times of a cycle in which a gate is open, or preemptable frames are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleWindows {
    /// Start of a cycle on the node's clock.
    pub base: Duration,
    /// Length of a cycle.
    pub cycle: Duration,
    /// Start and end of each window, in order. A start is within the cycle; the last end may be
    /// after its end.
    pub open: Vec<(Duration, Duration)>,
}

/// The lists of a port on a node's clock. Arguments and results are in true time.
#[derive(Clone, Debug)]
pub struct Gates {
    list: GateControlList,
    clock: Clock,
    later: Vec<Phase>,
    classes: Vec<(GateStates, GateControlList)>,
    /// A temporary list after a step of the clock.
    detour: Option<Detour>,
}

impl Gates {
    /// The gates of a port with one list on `clock`.
    pub fn new(list: GateControlList, clock: Clock) -> Self {
        Self { list, clock, later: Vec::new(), classes: Vec::new(), detour: None }
    }

    /// The gates of a port without a list: all are open. The cycle is 1 ns, which divides every
    /// other cycle.
    pub fn always_open(clock: Clock) -> Self {
        let entry = Entry::set(GateStates::ALL, Duration::from_ns(1));
        let list = GateControlList::of_entries(Instant::ZERO, &[entry]);
        Self::new(list.expect("a valid list"), clock)
    }

    /// The windows of `queue`. `None` if the port changes from one list to another.
    pub fn cycle_windows(&self, queue: usize) -> Option<CycleWindows> {
        self.track(queue).only().map(Windows::in_cycle)
    }

    /// The times for which entries hold preemptable frames, without advances. `None` if the port
    /// changes from one list to another.
    pub fn cycle_holds(&self) -> Option<CycleWindows> {
        (self.later.is_empty() && self.detour.is_none()).then(|| self.list.hold().in_cycle())
    }

    /// The first list of the port.
    pub fn list(&self) -> &GateControlList {
        &self.list
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the gate of `queue` is open at `now`.
    pub fn is_open(&self, queue: usize, now: Instant) -> bool {
        let now = self.clock.local(now);
        self.track(queue).next(now).is_some_and(|(opens, _)| opens <= now)
    }

    /// When the gate of `queue` opens or closes next, later than `now`. `None` if it never does.
    pub fn next_change(&self, queue: usize, now: Instant) -> Option<Instant> {
        let now = self.clock.local(now);
        let (opens, closes) = self.track(queue).next(now)?;
        let change = if opens > now { opens } else { closes };
        (change < track::END).then(|| self.clock.global(change))
    }

    /// The first instant, not before `now`, at which a transmission of `duration` may start so that
    /// it ends before the gate of `queue` closes or exactly when the gate closes. `None`: the
    /// transmission never fits.
    ///
    /// In 8.6.8.4 a frame is not available if there is "insufficient time" for its own length. For
    /// a guard band of the largest frame, pass the duration of the largest frame.
    pub fn earliest_start(
        &self,
        queue: usize,
        now: Instant,
        duration: Duration,
    ) -> Option<Instant> {
        let track = self.track(queue);
        if track.only().is_some_and(Windows::always_open) {
            return Some(now);
        }
        let mut local = self.clock.local(now);
        // One window more than a cycle has, because the first window may be partly over.
        for _ in 0..track.windows_at(local).len() + 1 {
            let (opens, closes) = track.next(local)?;
            let start = now.max(self.clock.global(opens));
            if start + duration <= self.clock.global(closes) {
                return Some(start);
            }
            local = closes;
        }
        // The transmission may fit into a window of another list, or into a window that a drifting
        // clock makes a picosecond longer. A window fits if, with a margin of `duration - ps`, one
        // picosecond of it remains.
        let ps = Duration::from_ps(1);
        let after = self.after_open_time(queue, now, ps, duration - ps)?;
        Some(Instant::from_ps(after.as_ps() - 1))
    }

    /// The longest time that `queue` stays closed; see [`Self::longest_wait`].
    pub fn longest_closed(&self, queue: usize) -> Option<Duration> {
        self.longest_wait(queue, Duration::ZERO)
    }

    /// The longest time, on the node's clock, that a transmission of `duration` has to wait for the
    /// gate of `queue`, over all lists and changes; see [`GateControlList::longest_wait`].
    /// `None`: the transmission does not fit into any window of the last list.
    pub fn longest_wait(&self, queue: usize, duration: Duration) -> Option<Duration> {
        let track = self.track(queue);
        match track.only() {
            Some(windows) => windows.longest_wait(duration),
            None => track.longest_wait(self.clock.local(Instant::ZERO), duration),
        }
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

    /// The longest time that the gate of `queue` stays closed. Zero if it never closes; `None` if
    /// it never opens.
    pub fn longest_closed(&self, queue: usize) -> Option<Duration> {
        self.windows(queue).longest_closed()
    }

    /// The longest time that a transmission of `duration` waits for the gate of `queue`: a closed
    /// span, and the end of the window before this span that is too short for the transmission.
    /// `None`: the transmission never fits.
    pub fn longest_wait(&self, queue: usize, duration: Duration) -> Option<Duration> {
        self.windows(queue).longest_wait(duration)
    }
}
