//! The node's time, read from the processor's counter: a look at the clock
//! itself takes longer than everything else that is done for a record.

use crate::clock::Clock;
use wire::{Duration, Instant};

/// How long the counter is followed without a look at the clock. Its rate is
/// known to some millionths, so that stamps are right to some ten nanoseconds.
const TRUSTED: Duration = Duration::from_ms(1);

/// See the module. Where there is no such counter it reads the clock.
#[derive(Debug)]
pub(super) struct Stamps {
    clock: Clock,
    counter: quanta::Clock,
    /// What both said at the same time.
    raw: u64,
    at: Instant,
}

impl Stamps {
    /// Measures the counter's rate, which takes a moment the first time.
    pub fn new(clock: Clock) -> Self {
        let counter = quanta::Clock::new();
        Self { clock, raw: counter.raw(), at: clock.now(), counter }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        self.at + Duration::from_ns(self.counter.delta_as_nanos(self.raw, self.counter.raw()))
    }

    /// Looks at the clock again, if the last look is too long ago at `now`.
    pub fn follow(&mut self, now: Instant) {
        if now >= self.at + TRUSTED {
            (self.raw, self.at) = (self.counter.raw(), self.clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_follow_the_clock() {
        let clock = Clock::start();
        let mut stamps = Stamps::new(clock);
        for _ in 0..1000 {
            let (before, stamp, after) = (clock.now(), stamps.now(), clock.now());
            // The rate is not exact, and the clock may be slewed.
            let most = Duration::from_us(2);
            assert!(before <= stamp + most && stamp <= after + most, "{before} {stamp} {after}");
            stamps.follow(after);
        }
    }
}
