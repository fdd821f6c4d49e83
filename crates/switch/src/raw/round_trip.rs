//! The round trip, smoothed, and the retransmission timeout (RFC 6298).

use wire::Duration;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed, and its mean deviation; once measured.
    measured: Option<(Duration, Duration)>,
    /// The least of all.
    least: Duration,
}

impl RoundTrip {
    /// Section 2.2 and 2.3, with their weights of 1/8 and 1/4.
    pub fn measure(&mut self, sample: Duration) {
        let measured = match self.measured {
            None => (sample, Duration::from_ps(sample.as_ps() / 2)),
            Some((smoothed, deviation)) => {
                let off = (sample - smoothed).max(smoothed - sample);
                (weigh(smoothed, sample, 8), weigh(deviation, off, 4))
            }
        };
        self.least = if self.measured.is_some() { self.least.min(sample) } else { sample };
        self.measured = Some(measured);
    }

    /// Whether an answer so soon can only be one to an earlier copy of the
    /// frame (as RFC 8985, 6.2, step 2 has it; here up to twice the least
    /// round trip, so that a timeout that came too early does no harm).
    pub fn too_soon(&self, after: Duration) -> bool {
        let Some((smoothed, _)) = self.measured else { return false };
        after < smoothed.min(self.least + self.least)
    }

    /// Smoothed.
    pub fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// Section 2.3: smoothed plus four deviations, at least `margin`.
    pub fn timeout(&self, margin: Duration) -> Option<Duration> {
        self.measured.map(|(smoothed, deviation)| {
            smoothed + Duration::from_ps(deviation.as_ps().saturating_mul(4)).max(margin)
        })
    }
}

/// `old` moved by one `part`th towards `new`.
fn weigh(old: Duration, new: Duration, part: u64) -> Duration {
    let kept = old.as_ps() - old.as_ps() / part;
    Duration::from_ps(kept) + Duration::from_ps(new.as_ps() / part)
}
