//! Asynchronous traffic shaping: when a frame becomes eligible (IEEE 802.1Q-2022, 8.6.5.6 and
//! 8.6.11; formerly 802.1Qcr).
//!
//! A scheduler is a token bucket for the frames of a stream or of several streams. The schedulers
//! of frames received at one port in one traffic class are a group, whose frames keep their order.
//! A frame may leave from its eligibility time on; the queue is sorted by this time.
//!
//! All times are those of the bridge's own clock.

use thiserror::Error;
use wire::{Duration, Instant};

/// Picoseconds in a second.
const SECOND: i128 = 1_000_000_000_000;

/// A committed information rate of zero. Its scheduler would never release a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the committed information rate is 0 bit/s; the minimum is 1")]
pub struct NoRate;

/// A scheduler: the parameters and the fill level of a token bucket.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Committed information rate in bit/s.
    rate: i128,
    /// Committed burst size in bits.
    burst: i128,
    /// BucketEmptyTime in picoseconds, multiplied by the rate to avoid rounding. Negative at the
    /// beginning, because the bucket starts full.
    empty: i128,
}

/// The shared state of a group's schedulers (GroupEligibilityTime).
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    eligible: Instant,
}

impl Scheduler {
    /// A scheduler with a rate of `rate` bit/s (CIR) and a full bucket of `burst` bits (CBS).
    /// `burst` must be at least the bits of the largest frame.
    ///
    /// # Errors
    /// If the rate is zero.
    pub fn new(rate: u64, burst: u64) -> Result<Self, NoRate> {
        if rate == 0 {
            return Err(NoRate);
        }
        let burst = i128::from(burst);
        Ok(Self { rate: rate.into(), burst, empty: -burst * SECOND })
    }

    /// The eligibility time of a frame of `bits` bits that arrived at `arrival` (8.6.11,
    /// ProcessFrame), rounded up to a picosecond. The caller decides which bits count.
    ///
    /// `None` if the frame would wait longer than `max_residence` (MaximumResidenceTime). Then
    /// the state does not change, and the caller drops and counts the frame.
    pub fn admit(
        &mut self,
        group: &mut Group,
        arrival: Instant,
        bits: u64,
        max_residence: Option<Duration>,
    ) -> Option<Instant> {
        // SchedulerEligibilityTime and BucketFullTime, both multiplied by the rate.
        let own = self.empty + i128::from(bits) * SECOND;
        let full = self.empty + self.burst * SECOND;
        let eligible = arrival.max(group.eligible).max(self.instant(own));
        if max_residence.is_some_and(|most| eligible > arrival + most) {
            return None;
        }
        group.eligible = eligible;
        let time = i128::from(eligible.as_ps()).saturating_mul(self.rate);
        self.empty = own + time.saturating_sub(full).max(0);
        Some(eligible)
    }

    /// The first picosecond at or after a time that is multiplied by the rate.
    fn instant(&self, time: i128) -> Instant {
        let ps = time.max(0).unsigned_abs().div_ceil(self.rate.unsigned_abs());
        Instant::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}
