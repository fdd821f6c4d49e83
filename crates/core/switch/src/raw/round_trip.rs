//! The smoothed round trip, and the retransmission timeout (RFC 6298).

use wire::Duration;

/// Round-trip estimator of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed round trip and its mean deviation, once measured.
    measured: Option<(Duration, Duration)>,
    /// The minimum of all samples.
    min: Duration,
}

impl RoundTrip {
    /// Adds a sample (sections 2.2 and 2.3, with weights of 1/8 and 1/4).
    pub(super) fn measure(&mut self, sample: Duration) {
        let measured = match self.measured {
            None => (sample, Duration::from_ps(sample.as_ps() / 2)),
            Some((smoothed, deviation)) => {
                let off = (sample - smoothed).max(smoothed - sample);
                (weigh(smoothed, sample, 8), weigh(deviation, off, 4))
            }
        };
        self.min = if self.measured.is_some() { self.min.min(sample) } else { sample };
        self.measured = Some(measured);
    }

    /// Whether an acknowledgement that arrives `after` a retransmission is for an earlier copy of
    /// the frame (RFC 8985, 6.2, step 2). The limit is twice the minimum round trip here, but at
    /// most the smoothed one, so that a spurious timeout does no harm.
    pub(super) fn too_soon(&self, after: Duration) -> bool {
        let Some((smoothed, _)) = self.measured else { return false };
        after < smoothed.min(self.min + self.min)
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, _)| smoothed)
    }

    /// The retransmission timeout (section 2.3): the smoothed round trip plus four times the
    /// deviation, but at least plus `margin`. `None` before the first measurement.
    pub(super) fn timeout(&self, margin: Duration) -> Option<Duration> {
        self.measured.map(|(smoothed, deviation)| {
            smoothed + Duration::from_ps(deviation.as_ps().saturating_mul(4)).max(margin)
        })
    }
}

/// Moves `old` towards `new` by the difference divided by `part`.
fn weigh(old: Duration, new: Duration, part: u64) -> Duration {
    let kept = old.as_ps() - old.as_ps() / part;
    Duration::from_ps(kept) + Duration::from_ps(new.as_ps() / part)
}
