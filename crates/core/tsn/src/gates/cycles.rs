//! Relations between cycles.

use wire::Duration;

/// Whether one of two cycles is a whole multiple of the other, so that every longer cycle has the
/// same relation to the shorter ones. False if a cycle is zero.
pub fn cycles_divide(a: Duration, b: Duration) -> bool {
    let (short, long) = (a.min(b).as_ps(), a.max(b).as_ps());
    short != 0 && long.is_multiple_of(short)
}

/// The time after which all `cycles` align again: their least common multiple. `None` if there is
/// no cycle, if a cycle is zero, or if the result is above 2^64 - 1 ps.
pub fn hyperperiod(mut cycles: impl Iterator<Item = Duration>) -> Option<Duration> {
    let first = cycles.next()?.as_ps();
    let next = |all: u64, cycle: Duration| {
        let shared = common(all, cycle.as_ps());
        (all / shared).checked_mul(cycle.as_ps())
    };
    let all = match first {
        0 => None,
        _ => cycles.try_fold(first, |all, cycle| next(all, cycle).filter(|&all| all != 0)),
    };
    all.map(Duration::from_ps)
}

/// The greatest common divisor.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
