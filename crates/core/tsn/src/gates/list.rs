//! A validated gate control list.

use thiserror::Error;
use wire::{Duration, Instant};

use super::windows::Windows;
use crate::{LocalTime, QUEUES};

/// Which queues' gates are open: bit n is queue n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateStates(pub u8);

impl GateStates {
    /// All gates are open.
    pub const ALL: Self = Self(0xff);

    /// Whether the gate of `queue` is open.
    pub const fn is_open(self, queue: usize) -> bool {
        self.0 >> queue & 1 != 0
    }
}

/// What an entry does in addition to setting the gates (IEEE 802.1Q-2022, table 8-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// No further operation.
    #[default]
    SetGateStates,
    /// Holds preemptable frames until the next entry that releases them.
    SetAndHoldMac,
    /// Releases preemptable frames.
    SetAndReleaseMac,
}

impl Operation {
    /// The letter of the operation in tc-taprio(8).
    pub const fn letter(self) -> char {
        match self {
            Self::SetGateStates => 'S',
            Self::SetAndHoldMac => 'H',
            Self::SetAndReleaseMac => 'R',
        }
    }
}

/// An entry of a list: an operation and its interval (IEEE 802.1Q-2022, table 8-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The operation at the beginning of the entry.
    pub operation: Operation,
    /// The gates during the interval.
    pub states: GateStates,
    /// Length, above zero and a whole number of nanoseconds, as TimeInterval (12.29.1.2.3).
    pub interval: Duration,
}

impl Entry {
    /// An entry that sets the gates without an operation of preemption.
    pub const fn set(states: GateStates, interval: Duration) -> Self {
        Self { operation: Operation::SetGateStates, states, interval }
    }
}

/// Why a list is invalid. Entries are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListError {
    /// The list has no entries.
    #[error("a gate control list needs at least one entry")]
    NoEntries,
    /// More entries than [`GateControlList::MAX_ENTRIES`] or than the hardware supports.
    #[error("the list has {entries} entries; the maximum is {max}")]
    TooManyEntries {
        /// Number of entries.
        entries: usize,
        /// The maximum.
        max: usize,
    },
    /// An interval of zero.
    #[error("entry {0}: the interval is zero")]
    EmptyInterval(usize),
    /// An interval that is not a whole number of nanoseconds.
    #[error("entry {entry}: the interval of {ps} ps is not a whole number of nanoseconds")]
    Fraction {
        /// The entry.
        entry: usize,
        /// The interval.
        ps: u64,
    },
    /// An entry does not end within the cycle.
    #[error(
        "entry {entry} ends at {end_ns} ns of the cycle, after the cycle's end at {cycle_ns} ns"
    )]
    BeyondCycle {
        /// The entry.
        entry: usize,
        /// End of the entry.
        end_ns: u64,
        /// The cycle time.
        cycle_ns: u64,
    },
    /// The cycle time is zero, not a whole number of nanoseconds or above
    /// [`GateControlList::MAX_CYCLE`].
    #[error("invalid cycle time of {ps} ps: expected whole nanoseconds, 1 ns to {max} ns",
            max = GateControlList::MAX_CYCLE.as_ns())]
    Cycle {
        /// The cycle time.
        ps: u64,
    },
    /// A time that is not a multiple of the hardware's grain.
    #[error("{name} of {ps} ps is not a multiple of the clock's grain of {grain_ps} ps")]
    Grain {
        /// Name of the time: the interval of an entry, the cycle time or the base time.
        name: String,
        /// The time.
        ps: u64,
        /// The hardware's grain.
        grain_ps: u64,
    },
    /// The base time is not a whole number of nanoseconds.
    #[error("base time of {ps} ps is not a whole number of nanoseconds")]
    Base {
        /// The base time.
        ps: u64,
    },
}

/// Shares of a cycle, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenShare {
    /// The share with an open gate.
    pub time: f64,
    /// The share filled by whole frames.
    pub whole_frames: f64,
}

/// A validated list, with the open windows of every queue.
#[derive(Clone, Debug)]
pub struct GateControlList {
    entries: Vec<Entry>,
    base: Instant,
    cycle: Duration,
    windows: [Windows; QUEUES],
    hold: Windows,
}

impl GateControlList {
    /// The most entries of a list; switches support 64 to 1024.
    pub const MAX_ENTRIES: usize = 4096;

    /// The longest cycle, as in Linux's `taprio` (INT_MAX nanoseconds).
    pub const MAX_CYCLE: Duration = Duration::from_ns(i32::MAX as u64);

    /// A list that repeats every `cycle`, with a cycle start at `base` on the node's clock.
    ///
    /// # Errors
    /// The invalid entry or time, with the reason.
    pub fn new(base: Instant, cycle: Duration, entries: &[Entry]) -> Result<Self, ListError> {
        if entries.is_empty() {
            return Err(ListError::NoEntries);
        }
        if entries.len() > Self::MAX_ENTRIES {
            return Err(ListError::TooManyEntries {
                entries: entries.len(),
                max: Self::MAX_ENTRIES,
            });
        }
        if !whole(cycle) || cycle == Duration::ZERO || cycle > Self::MAX_CYCLE {
            return Err(ListError::Cycle { ps: cycle.as_ps() });
        }
        if !whole(Duration::from_ps(base.as_ps())) {
            return Err(ListError::Base { ps: base.as_ps() });
        }
        check_entries(cycle, entries)?;
        let windows = std::array::from_fn(|queue| {
            Windows::new(base, cycle, entries, |_, entry| entry.states.is_open(queue))
        });
        let held = holds(entries);
        let hold = Windows::new(base, cycle, entries, |index, _| held[index]);
        Ok(Self { entries: entries.to_vec(), base, cycle, windows, hold })
    }

    /// A list whose cycle is the sum of its intervals.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_entries(base: Instant, entries: &[Entry]) -> Result<Self, ListError> {
        check_intervals(entries)?;
        let cycle = entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.interval);
        Self::new(base, cycle, entries)
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The start of one cycle, on the node's clock.
    pub fn base_time(&self) -> Instant {
        self.base
    }

    /// Length of a cycle.
    pub fn cycle_time(&self) -> Duration {
        self.cycle
    }

    /// The share of a cycle in which any of `queues` may send, and the share that whole frames can
    /// fill. A frame takes `frame` from preamble to FCS; a `gap` follows.
    ///
    /// # Panics
    /// If a frame and its gap take no time.
    pub fn open_share(&self, queues: GateStates, frame: Duration, gap: Duration) -> OpenShare {
        let any = |_, entry: &Entry| entry.states.0 & queues.0 != 0;
        let windows = Windows::new(self.base, self.cycle, &self.entries, any);
        let cycle = self.cycle.as_ps() as f64;
        if windows.always_open() {
            return OpenShare { time: 1.0, whole_frames: 1.0 };
        }
        let time: u64 = windows.lengths().sum();
        let each = (frame + gap).as_ps();
        // The gap after the last frame may be outside of the window.
        let frames: u64 = windows.lengths().map(|open| (open + gap.as_ps()) / each).sum();
        OpenShare { time: time as f64 / cycle, whole_frames: (frames * each) as f64 / cycle }
    }

    /// The same entries, with a cycle start at the local time `at`.
    pub(super) fn beginning_at(mut self, at: LocalTime) -> Self {
        self.windows.iter_mut().chain([&mut self.hold]).for_each(|windows| windows.begin_at(at));
        self
    }

    pub(super) fn windows(&self, queue: usize) -> &Windows {
        &self.windows[queue]
    }

    /// The last preemption operation of a cycle, if any.
    pub(super) fn last_operation(&self) -> Operation {
        last_operation(&self.entries)
    }

    /// When preemptable frames are held.
    pub(super) fn hold(&self) -> &Windows {
        &self.hold
    }
}

/// Whether preemptable frames are held during each entry. Entries before the first preemption
/// operation continue the last operation of the previous cycle.
fn holds(entries: &[Entry]) -> Vec<bool> {
    let mut operation = last_operation(entries);
    let next = |entry: &Entry| {
        if entry.operation != Operation::SetGateStates {
            operation = entry.operation;
        }
        operation == Operation::SetAndHoldMac
    };
    entries.iter().map(next).collect()
}

fn last_operation(entries: &[Entry]) -> Operation {
    let mut operations = entries.iter().rev().map(|entry| entry.operation);
    operations.find(|operation| *operation != Operation::SetGateStates).unwrap_or_default()
}

fn check_intervals(entries: &[Entry]) -> Result<(), ListError> {
    for (index, entry) in entries.iter().enumerate() {
        if entry.interval == Duration::ZERO {
            return Err(ListError::EmptyInterval(index + 1));
        }
        if !whole(entry.interval) {
            let ps = entry.interval.as_ps();
            return Err(ListError::Fraction { entry: index + 1, ps });
        }
    }
    Ok(())
}

fn check_entries(cycle: Duration, entries: &[Entry]) -> Result<(), ListError> {
    check_intervals(entries)?;
    let mut end = Duration::ZERO;
    for (index, entry) in entries.iter().enumerate() {
        end = end + entry.interval;
        if end > cycle {
            let (end_ns, cycle_ns) = (end.as_ns(), cycle.as_ns());
            return Err(ListError::BeyondCycle { entry: index + 1, end_ns, cycle_ns });
        }
    }
    Ok(())
}

fn whole(duration: Duration) -> bool {
    duration.as_ps().is_multiple_of(1_000)
}
