//! Time: integers that count picoseconds.
//!
//! A byte at 100 Gb/s lasts 80 ps. An [`Instant`] has 128 bits, because 64 bits overflow after 213
//! days and live nodes run longer. A [`Duration`] has 64 bits and saturates.

use std::fmt;
use std::num::NonZeroU128;
use std::ops::{Add, AddAssign, Sub};

/// A point in time. It counts from the start of the process in live nodes, and from the start of
/// the simulation in the simulator.
// The number is picoseconds plus one: without the value 0, `Option<Instant>` is as small as
// `Instant`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU128);

/// A span of time in picoseconds, at most 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The start.
    pub const ZERO: Self = Self(NonZeroU128::MIN);
    /// Later than every time that a node or a simulation reaches.
    pub const MAX: Self = Self(NonZeroU128::MAX);

    const fn new(ps: u128) -> Self {
        Self(NonZeroU128::MIN.saturating_add(ps))
    }

    const fn ps(self) -> u128 {
        self.0.get() - 1
    }

    /// The instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Self {
        Self::new(ps as u128)
    }

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Self {
        Self::new(ns as u128 * 1_000)
    }

    /// Picoseconds since the start, for simulated time: saturates after 213 days.
    pub const fn as_ps(self) -> u64 {
        saturate(self.ps())
    }

    /// Whole nanoseconds since the start; saturates after 584 years.
    pub const fn as_ns(self) -> u64 {
        // A division in 64 bits, enough for 213 days, is several times as fast.
        match self.ps() >> 64 {
            0 => self.ps() as u64 / 1_000,
            _ => saturate(self.ps() / 1_000),
        }
    }

    /// Time passed since `earlier`; zero if `earlier` is later; saturates after 213 days.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(saturate(self.ps_since(earlier)))
    }

    /// Picoseconds since `earlier`, for spans that may exceed a [`Duration`]; zero if `earlier` is
    /// later.
    pub const fn ps_since(self, earlier: Self) -> u128 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// Whole nanoseconds since `earlier`; zero if `earlier` is later; saturates after 584 years.
    pub const fn ns_since(self, earlier: Self) -> u64 {
        Self::new(self.ps_since(earlier)).as_ns()
    }

    /// The first multiple of `step`, counted from the start, that is not before this instant; this
    /// instant if `step` is zero.
    pub const fn next_multiple_of(self, step: Duration) -> Self {
        match step.0 {
            0 => self,
            step => Self::new(self.ps().next_multiple_of(step as u128)),
        }
    }
}

/// The earliest of several times; `None` if there is no time.
pub fn earliest(times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    times.into_iter().flatten().min()
}

const fn saturate(value: u128) -> u64 {
    if value > u64::MAX as u128 { u64::MAX } else { value as u64 }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
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
        Self(self.0.saturating_add(u128::from(rhs.0)))
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

impl Sub<Duration> for Instant {
    type Output = Self;
    /// The earlier instant; [`Instant::ZERO`] if it would be before the start.
    fn sub(self, rhs: Duration) -> Self {
        Self::new(self.ps().saturating_sub(u128::from(rhs.0)))
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

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.ps()).finish()
    }
}

impl fmt::Display for Instant {
    /// Microseconds with three decimals, as protocol analysers print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        microseconds(self.as_ns(), f)
    }
}

impl fmt::Display for Duration {
    /// Microseconds with three decimals, as protocol analysers print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        microseconds(self.as_ns(), f)
    }
}

fn microseconds(ns: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.pad(&format!("{}.{:03}us", ns / 1_000, ns % 1_000))
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

    /// The last instant that 64 bits of picoseconds hold, in nanoseconds: 213.5 days.
    const DAYS_213: u64 = u64::MAX / 1_000;
    const HUNDRED_YEARS: u64 = 100 * 36_525 * 864_000_000_000;

    #[test]
    fn times_are_exact_for_a_hundred_years() {
        for start in [DAYS_213 - 1, DAYS_213, HUNDRED_YEARS] {
            let now = Instant::from_ns(start);
            let later = now + Duration::from_ns(5);
            assert_eq!((now.as_ns(), later.as_ns()), (start, start + 5));
            assert!(later > now && later < Instant::MAX);
            assert_eq!(later - now, Duration::from_ns(5));
            assert_eq!(later - Duration::from_ns(5), now);
            assert_eq!((later.ps_since(now), later.ns_since(now)), (5_000, 5));
            assert_eq!((later.ns_since(Instant::ZERO), now.ns_since(later)), (start + 5, 0));
            let step = Duration::from_ns(7);
            assert_eq!(now.next_multiple_of(step), Instant::from_ns(start.next_multiple_of(7)));
        }
        assert_eq!(Instant::from_ns(1) - Duration::from_ns(2), Instant::ZERO);
        assert_eq!(Instant::from_ns(HUNDRED_YEARS) - Instant::ZERO, Duration::from_ps(u64::MAX));
    }

    #[test]
    fn an_optional_instant_takes_no_more_room() {
        assert_eq!(size_of::<Option<Instant>>(), 16);
        assert_eq!(format!("{:?}", Instant::from_ps(3)), "Instant(3)");
    }
}
