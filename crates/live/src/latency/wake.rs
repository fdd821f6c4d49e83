//! The clock, and waking at a time.

use crate::clock::WallClock;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

const SECOND: u64 = 1_000_000_000;

/// CLOCK_TAI in ns.
pub fn now() -> u64 {
    WallClock::Tai.now()
}

/// Sleeps until CLOCK_TAI is `at`, or a signal comes; returns whether the time has come.
pub fn sleep_until(at: u64) -> bool {
    let time = TimeSpec::new((at / SECOND) as i64, (at % SECOND) as i64);
    // EINTR is the only error: the time is valid and the clock is there.
    clock_nanosleep(ClockId::CLOCK_TAI, ClockNanosleepFlags::TIMER_ABSTIME, &time).is_ok()
}

/// Reads CLOCK_TAI until it is `at`.
pub fn spin_until(at: u64) {
    while now() < at {
        std::hint::spin_loop();
    }
}

/// How much longer than asked this thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overslept {
    /// The least, in ns: what the machine takes when nothing is in the way.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// Sleeps for so many ns some times, and says how much longer it took. `span` is cut so that all of
/// them are asked to take a tenth of a second at most.
pub fn oversleep(span: u64, times: u64) -> Overslept {
    let span = span.min(SECOND / 10 / times.max(1));
    let once = |_| {
        let at = now() + span;
        sleep_until(at);
        now().saturating_sub(at)
    };
    let (least, most) = (0..times)
        .map(once)
        .fold((u64::MAX, 0), |(least, most), late| (late.min(least), late.max(most)));
    Overslept { least, most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_at_the_time_or_later() {
        let at = now() + 2_000_000;
        assert!(sleep_until(at) && now() >= at);
        let at = now() + 100_000;
        spin_until(at);
        assert!(now() >= at);
        assert!(sleep_until(1), "the time is over");
        let late = oversleep(1000, 21);
        assert!(late.least <= late.most);
        assert!(crate::clock::tai_offset_s() < 100);
    }
}
