//! A rate limit below the line's rate.

use wire::{Duration, Instant};

use super::config::RateStep;

/// When the rate step at `now` permits the next frame, after a frame that starts at `now` and has
/// `bytes` bytes, gap included.
pub(super) fn next_start(steps: &[RateStep], now: Instant, bytes: usize) -> Instant {
    let step = steps.iter().rfind(|step| step.at <= now);
    step.map_or(now, |step| {
        let ps = bytes as u128 * 8_000_000_000_000;
        now + Duration::from_ps((ps / u128::from(step.bits_per_second)) as u64)
    })
}
