//! A node's clock: true time with an offset and a drift.
//!
//! local = floor(offset + (global - from) * rate), with the rate in parts per 10^12. Integer
//! arithmetic makes both directions exact: [`Clock::global`] is the first picosecond at which
//! [`Clock::local`] returns the given local time or a later one.

use wire::Instant;

/// Parts per 10^12 in one.
const TRILLION: i128 = 1_000_000_000_000;
const ONE: u128 = TRILLION as u128;

/// A time on a node's own clock, in picoseconds. May be negative, because clocks have offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime(i64);

impl LocalTime {
    /// The time `ps` picoseconds after the clock's zero.
    pub const fn from_ps(ps: i64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the clock's zero.
    pub const fn as_ps(self) -> i64 {
        self.0
    }
}

/// A clock that shows a local time at an instant and then runs at a rate: an oscillator with offset
/// and drift, or a piece of a steered clock ([`Self::with_rate`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The instant, in picoseconds.
    from: u64,
    /// The local time at the instant, in 10^-12 ps, which is exact at any rate.
    local: i128,
    drift_ppt: i64,
}

impl Clock {
    /// The largest drift of an oscillator, in parts per billion: ten times the 100 ppm that
    /// IEEE 802.3 and 802.1AS (B.1.1) allow.
    pub const MAX_DRIFT_PPB: i32 = 1_000_000;

    /// The largest change of rate, in parts per 10^12: a tenth. `max_adj` of Linux's PTP clocks is
    /// below it (62 499 999 ppb of igb and igc).
    pub const MAX_RATE_PPT: i64 = 100_000_000_000;

    /// A clock that is `offset_ps` ahead (behind, if negative) at the beginning and gains
    /// `drift_ppb` nanoseconds per second. `None` if the drift is beyond [`Self::MAX_DRIFT_PPB`].
    pub const fn new(offset_ps: i64, drift_ppb: i32) -> Option<Self> {
        if drift_ppb.unsigned_abs() > Self::MAX_DRIFT_PPB.unsigned_abs() {
            return None;
        }
        let local = offset_ps as i128 * TRILLION;
        Some(Self { from: 0, local, drift_ppt: drift_ppb as i64 * 1_000 })
    }

    /// The same clock until `now`. From `now` on the clock gains `drift_ppt` picoseconds per
    /// second, limited to ±[`Self::MAX_RATE_PPT`].
    #[must_use]
    pub fn with_rate(self, now: Instant, drift_ppt: i64) -> Self {
        let passed = i128::from(now.as_ps()) - i128::from(self.from);
        Self {
            from: now.as_ps(),
            local: self.local + passed * self.rate(),
            drift_ppt: drift_ppt.clamp(-Self::MAX_RATE_PPT, Self::MAX_RATE_PPT),
        }
    }

    /// The same clock, set forward by `ps`, or back if negative.
    #[must_use]
    pub fn stepped(self, ps: i64) -> Self {
        Self { local: self.local + i128::from(ps) * TRILLION, ..self }
    }

    /// The frequency error against true time, in parts per 10^12.
    pub fn drift_ppt(&self) -> i64 {
        self.drift_ppt
    }

    /// The time that the clock shows at `global`. Only a step makes this time go back. Saturates
    /// at the ends of the range, about 106 days from zero.
    pub fn local(&self, global: Instant) -> LocalTime {
        let ps = if *self == Self::default() {
            i128::from(global.as_ps())
        } else {
            let passed = i128::from(global.as_ps()) - i128::from(self.from);
            (self.local + passed * self.rate()).div_euclid(TRILLION)
        };
        LocalTime(ps.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// The first instant at which the clock shows `local` or a later time. Zero if that instant
    /// is before the beginning.
    pub fn global(&self, local: LocalTime) -> Instant {
        if *self == Self::default() {
            return Instant::from_ps(local.0.max(0) as u64);
        }
        // local + g * rate >= l * T  <=>  g >= ceil((l * T - local) / rate).
        let ahead = i128::from(local.0) * TRILLION - self.local;
        let global = i128::from(self.from) - (-ahead).div_euclid(self.rate());
        Instant::from_ps(global.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// The true time that a span of `ps` local picoseconds takes, in picoseconds, rounded down. By
    /// rounding, some spans take one picosecond more.
    pub(crate) fn shortest(&self, ps: i64) -> u128 {
        (i128::from(ps) * TRILLION / self.rate()) as u128
    }

    /// The sum of [`Self::global`] in picoseconds over `count` local times: `first`, and then one
    /// every `step` picoseconds. All times must be in the range and not before the last change of
    /// the rate.
    pub(crate) fn sum_of_globals(&self, first: i64, step: i64, count: u64) -> u128 {
        let (ahead, rate) = (i128::from(first) * TRILLION - self.local, self.rate());
        let start = (ahead + rate - 1) as u128;
        let floors = sum_of_floors(count.into(), rate as u128, step as u128 * ONE, start);
        floors + u128::from(self.from) * u128::from(count)
    }

    fn rate(&self) -> i128 {
        TRILLION + i128::from(self.drift_ppt)
    }
}

/// The sum of floor((start + k * step) / divisor) for k from 0 to `count` - 1. Takes as many rounds
/// as Euclid's algorithm for `divisor` and `step`.
fn sum_of_floors(mut count: u128, mut divisor: u128, mut step: u128, mut start: u128) -> u128 {
    let mut sum = 0;
    while count > 0 {
        sum += count * (count - 1) / 2 * (step / divisor) + count * (start / divisor);
        (step, start) = (step % divisor, start % divisor);
        // The remaining sum is the number of lattice points below a line. The next round counts
        // them along the other axis.
        let top = start + step * count;
        (count, start) = (top / divisor, top % divisor);
        (divisor, step) = (step, divisor);
    }
    sum
}
