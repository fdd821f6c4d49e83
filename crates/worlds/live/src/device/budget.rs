//! Limits the work that connections other than the host's cause: strangers and probes.

use wire::{Duration, Instant};

/// Bytes of work per millisecond. A frame of a probe has 24 bytes and costs up to 2 us, so that a
/// flood takes at most a fifth of a core.
const PER_MS: u64 = 2_000;
/// Bytes of work that may be done at once.
const BURST: u64 = 64 << 10;
/// The least charge for a read, because a system call costs as much as several frames.
const READ: u64 = 128;
/// The charge for a new connection.
const CONNECTION: u64 = 2_048;

/// A token bucket in bytes of work.
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
    /// Whether work may be done at `now`.
    pub(super) fn is_left(&mut self, now: Instant) -> bool {
        let ms = (now - self.at).as_ns() / 1_000_000;
        if ms > 0 {
            self.left = BURST.min(self.left.saturating_add(ms.saturating_mul(PER_MS)));
            self.at = now;
        }
        self.left > 0
    }

    /// Charges a new connection.
    pub(super) fn charge_connection(&mut self) {
        self.left = self.left.saturating_sub(CONNECTION);
    }

    /// Charges a read of `bytes`.
    pub(super) fn charge_read(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(READ.max(bytes as u64));
    }

    /// When work may be done again, after [`is_left`](Self::is_left) returned false.
    pub(super) fn resumes(&self) -> Instant {
        self.at + Duration::from_ms(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sustained_work_is_limited_to_the_rate() {
        let (mut budget, mut now, mut connections) = (Budget::default(), Instant::ZERO, 0);
        let end = now + Duration::from_ms(10_000);
        while now < end {
            while budget.is_left(now) {
                budget.charge_connection();
                connections += 1;
            }
            now = budget.resumes();
        }
        let most = (10_000 * PER_MS + BURST) / CONNECTION;
        assert!((most..=most + 10_000).contains(&connections), "{connections} {most}");
        now += Duration::from_ms(100_000);
        assert!(budget.is_left(now));
        assert_eq!(budget.left, BURST);
    }
}
