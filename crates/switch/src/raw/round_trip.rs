//! The round trip, smoothed, and the retransmission timeout (RFC 6298).

use wire::Duration;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed, and its mean deviation; once measured.
    measured: Option<(Duration, Duration)>,
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
        self.measured = Some(measured);
    }

    /// Smoothed.
    pub fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// Section 2: smoothed plus four deviations.
    pub fn timeout(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, deviation)| {
            smoothed + Duration::from_ps(deviation.as_ps().saturating_mul(4))
        })
    }
}

/// `old` moved by one `part`th towards `new`.
fn weigh(old: Duration, new: Duration, part: u64) -> Duration {
    let kept = old.as_ps() - old.as_ps() / part;
    Duration::from_ps(kept) + Duration::from_ps(new.as_ps() / part)
}
