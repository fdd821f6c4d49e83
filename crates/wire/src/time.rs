//! Time: one integer type, picoseconds in 64 bits.
//!
//! A byte at 100 Gb/s lasts 80 ps; the range is 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time, in picoseconds since the start (of the process in live,
/// of the simulation in sim).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The start.
    pub const ZERO: Self = Self(0);

    /// The instant `ps` picoseconds after the beginning.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// The instant `ns` nanoseconds after the beginning; saturates.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// Picoseconds since the beginning.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds since the beginning.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// A span of `us` microseconds; saturates.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }

    /// A span of `ms` milliseconds; saturates.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000_000))
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl fmt::Display for Instant {
    /// Microseconds with three decimals, as protocol analysers print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

impl fmt::Display for Duration {
    /// Microseconds with three decimals, as protocol analysers print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.as_ns();
        f.pad(&format!("{}.{:03}us", ns / 1_000, ns % 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtraction_saturates_and_units_agree() {
        assert_eq!(Instant::from_ns(3) - Instant::from_ns(5), Duration::ZERO);
        assert_eq!(Duration::from_us(1), Duration::from_ns(1_000));
        assert_eq!(Duration::from_ms(1), Duration::from_us(1_000));
        assert_eq!((Instant::ZERO + Duration::from_ns(1_234)).to_string(), "1.234us");
    }
}
