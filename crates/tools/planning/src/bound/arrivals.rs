//! Arrival curves: how many frames a source sends at most in any time of a given length.

use sim::ethernet::frame::FCS;
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;
use tsn::psfp::MeterConfig;
use wire::Duration;

/// A staircase: at most `first + each * floor((t + late) / interval)` frames in any closed time of
/// length `t`, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Frames at once.
    pub first: u64,
    /// Frames of each further step, at least one.
    pub each: u64,
    /// Time between steps in picoseconds, above zero.
    pub interval: u64,
    /// How much earlier a step may come, in picoseconds.
    pub late: u64,
}

impl Steps {
    /// The most frames in a closed time of length `t`.
    pub fn frames(&self, t: u64) -> u64 {
        self.first + self.each * (t.saturating_add(self.late) / self.interval)
    }

    /// The lengths of time above 0 and up to `until` at which the curve rises after delays that
    /// differ by up to `jitter`.
    pub fn rises(self, jitter: u64, until: u64) -> impl Iterator<Item = u64> {
        let late = self.late.saturating_add(jitter);
        let first = late / self.interval + 1;
        let at = move |step: u64| step.saturating_mul(self.interval).saturating_sub(late);
        (first..).map(at).take_while(move |at| *at <= until)
    }

    /// Frames per picosecond in the long run.
    pub fn rate(&self) -> f64 {
        self.each as f64 / self.interval as f64
    }
}

impl Steps {
    /// The arrival curve of a stream at its application. The clock of the sender may run fast by
    /// `drift` parts per million.
    ///
    /// # Errors
    /// Why no number of frames is certain.
    pub fn of_stream(stream: &TrafficConfig, drift: u64) -> Result<Self, String> {
        let burst = u64::from(stream.burst);
        let interval = match stream.pattern {
            Pattern::Periodic(interval) => interval,
            Pattern::Envelope { interval, frames } => {
                let (first, interval) = (u64::from(frames), shorter(interval, drift));
                return Ok(Self { first, each: 1, interval, late: 0 });
            }
            Pattern::Sporadic { least, .. } if least > Duration::ZERO => least,
            Pattern::Uniform { mean, spread } if spread < mean => mean - spread,
            // Irwin-Hall: never beyond six standard deviations (`stats::random`).
            Pattern::Normal { mean, deviation } if deviation.as_ps() < mean.as_ps() / 6 => {
                mean - Duration::from_ps(6 * deviation.as_ps())
            }
            Pattern::Sporadic { .. } | Pattern::Uniform { .. } | Pattern::Normal { .. } => {
                return Err("the random intervals have no minimum".into());
            }
            Pattern::Poisson(_) => {
                return Err("the intervals of a Poisson process have no minimum".into());
            }
            Pattern::Recorded(_) => {
                return Err("a recording has no interval".into());
            }
        };
        let interval = shorter(interval, drift);
        Ok(Self { first: burst, each: burst, interval, late: stream.jitter.as_ps() })
    }

    /// The frames of at least `shortest` bytes, header to FCS, that pass a meter; `None` if it
    /// limits nothing.
    pub fn of_meter(meter: &MeterConfig, shortest: usize) -> Option<Self> {
        let yellow = if meter.drop_on_yellow { 0 } else { 1 };
        let rate = u128::from(meter.cir + yellow * meter.eir);
        let burst = u128::from(meter.cbs + yellow * meter.ebs);
        let frame = shortest.max(FCS) as u128;
        let time = |bytes: u128| (bytes * 8 * 1_000_000_000_000 / rate) as u64;
        (rate > 0).then(|| Self {
            first: (burst / frame) as u64,
            each: 1,
            interval: time(frame),
            late: time(burst % frame) + 1,
        })
    }
}

/// A time by a clock that runs fast by `drift` parts per million.
fn shorter(time: Duration, drift: u64) -> u64 {
    let ps = u128::from(time.as_ps()) * 1_000_000 / u128::from(1_000_000 + drift);
    (ps as u64).max(1)
}
