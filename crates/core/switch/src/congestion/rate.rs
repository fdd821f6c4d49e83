//! A fixed rate: a token bucket, as in NEC's prototype ("simple rate limit function to virtualize
//! network congestion").

use wire::{Duration, Instant};

/// A rate on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second on the wire, at least 1.
    pub bits_per_second: u64,
    /// Number of largest frames that may be sent at once after a pause. With 1, no interval exceeds
    /// the rate; a larger burst compensates for late timers.
    pub burst: u32,
}

impl Rate {
    /// The time that `bytes` bytes take on the wire, rounded up to a picosecond.
    pub fn duration(self, bytes: u64) -> Duration {
        let ps = u128::from(bytes) * 8 * 1_000_000_000_000;
        let ps = ps.div_ceil(u128::from(self.bits_per_second));
        Duration::from_ps(ps.try_into().unwrap_or(u64::MAX))
    }

    /// The rate of each of `links`, at least one, that share this rate evenly.
    #[must_use]
    pub fn shared_by(self, links: u64) -> Self {
        Self { bits_per_second: (self.bits_per_second / links).max(1), ..self }
    }
}

/// A token bucket of [`Rate::burst`] frames.
#[derive(Clone, Debug)]
pub struct RateLimit {
    rate: Rate,
    /// Duration on the wire of the frames of a burst, except one.
    credit: Duration,
    /// When the next frame may be sent.
    next_send: Instant,
}

impl RateLimit {
    /// A rate limit for frames of at most `frame` bytes on the wire.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(rate: Rate, frame: u64) -> Self {
        assert!(rate.bits_per_second > 0, "a rate of zero");
        let credit = frame * u64::from(rate.burst.saturating_sub(1));
        Self { rate, credit: rate.duration(credit), next_send: Instant::ZERO }
    }

    /// Whether a frame may be sent.
    pub fn may_send(&self, now: Instant) -> bool {
        now >= self.next_send
    }

    /// When the next frame may be sent.
    pub fn not_before(&self) -> Instant {
        self.next_send
    }

    /// Counts a frame of `bytes` bytes that was sent.
    pub fn sent(&mut self, now: Instant, bytes: u64) {
        let earliest = now - self.credit;
        self.next_send = self.next_send.max(earliest) + self.rate.duration(bytes);
    }
}
