//! The node's time from the processor's counter, because reading the clock takes longer than all
//! other work for a record.

use crate::clock::Clock;
use wire::{Duration, Instant};

/// The longest time for which the counter is used without reading the clock. The rate of the
/// counter is known to some millionths, so the error is some ten nanoseconds.
const TRUSTED: Duration = Duration::from_ms(1);
/// After this long an idle node reads the clock again.
const FRESH: Duration = Duration::from_us(500);
/// Two readings of the counter that are closer than this, with a reading of the clock between them,
/// were not interrupted.
const CLOSE: Duration = Duration::from_us(1);
/// The largest number of readings: another thread may hold the processor, but the node must
/// continue.
const TRIES: usize = 16;

/// Timestamps from the processor's counter, or from the clock if there is no counter.
#[derive(Debug)]
pub(super) struct Timestamps {
    clock: Clock,
    counter: quanta::Clock,
    /// Simultaneous readings of counter and clock.
    raw: u64,
    at: Instant,
}

impl Timestamps {
    /// Measures the counter's rate, which takes a moment the first time.
    pub(super) fn new(clock: Clock) -> Self {
        let counter = quanta::Clock::new();
        let mut timestamps = Self { clock, raw: 0, at: Instant::ZERO, counter };
        timestamps.synchronize();
        timestamps
    }

    /// The time now.
    pub(super) fn now(&mut self) -> Instant {
        let passed = passed(&self.counter, self.raw, self.counter.raw());
        if passed > TRUSTED {
            self.synchronize();
            return self.at;
        }
        self.at + passed
    }

    /// Reads the clock while the node is idle, not when a timestamp is needed.
    pub(super) fn follow(&mut self, now: Instant) {
        if now >= self.at + FRESH {
            self.synchronize();
        }
    }

    /// Reads counter and clock at the same time.
    fn synchronize(&mut self) {
        let (counter, clock) = (&self.counter, self.clock);
        let read = || (counter.raw(), clock.now(), counter.raw());
        (self.raw, self.at) = uninterrupted(read, |from, to| passed(counter, from, to));
    }
}

fn passed(counter: &quanta::Clock, from: u64, to: u64) -> Duration {
    Duration::from_ns(counter.delta_as_nanos(from, to))
}

/// Simultaneous readings of counter and clock, from readings of the counter, the clock and the
/// counter. An interruption between them would falsify all timestamps until the next reading.
fn uninterrupted(
    mut read: impl FnMut() -> (u64, Instant, u64),
    passed: impl Fn(u64, u64) -> Duration,
) -> (u64, Instant) {
    let mut best = (None, 0, Instant::ZERO);
    for _ in 0..TRIES {
        let (before, at, after) = read();
        let took = passed(before, after);
        if best.0.is_none_or(|least| took < least) {
            best = (Some(took), before, at);
        }
        if took < CLOSE {
            break;
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripted readings. The first `bad` ones are interrupted for 30, 29, … microseconds after the
    /// reading of the counter.
    fn looks(bad: u64) -> (u64, (u64, Instant)) {
        let mut count = 0;
        let found = uninterrupted(
            || {
                let away = if count < bad { 30_000 - 1000 * count } else { 0 };
                let now = 100_000 * count;
                count += 1;
                (now, Instant::from_ns(now + away), now + away + 40)
            },
            |from, to| Duration::from_ns(to - from),
        );
        (count, found)
    }

    #[test]
    fn interrupted_looks_are_repeated_and_not_for_ever() {
        assert_eq!(looks(0), (1, (0, Instant::ZERO)));
        assert_eq!(looks(3), (4, (300_000, Instant::from_ns(300_000))));
        let best = 15 * 100_000;
        assert_eq!(looks(99), (16, (best, Instant::from_ns(best + 15_000))));
    }

    /// Also after a pause without readings.
    #[test]
    fn stamps_follow_the_clock() {
        let clock = Clock::start();
        let mut timestamps = Timestamps::new(clock);
        for round in 0..1000 {
            let (before, stamp, after) = (clock.now(), timestamps.now(), clock.now());
            // The rate is not exact, and the clock may be slewed.
            let most = Duration::from_us(2);
            assert!(before <= stamp + most && stamp <= after + most, "{before} {stamp} {after}");
            if round % 100 == 99 {
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            timestamps.follow(after);
        }
    }
}
