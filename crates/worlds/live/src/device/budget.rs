//! Limits the time that connections other than the host's take: strangers and probes.

use wire::{Duration, Instant};

/// Such connections may take 1/`SHARE` of the thread's time.
const SHARE: u64 = 5;
/// Charged time per measured time. Only receiving is measured; sending the answers costs up
/// to four times as much again.
const FACTOR: i64 = 5;
/// Capacity of the bucket, in nanoseconds.
const BURST: i64 = 50_000_000;
/// The shortest pause, because its begin and end cost system calls.
const PAUSE: Duration = Duration::from_ms(4);

/// A token bucket of processor time, in nanoseconds.
#[derive(Debug)]
pub(super) struct Budget {
    /// Negative after work that took longer than what was left.
    left: i64,
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
        let earned = i64::try_from((now - self.at).as_ns() / SHARE).unwrap_or(i64::MAX);
        self.left = BURST.min(self.left.saturating_add(earned));
        self.at = now;
        self.left > 0
    }

    /// Charges work that took `time`.
    pub(super) fn charge(&mut self, time: Duration) {
        let time = i64::try_from(time.as_ns()).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(time.saturating_mul(FACTOR));
    }

    /// When work may go on, after [`is_left`](Self::is_left) returned false.
    pub(super) fn resumes(&self) -> Instant {
        self.at + PAUSE + Duration::from_ns(self.left.unsigned_abs().saturating_mul(SHARE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_its_share_and_no_more() {
        let (mut budget, mut now) = (Budget::default(), Instant::ZERO);
        let (mut charged, end) = (0, now + Duration::from_ms(10_000));
        while now < end {
            if budget.is_left(now) {
                let piece = Duration::from_us(10);
                now += piece;
                budget.charge(piece);
                charged += 10_000 * FACTOR;
            } else {
                now = budget.resumes();
            }
        }
        let share = 10_000_000_000 / SHARE as i64;
        assert!((share * 9 / 10..share + 2 * BURST).contains(&charged), "{charged}");
        now += Duration::from_ms(100_000);
        assert!(budget.is_left(now));
        assert_eq!(budget.left, BURST);
    }
}
