//! Clocks that several machines share, and sleeping until a time.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// A kernel clock that several machines may share (clock_gettime(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WallClock {
    /// CLOCK_TAI, as in `taprio`.
    #[default]
    Tai,
    /// CLOCK_REALTIME, for machines whose TAI offset is not set.
    Realtime,
}

impl WallClock {
    /// Nanoseconds since 1970.
    pub fn now(self) -> u64 {
        ns(match self {
            Self::Tai => ClockId::CLOCK_TAI,
            Self::Realtime => ClockId::CLOCK_REALTIME,
        })
    }
}

/// Nanoseconds since the machine was booted, suspended time included (CLOCK_BOOTTIME).
pub fn since_boot() -> u64 {
    ns(ClockId::CLOCK_BOOTTIME)
}

/// The time of a clock, in ns. Through the C library, because rustix reads clocks in a way that
/// valgrind cannot follow.
fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has had these clocks since 3.10");
    time.tv_sec() as u64 * SECOND + time.tv_nsec() as u64
}

/// Seconds by which CLOCK_TAI is ahead of CLOCK_REALTIME: 37 since 2017 (IERS Bulletin C 52) if a
/// program such as ptp4l or chrony has set the offset, otherwise 0.
pub fn tai_offset_s() -> u64 {
    let realtime = WallClock::Realtime.now();
    (WallClock::Tai.now().saturating_sub(realtime) + SECOND / 2) / SECOND
}

/// Processor time of the calling thread so far (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_processor_time() -> Duration {
    Duration::from_nanos(ns(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

/// Processor time of all threads of this process so far (CLOCK_PROCESS_CPUTIME_ID).
pub fn process_processor_time() -> Duration {
    Duration::from_nanos(ns(ClockId::CLOCK_PROCESS_CPUTIME_ID))
}

/// CLOCK_TAI, in ns since 1970.
pub fn now() -> u64 {
    WallClock::Tai.now()
}

/// Sleeps until CLOCK_TAI is `at`, in ns, or until a signal arrives. Returns false after a signal.
pub fn sleep_until(at: u64) -> bool {
    let time = TimeSpec::new((at / SECOND) as i64, (at % SECOND) as i64);
    // EINTR is the only possible error: the time is valid and the clock exists.
    clock_nanosleep(ClockId::CLOCK_TAI, ClockNanosleepFlags::TIMER_ABSTIME, &time).is_ok()
}

/// Polls CLOCK_TAI until it is `at`, in ns.
pub fn spin_until(at: u64) {
    while now() < at {
        std::hint::spin_loop();
    }
}

/// How much longer than requested this thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overslept {
    /// The shortest overrun, in ns: the overhead of an idle machine.
    pub least: u64,
    /// The longest overrun, in ns.
    pub most: u64,
}

/// Sleeps `times` times for `span` ns, and measures the overrun. Shortens `span` if all sleeps
/// together would take more than about a tenth of a second.
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
    fn sleep_until_never_returns_early() {
        let at = now() + 2_000_000;
        assert!(sleep_until(at) && now() >= at);
        let at = now() + 100_000;
        spin_until(at);
        assert!(now() >= at);
        assert!(sleep_until(1), "the time is over");
        let late = oversleep(1000, 21);
        assert!(late.least <= late.most);
        assert!(tai_offset_s() < 100);
    }
}
