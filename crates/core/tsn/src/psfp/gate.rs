//! Stream gates: a list of intervals in which frames of a stream are accepted (IEEE 802.1Q-2022,
//! 8.6.5.4, 8.6.10).

use thiserror::Error;
use wire::{Duration, Instant};

use crate::{Clock, LocalTime, QUEUES};

/// The longest interval, as in a gate control list (12.29.1.2, 32 bits of nanoseconds).
pub const MAX_INTERVAL: Duration = Duration::from_ns(u32::MAX as u64);

/// An entry of a stream gate control list (table 8-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// Whether frames pass.
    pub open: bool,
    /// Internal priority value, 0 to 7, which selects the queue of passing frames. `None`: the
    /// frame's own priority selects it.
    pub ipv: Option<u8>,
    /// Length of the entry, above zero and at most [`MAX_INTERVAL`].
    pub interval: Duration,
    /// IntervalOctetMax: the bytes of SDUs that may pass in the entry. `None`: no limit.
    pub octets: Option<u64>,
}

/// Parameters of a stream gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateConfig {
    /// The start of one cycle, on the clock of the bridge.
    pub base: Instant,
    /// Length of a cycle, at least the sum of the entries. The last entry lasts to the end of the
    /// cycle.
    pub cycle: Duration,
    /// The entries, at least one.
    pub entries: Vec<GateEntry>,
    /// GateClosedDueToInvalidRxEnable: a frame that arrives at the closed gate closes it
    /// permanently.
    pub close_on_invalid: bool,
    /// GateClosedDueToOctetsExceededEnable: a frame beyond the octets of an interval closes the
    /// gate permanently.
    pub close_on_excess: bool,
    /// The bridge's clock.
    pub clock: Clock,
}

/// An invalid list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// No entry.
    #[error("a stream gate needs at least one entry")]
    Empty,
    /// The interval of this entry, counted from 1, is zero or above [`MAX_INTERVAL`].
    #[error("entry {0}: the interval is not 1 ps to {max} ns", max = MAX_INTERVAL.as_ns())]
    Interval(usize),
    /// The internal priority of this entry, counted from 1, is above 7.
    #[error("entry {0}: invalid internal priority: expected 0 to 7")]
    Priority(usize),
    /// The entries last longer than the cycle.
    #[error("the entries last {entries_ns} ns in total, longer than the cycle of {cycle_ns} ns")]
    Cycle {
        /// The sum of the entries, ns.
        entries_ns: u64,
        /// The cycle, ns.
        cycle_ns: u64,
    },
}

impl GateConfig {
    /// Checks the list.
    ///
    /// # Errors
    /// The first invalid entry, or a cycle that is too short.
    pub fn check(&self) -> Result<(), GateError> {
        let mut all = Duration::ZERO;
        for (number, entry) in self.entries.iter().enumerate() {
            if entry.interval == Duration::ZERO || entry.interval > MAX_INTERVAL {
                return Err(GateError::Interval(number + 1));
            }
            if entry.ipv.is_some_and(|ipv| usize::from(ipv) >= QUEUES) {
                return Err(GateError::Priority(number + 1));
            }
            all = all + entry.interval;
        }
        match () {
            () if self.entries.is_empty() => Err(GateError::Empty),
            () if all > self.cycle => {
                Err(GateError::Cycle { entries_ns: all.as_ns(), cycle_ns: self.cycle.as_ns() })
            }
            () => Ok(()),
        }
    }
}

/// Why a stream gate discards a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The gate is closed permanently.
    Blocked,
    /// The gate is closed now.
    Closed,
    /// The frame exceeds the octets that may still pass in the interval.
    Octets,
}

/// A stream gate.
#[derive(Clone, Debug)]
pub struct StreamGate {
    config: GateConfig,
    /// Cycle and entry of the last frame that met an open gate, and the octets passed in them.
    used: ((i64, usize), u64),
    closed: bool,
}

impl StreamGate {
    /// A gate that is not blocked.
    ///
    /// # Errors
    /// An invalid list.
    pub fn new(config: GateConfig) -> Result<Self, GateError> {
        config.check()?;
        Ok(Self { config, used: ((i64::MIN, 0), 0), closed: false })
    }

    /// Reopens the gate.
    pub(super) fn restart(&mut self) {
        (self.used, self.closed) = (((i64::MIN, 0), 0), false);
    }

    /// Sets the clock that the list follows, even after a step.
    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.config.clock = clock;
    }

    /// Whether the gate is closed permanently.
    pub fn is_blocked(&self) -> bool {
        self.closed
    }

    /// Passes or discards a frame with an SDU of `sdu` bytes, received at `now`. Returns the
    /// internal priority of a passing frame, if its entry has one.
    pub(super) fn pass(&mut self, now: Instant, sdu: u64) -> Result<Option<u8>, Held> {
        if self.closed {
            return Err(Held::Blocked);
        }
        let place = self.place(self.config.clock.local(now));
        let entry = self.config.entries[place.1];
        if !entry.open {
            self.closed = self.config.close_on_invalid;
            return Err(Held::Closed);
        }
        if self.used.0 != place {
            self.used = (place, 0);
        }
        if entry.octets.is_some_and(|most| self.used.1 + sdu > most) {
            self.closed = self.config.close_on_excess;
            return Err(Held::Octets);
        }
        self.used.1 += sdu;
        Ok(entry.ipv)
    }

    /// The cycle and the entry at a local time.
    fn place(&self, at: LocalTime) -> (i64, usize) {
        let GateConfig { base, cycle, entries, .. } = &self.config;
        let cycle_ps = cycle.as_ps().cast_signed();
        let since = at.as_ps().saturating_sub(base.as_ps().cast_signed());
        let (number, mut left) = (since.div_euclid(cycle_ps), since.rem_euclid(cycle_ps) as u64);
        for (at, entry) in entries.iter().enumerate() {
            let Some(rest) = left.checked_sub(entry.interval.as_ps()) else {
                return (number, at);
            };
            left = rest;
        }
        (number, entries.len() - 1)
    }
}
