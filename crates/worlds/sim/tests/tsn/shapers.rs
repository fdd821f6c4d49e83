//! Models of the standard's shapers, which calculate from the frames that a port sent.

use super::*;
use sim::ethernet::frame::{GAP, PREAMBLE};
use sim::ethernet::port::{Ats, Counted, CreditBased};

/// The credit of a class without gates in picobits. Gaps count (802.1Q-2022, 8.6.8.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct CreditModel {
    credit: i128,
    at: Instant,
}

impl CreditModel {
    /// When the credit permits the first frame of the queue, which entered at `entered`, to start.
    /// Before `entered` the queue was empty: positive credit is lost, and negative credit rises to
    /// at most zero.
    pub fn ready(&mut self, shaper: &CreditBased, entered: Instant) -> Instant {
        if entered >= self.at {
            let risen = self.credit + self.gain(shaper, entered);
            self.credit = risen.min(0);
            self.at = entered;
        }
        let missing = (-self.credit).max(0) as u128;
        self.at + Duration::from_ps(missing.div_ceil(u128::from(shaper.idle_slope)) as u64)
    }

    fn gain(&self, shaper: &CreditBased, until: Instant) -> i128 {
        i128::from(until.since(self.at).as_ps()) * i128::from(shaper.idle_slope)
    }

    /// Records that the first frame is sent. Call [`Self::ready`] for the frame before.
    pub fn spend(&mut self, shaper: &CreditBased, sent: &Transmission) {
        self.credit += self.gain(shaper, sent.start);
        let took = (sent.end - sent.start) + sent.rate.duration(GAP);
        let slope = i128::from(sent.rate.bits_per_second()) - i128::from(shaper.idle_slope);
        self.credit -= i128::from(took.as_ps()) * slope;
        self.at = sent.start + took;
    }
}

/// The scheduler of a stream without its group: a lower bound of eligibility times, in picoseconds
/// rounded down (8.6.11.3).
#[derive(Clone, Copy, Debug)]
pub struct EligibilityModel {
    bucket_empty: i128,
}

impl EligibilityModel {
    pub fn new(shaper: &Ats) -> Self {
        Self { bucket_empty: -Self::time(shaper, shaper.committed.burst) - 1 }
    }

    fn time(shaper: &Ats, bits: u64) -> i128 {
        i128::from(bits) * 1_000_000_000_000 / i128::from(shaper.committed.rate)
    }

    /// The earliest eligibility time of a frame received at `received`, in picoseconds.
    pub fn admit(&mut self, shaper: &Ats, received: Instant, frame: &Frame) -> i128 {
        let bytes = match shaper.counted {
            Counted::FrameOnly => frame.length(),
            Counted::WithGap => PREAMBLE + frame.length() + GAP,
        };
        let scheduled = self.bucket_empty + Self::time(shaper, 8 * bytes as u64);
        let full = self.bucket_empty + Self::time(shaper, shaper.committed.burst);
        let eligible = scheduled.max(i128::from(received.as_ps()));
        let late = (eligible - full).max(0);
        self.bucket_empty = scheduled + late;
        eligible
    }
}
