//! Limits the time that connections other than the host's take: strangers and probes.

use wire::{Duration, Instant};

/// Such connections may take 1/`SHARE` of the thread's time.
const SHARE: u64 = 5;
/// Charged time per measured time. Only receiving is measured; sending the answers costs about
/// twice as much again.
const FACTOR: u64 = 3;
/// Capacity of the bucket, in nanoseconds.
const BURST: u64 = 5_000_000;

/// A token bucket of processor time, in nanoseconds.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    at: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: BURST, at: Instant::ZERO }
    }
}

impl Budget {
    /// Whether any time is left at `now`.
    pub(super) fn is_left(&mut self, now: Instant) -> bool {
        self.left = BURST.min(self.left.saturating_add((now - self.at).as_ns() / SHARE));
        self.at = now;
        self.left > 0
    }

    /// Charges work that took `time`.
    pub(super) fn charge(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time.as_ns().saturating_mul(FACTOR));
    }

    /// When work may go on, after [`is_left`](Self::is_left) returned false.
    pub(super) fn resumes(&self) -> Instant {
        self.at + Duration::from_ms(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_share_and_no_more() {
        let (mut budget, mut now, piece) = (Budget::default(), Instant::ZERO, 10_000);
        let (mut worked, end) = (0, now + Duration::from_ms(10_000));
        while now < end {
            if budget.is_left(now) {
                now += Duration::from_ns(piece);
                budget.charge(Duration::from_ns(piece));
                worked += piece * FACTOR;
            } else {
                now = budget.resumes();
            }
        }
        let share = 10_000_000_000 / SHARE;
        assert!((share..share + 2 * BURST).contains(&worked), "{worked}");
        now += Duration::from_ms(100_000);
        assert!(budget.is_left(now));
        assert_eq!(budget.left, BURST);
    }
}
