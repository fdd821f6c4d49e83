//! A fixed rate: a token bucket that holds one frame, as NEC's prototype had
//! ("simple rate limit function to virtualize network congestion").

use wire::{Duration, Instant};

/// Bits of wire a second, from 1 b/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits of wire a second.
    pub bits_per_second: u64,
    /// Frames of the largest size that may go at once after a pause; 1 holds
    /// the rate over any time. More makes up for timers that come late.
    pub burst: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct RateLimit {
    rate: Rate,
    /// How far the bucket may be ahead: all but one frame of the burst.
    ahead: Duration,
    /// When the bucket is even: until then, what was sent is paid for.
    even: Instant,
}

impl RateLimit {
    /// For frames of at most `frame` bytes of wire.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(rate: Rate, frame: u64) -> Self {
        assert!(rate.bits_per_second > 0, "a rate of zero");
        let ahead = frame * u64::from(rate.burst.saturating_sub(1));
        Self { rate, ahead: span(rate, ahead), even: Instant::ZERO }
    }

    /// Whether a frame may go.
    pub fn may_send(&self, now: Instant) -> bool {
        now >= self.even
    }

    /// When the next frame may go.
    pub fn not_before(&self) -> Instant {
        self.even
    }

    /// A frame went.
    pub fn sent(&mut self, now: Instant, bytes: u64) {
        let earliest = Instant::ZERO + (now.since(Instant::ZERO) - self.ahead);
        self.even = self.even.max(earliest) + span(self.rate, bytes);
    }
}

/// How long `bytes` take, rounded up.
fn span(rate: Rate, bytes: u64) -> Duration {
    let ps = u128::from(bytes) * 8 * 1_000_000_000_000;
    Duration::from_ps(ps.div_ceil(u128::from(rate.bits_per_second)).try_into().unwrap_or(u64::MAX))
}
