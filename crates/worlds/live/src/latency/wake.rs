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

/// The shortest entry of a gate control list, in ns, that is asked of software gates, however fast
/// the machine is. Entries of 50 us were seen to work in an emulated guest, entries of 5 us to hang
/// it.
const SHORTEST_ENTRY: u64 = 100_000;

/// The shortest entry of a gate control list, in ns, that software gates of this machine can keep.
/// The kernel's taprio runs a timer at each entry (Linux net/sched/sch_taprio.c, `advance_sched`):
/// if that takes as long as the entry, the machine does nothing else. Measured with a thread that
/// wakes, in a tenth of a second at most.
pub fn shortest_entry() -> u64 {
    // proc_pid_timerslack_ns(5): so much later the kernel may wake a thread on purpose.
    let slack = std::fs::read_to_string("/proc/self/timerslack_ns").unwrap_or_default();
    shortest_entry_of(oversleep(SHORTEST_ENTRY, 21), slack.trim().parse().unwrap_or(0))
}

/// Twice what the machine takes to wake when nothing is in the way.
fn shortest_entry_of(late: Overslept, slack: u64) -> u64 {
    SHORTEST_ENTRY.max(2 * late.least.saturating_sub(slack))
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

    #[test]
    fn entries_last_twice_a_wake_up_and_100_us_at_least() {
        let of = |least, slack| shortest_entry_of(Overslept { least, most: 10 * least }, slack);
        // 2 * (58 - 50) us is less than 100 us; 2 * (450 - 50) us is not.
        assert_eq!((of(58_000, 50_000), of(450_000, 50_000)), (100_000, 800_000));
        assert_eq!((of(10_000, 50_000), of(60_000, 0)), (100_000, 120_000));
        assert!(shortest_entry() >= 100_000);
    }
}
