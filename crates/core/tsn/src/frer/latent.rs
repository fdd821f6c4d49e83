//! Latent error detection (IEEE 802.1CB-2017, 7.4.4). While all paths work, a recovery function
//! discards `paths - 1` copies of each frame. If it discards fewer, a path is broken, although no
//! frame is lost yet.

use wire::{Duration, Instant};

use super::Counters;

/// Parameters of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentTest {
    /// frerSeqRcvyLatentErrorPaths: expected copies of each frame, 2 or more.
    pub paths: u32,
    /// frerSeqRcvyLatentErrorDifference: allowed difference between expected and discarded copies
    /// since the last reset of the counts.
    pub difference: u64,
    /// frerSeqRcvyLatentErrorPeriod: time between two tests.
    pub period: Duration,
    /// frerSeqRcvyLatentResetPeriod: time between two resets of the test's counts.
    pub reset_period: Duration,
}

impl LatentTest {
    /// The default of `period` (10.4.1.12.2).
    pub const PERIOD: Duration = Duration::from_ms(2_000);
    /// The default of `reset_period` (10.4.1.12.4).
    pub const RESET_PERIOD: Duration = Duration::from_ms(30_000);
}

/// Performs the test on the counters of a recovery function.
#[derive(Clone, Debug)]
pub struct LatentTester {
    test: LatentTest,
    next_test: Instant,
    next_reset: Instant,
    /// Passed and discarded frames at the last reset of the counts.
    base: (u64, u64),
    errors: u64,
}

impl LatentTester {
    /// A tester that begins at `start`.
    pub fn new(test: LatentTest, start: Instant) -> Self {
        let (next_test, next_reset) = (start + test.period, start + test.reset_period);
        Self { test, next_test, next_reset, base: (0, 0), errors: 0 }
    }

    /// Performs all tests that are due by `now`, and returns how many of them signalled an error.
    /// `counters` are the counters of the recovery function. Call this before the function
    /// receives a frame and before [`Self::errors`].
    pub fn advance(&mut self, now: Instant, counters: Counters) -> u64 {
        let mut found = 0;
        while self.next_test.min(self.next_reset) <= now {
            // A test due at the same time as a reset is performed first.
            if self.next_test <= self.next_reset {
                found += u64::from(self.is_wrong(counters));
                self.next_test += self.test.period;
            } else {
                self.base = (counters.passed, counters.discarded);
                self.next_reset += self.test.reset_period;
            }
        }
        self.errors += found;
        found
    }

    /// Number of tests that signalled an error (SIGNAL_LATENT_ERROR).
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Whether |passed * (paths - 1) - discarded| is above the allowed `difference` (7.4.4.4).
    fn is_wrong(&self, counters: Counters) -> bool {
        let passed = counters.passed - self.base.0;
        let discarded = counters.discarded - self.base.1;
        let expected = passed * u64::from(self.test.paths.saturating_sub(1));
        expected.abs_diff(discarded) > self.test.difference
    }
}
