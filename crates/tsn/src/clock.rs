//! A node's clock: true time with an offset and a drift.
//!
//! local = global + offset + floor(global * drift / 10^9), with the drift in
//! parts per billion. Integers only, so that both directions are exact:
//! [`Clock::global`] is the first picosecond at which the clock shows at least
//! a local time, and never contradicts [`Clock::local`].

use wire::Instant;

/// Parts per billion in one.
const BILLION: i128 = 1_000_000_000;

/// A time on a node's own clock, in picoseconds. It may lie before the
/// beginning of the world: clocks have offsets.
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

/// A clock with an offset and the drift of its oscillator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    offset_ps: i64,
    drift_ppb: i32,
}

impl Clock {
    /// The largest drift, in parts per billion: ten times the 100 ppm that
    /// IEEE 802.3 and 802.1AS (B.1.1) allow an oscillator.
    pub const MAX_DRIFT_PPB: i32 = 1_000_000;

    /// A clock that is `offset_ps` ahead (behind, if negative) at the beginning and gains
    /// `drift_ppb` nanoseconds a second. `None` if the drift is beyond [`Self::MAX_DRIFT_PPB`].
    pub const fn new(offset_ps: i64, drift_ppb: i32) -> Option<Self> {
        if drift_ppb.unsigned_abs() > Self::MAX_DRIFT_PPB.unsigned_abs() {
            return None;
        }
        Some(Self { offset_ps, drift_ppb })
    }

    /// What the clock shows at `global`. It never runs backwards. Saturates
    /// at the ends of the range, about 106 days from zero.
    pub fn local(&self, global: Instant) -> LocalTime {
        if self.drift_ppb == 0
            && let Ok(ps) = i64::try_from(global.as_ps())
        {
            return LocalTime(ps.saturating_add(self.offset_ps));
        }
        let ps = self.local_ps(i128::from(global.as_ps()));
        LocalTime(ps.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// The first instant at which the clock shows `local` or more; zero for
    /// times before the beginning.
    pub fn global(&self, local: LocalTime) -> Instant {
        let elapsed = i128::from(local.0) - i128::from(self.offset_ps);
        if elapsed <= 0 {
            return Instant::ZERO;
        }
        if self.drift_ppb == 0 {
            return Instant::from_ps(elapsed.min(i128::from(u64::MAX)) as u64);
        }
        // floor(g * rate / B) >= e  <=>  g * rate >= e * B  <=>  g >= ceil(e * B / rate).
        let rate = self.rate();
        let global = (elapsed * BILLION + rate - 1) / rate;
        Instant::from_ps(global.min(i128::from(u64::MAX)) as u64)
    }

    /// The shortest true time that a span of `ps` local picoseconds takes, in picoseconds; it takes
    /// at most one more.
    pub(crate) fn shortest(&self, ps: i64) -> u128 {
        (i128::from(ps) * BILLION / self.rate()) as u128
    }

    /// The sum of [`Self::global`] over `count` local times from `first`, every `step` picoseconds,
    /// in picoseconds. All are within the clock's range and after the beginning.
    pub(crate) fn sum_of_globals(&self, first: i64, step: i64, count: u64) -> u128 {
        let (elapsed, rate) = (i128::from(first) - i128::from(self.offset_ps), self.rate());
        let start = (elapsed * BILLION + rate - 1) as u128;
        sum_of_floors(count.into(), rate as u128, step as u128 * BILLION as u128, start)
    }

    fn rate(&self) -> i128 {
        BILLION + i128::from(self.drift_ppb)
    }

    fn local_ps(&self, global: i128) -> i128 {
        (global * self.rate()).div_euclid(BILLION) + i128::from(self.offset_ps)
    }
}

/// The sum of floor((start + k * step) / divisor) for k below `count`, in as many rounds as Euclid's
/// algorithm needs for divisor and step.
fn sum_of_floors(mut count: u128, mut divisor: u128, mut step: u128, mut start: u128) -> u128 {
    let mut sum = 0;
    while count > 0 {
        sum += count * (count - 1) / 2 * (step / divisor) + count * (start / divisor);
        (step, start) = (step % divisor, start % divisor);
        // The remaining floors count lattice points under a line: count them along the other axis.
        let top = start + step * count;
        (count, start) = (top / divisor, top % divisor);
        (divisor, step) = (step, divisor);
    }
    sum
}
