//! Limits the processor time of work for strangers to a share.

use wire::{Duration, Instant};

/// A token bucket of processor time, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The work may take 1/`share` of the time.
    share: u64,
    /// Capacity of the bucket.
    burst: i64,
    /// Negative after work that took longer than what was left.
    left: i64,
    at: Instant,
}

impl Budget {
    /// A full bucket for 1/`share` of the time, with room for `burst`.
    pub(crate) fn new(share: u64, burst: Duration) -> Self {
        let burst = burst.as_ns() as i64;
        Self { share, burst, left: burst, at: Instant::ZERO }
    }

    /// Whether any time is left at `now`.
    pub(crate) fn is_left(&mut self, now: Instant) -> bool {
        let earned = i64::try_from((now - self.at).as_ns() / self.share).unwrap_or(i64::MAX);
        self.left = self.burst.min(self.left.saturating_add(earned));
        self.at = now;
        self.left > 0
    }

    /// Charges work that took `ns` nanoseconds.
    pub(crate) fn charge(&mut self, ns: u64) {
        self.left = self.left.saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX));
    }

    /// When time is left again, after [`is_left`](Self::is_left) returned false.
    pub(crate) fn resumes(&self) -> Instant {
        self.at + Duration::from_ns(self.left.unsigned_abs().saturating_mul(self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_share_and_no_more() {
        const SHARE: u64 = 5;
        let burst = Duration::from_ms(50);
        let (mut budget, mut now) = (Budget::new(SHARE, burst), Instant::ZERO);
        let (mut charged, end) = (0, now + Duration::from_ms(10_000));
        while now < end {
            if budget.is_left(now) {
                now += Duration::from_us(10);
                budget.charge(50_000);
                charged += 50_000;
            } else {
                now = budget.resumes() + Duration::from_ms(4);
            }
        }
        let share = 10_000_000_000 / SHARE;
        assert!((share * 9 / 10..share + 2 * burst.as_ns()).contains(&charged), "{charged}");
        now += Duration::from_ms(100_000);
        assert!(budget.is_left(now));
        assert_eq!(budget.left, burst.as_ns() as i64);
    }
}
