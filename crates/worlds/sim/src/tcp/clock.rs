//! The TCP stack's clock.
//!
//! smoltcp counts microseconds, measures round trips in whole milliseconds, and has timers for the
//! Internet. This is too coarse for a machine room. Therefore the clock of the stack runs [`SCALE`]
//! times as fast as true time: a microsecond of the stack is a nanosecond.
//!
//! | timer | smoltcp's | in simulated time | Linux |
//! | --- | --- | --- | --- |
//! | first and smallest retransmission timeout | 1 s | 1 ms | 1 s, 200 ms |
//! | largest | 60 s | 60 ms | 120 s |
//! | resolution of round trips | 1 ms | 1 us | 1 us |
//! | TIME-WAIT | 10 s | 10 ms | 60 s |
//! | zero window probe, first | the retransmission timeout | 1 ms | 200 ms |
//! | challenge acknowledgements, at most one in | 1 s | 1 ms | – |
//!
//! A loss that only a timer repairs costs 1 ms, compared with 200 ms in Linux with default
//! settings. Until the first round trip has been measured, a round trip above 1 ms (such as behind
//! a gate that is closed for long) counts as a loss. Delayed acknowledgement and user timeout are
//! parameters in simulated time.

use smoltcp::time;
use wire::{Duration, Instant};

/// The speed of the stack's clock relative to true time.
pub const SCALE: u64 = 1_000;

/// Picoseconds of true time in a microsecond of the stack.
const PS_PER_TICK: u64 = 1_000_000 / SCALE;

/// The stack's time at `now`.
pub(super) fn to_stack(now: Instant) -> time::Instant {
    time::Instant::from_micros_const((now.as_ps() / PS_PER_TICK) as i64)
}

/// The true time at which the stack's clock shows `at`.
pub(super) fn from_stack(at: time::Instant) -> Instant {
    Instant::from_ps(at.total_micros().max(0) as u64 * PS_PER_TICK)
}

/// A span in the units of the stack; at least one tick.
pub(super) fn span(duration: Duration) -> time::Duration {
    time::Duration::from_micros((duration.as_ps() / PS_PER_TICK).max(1))
}
