//! Results for clocks: offsets over time, errors at the edges of gates, measurements of receivers.

use crate::measure::Latency;
use tsn::gptp::ClockIdentity;
use tsn::{Clock, Gates, QUEUES};
use wire::{Duration, Instant};

/// The offset of a clock from the reference at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetSample {
    /// Time of the measurement.
    pub at: Instant,
    /// The clock minus the reference, in picoseconds.
    pub offset_ps: i64,
    /// Whether the clock is the reference, or follows the reference with a settled servo. If false,
    /// the clock runs freely, is in holdover, is still slewed, or follows another grandmaster.
    pub synced: bool,
}

/// The results of a node's clock since the start of the simulation. Offsets are relative to the
/// reference: the clock of the best grandmaster with power, otherwise of the last grandmaster. The
/// reference is true time before the first grandmaster.
#[derive(Clone, Debug, Default)]
pub struct ClockReport {
    /// Samples, in the order of time.
    pub offsets: Vec<OffsetSample>,
    /// Times at which the clock was set, with the steps in picoseconds.
    pub steps: Vec<(Instant, i64)>,
    /// The grandmaster that the node follows or is at the end, if any.
    pub grandmaster: Option<ClockIdentity>,
    /// The oscillator's frequency error at the end, in parts per 10^12.
    pub drift_ppt: i64,
}

impl ClockReport {
    /// The time of the first sample with [`OffsetSample::synced`].
    pub fn synced_from(&self) -> Option<Instant> {
        self.offsets.iter().find(|sample| sample.synced).map(|sample| sample.at)
    }

    /// Start and end of each span without [`OffsetSample::synced`] after the first sample with it.
    /// The end is `None` if the span lasts until the end of the simulation.
    pub fn unlocked(&self) -> Vec<(Instant, Option<Instant>)> {
        let (mut found, mut synced) = (Vec::new(), false);
        for sample in &self.offsets {
            match (synced, sample.synced, found.last_mut()) {
                (true, false, _) => found.push((sample.at, None)),
                (false, true, Some((_, until))) => *until = Some(sample.at),
                _ => {}
            }
            synced = sample.synced;
        }
        found
    }

    /// The samples from a time on.
    pub fn since(&self, from: Instant) -> impl Iterator<Item = &OffsetSample> {
        self.offsets.iter().filter(move |sample| sample.at >= from)
    }

    /// The largest offset since `from`, ahead or behind, in picoseconds.
    pub fn largest_since(&self, from: Instant) -> u64 {
        self.since(from).map(|sample| sample.offset_ps.unsigned_abs()).max().unwrap_or(0)
    }
}

/// The errors of a port's gate edges, relative to the reference clock. Only edges after the first
/// lock of the node's clock count. For a clock without 802.1AS all edges count.
#[derive(Clone, Debug, Default)]
pub struct EdgeReport {
    /// Number of edges before the clock was first locked.
    pub before: u64,
    /// Absolute errors of the edges.
    pub errors: Latency,
    /// Error of the earliest edge, in picoseconds; at most 0.
    pub earliest_ps: i64,
    /// Error of the latest edge, in picoseconds; at least 0.
    pub latest_ps: i64,
}

impl EdgeReport {
    fn record(&mut self, late_ps: i64) {
        self.errors.record(Duration::from_ps(late_ps.unsigned_abs()));
        self.earliest_ps = self.earliest_ps.min(late_ps);
        self.latest_ps = self.latest_ps.max(late_ps);
    }

    /// Bytes that a line of `bits_per_second` carries within the largest error, rounded up.
    pub fn lost_bytes(&self, bits_per_second: u64) -> u64 {
        lost_bytes(self.worst().as_ps(), bits_per_second)
    }

    /// The largest error, early or late.
    pub fn worst(&self) -> Duration {
        Duration::from_ps(self.earliest_ps.unsigned_abs().max(self.latest_ps.unsigned_abs()))
    }
}

/// Bytes that a line of `bits_per_second` carries in `ps`, rounded up.
pub fn lost_bytes(ps: u64, bits_per_second: u64) -> u64 {
    (u128::from(ps) * u128::from(bits_per_second)).div_ceil(8_000_000_000_000) as u64
}

/// The latencies of the frames of a stream that arrived within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSample {
    /// Start of the interval.
    pub from: Instant,
    /// Number of frames.
    pub frames: u64,
    /// The shortest and the longest latency in true time, in picoseconds.
    pub truly: [i64; 2],
    /// The shortest and the longest latency by the clocks of both nodes, in picoseconds: the
    /// receiver's clock at the arrival minus the sender's clock at the creation of the frame.
    pub measured: [i64; 2],
}

/// Edges of the gates of one port.
#[derive(Debug)]
pub(super) struct Edges {
    pub report: EdgeReport,
    /// Time up to which edges are counted.
    until: Instant,
}

impl Edges {
    pub(super) fn new() -> Self {
        Self { report: EdgeReport::default(), until: Instant::ZERO }
    }

    /// Skips the edges up to `now`, because the node has no power.
    pub(super) fn skip(&mut self, now: Instant) {
        self.until = self.until.max(now);
    }

    /// Handles the edges up to `now`. The clock of `gates` must not have changed since the last
    /// call. If `synced` is false, edges are counted without an error.
    pub(super) fn settle(&mut self, gates: &Gates, reference: &Clock, now: Instant, synced: bool) {
        loop {
            let next = (0..QUEUES).filter_map(|queue| gates.next_change(queue, self.until)).min();
            let Some(edge) = next.filter(|edge| *edge <= now) else { break };
            // An edge of a clock that is ahead comes too early: its error is the negative offset.
            let (own, other) = (gates.clock().local(edge), reference.local(edge));
            match synced {
                true => self.report.record(other.as_ps().saturating_sub(own.as_ps())),
                false => self.report.before += 1,
            }
            self.until = edge;
        }
        self.skip(now);
    }
}

impl MeasuredSample {
    /// Adds a frame that arrived at `now` to the sample of its interval of length `every`.
    pub(in super::super) fn record(
        samples: &mut Vec<Self>,
        now: Instant,
        every: Duration,
        truly: i64,
        measured: i64,
    ) {
        let from = Instant::from_ps(now.as_ps() / every.as_ps() * every.as_ps());
        match samples.last_mut().filter(|last| last.from == from) {
            Some(last) => {
                last.frames += 1;
                last.truly = [last.truly[0].min(truly), last.truly[1].max(truly)];
                last.measured = [last.measured[0].min(measured), last.measured[1].max(measured)];
            }
            None => {
                samples.push(Self { from, frames: 1, truly: [truly; 2], measured: [measured; 2] })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 us at 1 Gb/s is 125 bytes; one more picosecond starts another byte.
    #[test]
    fn a_window_loses_what_the_line_carries() {
        assert_eq!(lost_bytes(1_000_000, 1_000_000_000), 125);
        assert_eq!(lost_bytes(1_000_001, 1_000_000_000), 126);
        assert_eq!(lost_bytes(0, 1_000_000_000), 0);
    }
}
