//! Faults of a run: stalls, periodic spikes, slips by whole cycles, swings of the clock.

mod blocks;
mod slips;
mod spikes;
mod stalls;
mod swings;
#[cfg(test)]
mod tests;

pub use blocks::{Block, blocks};

use crate::clock::ClockError;
use crate::sample::Segment;
use crate::statistics::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "FindingKind")]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Frames that were sent one after the other arrived at once. Each latency is shorter than the
    /// previous one.
    Stall,
    /// Spikes with equal times between them.
    PeriodicSpikes,
    /// Frames that are late by whole cycles, because they missed their slots.
    Slips,
    /// Latencies that rise and fall slowly because a clock drifts.
    ClockSwing,
    /// Latencies that rise and fall slowly, without a proof that a clock is the cause.
    Swing,
    /// The clocks differ.
    ClockOffset,
}

impl Kind {
    /// Name of the kind in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::PeriodicSpikes => "periodic spikes",
            Self::Slips => "slips by whole cycles",
            Self::ClockSwing => "swing of the clock",
            Self::Swing => "swing",
            Self::ClockOffset => "clocks apart",
        }
    }
}

/// A fault of a run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of the finding.
    pub kind: Kind,
    /// Name of the segment that shows the finding.
    pub segment: String,
    /// Number of the first frame that shows the finding.
    pub first: u64,
    /// Number of the last frame that shows the finding.
    pub last: u64,
    /// Frames or spikes that show the finding.
    pub n: u64,
    /// Size in ns: the excess of the highest latency over the median, the swing, or the difference
    /// between the clocks.
    pub size_ns: u64,
    /// The time between spikes, or the cycle that slips are multiples of; null for other kinds.
    pub period_ns: Option<u64>,
    /// The evidence in one sentence.
    pub evidence: String,
}

/// A frame on the searched segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Sequence number.
    pub sequence: u64,
    /// Start of the segment, in ns of TAI.
    pub from: u64,
    /// Time on the segment, in ns.
    pub latency: i64,
}

impl Point {
    /// End of the segment, in ns of TAI.
    fn to(&self) -> i128 {
        i128::from(self.from) + i128::from(self.latency)
    }
}

/// Properties of the run.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Time from one frame to the next, in ns.
    pub interval: u64,
    /// The cycle of the windows in ns; 0 if there are no windows.
    pub cycle: u64,
    /// The clock error.
    pub clock: &'a ClockError,
    /// The searched segment.
    pub segment: Segment,
}

impl Context<'_> {
    /// Whether the segment starts by the talker's clock and ends by the listener's clock.
    fn crosses(&self) -> bool {
        self.segment.crosses_clocks() && !self.segment.is_back()
    }

    /// A finding about the frames from `first` to `last`.
    fn finding(&self, kind: Kind, (first, last): (u64, u64), evidence: String) -> Finding {
        let segment = self.segment.name().to_owned();
        Finding { kind, segment, first, last, n: 0, size_ns: 0, period_ns: None, evidence }
    }
}

/// All findings, in the order of their first frames.
pub fn find(points: &[Point], context: &Context) -> Vec<Finding> {
    let stalls = stalls::find(points, context);
    let free: Vec<Point> = points.iter().filter(|point| !in_any(&stalls, point)).copied().collect();
    let slips = slips::find(&free, context);
    // With slips, the cause of high latencies is known, so spikes are not searched.
    let spikes = if slips.is_some() { None } else { spikes::find(points, context) };
    let swing = swings::find(&free, context);
    let offset = apart(points, context);
    let mut all = stalls;
    all.extend(slips.into_iter().chain(spikes).chain(swing).chain(offset));
    all.sort_by_key(|finding| finding.first);
    all
}

fn in_any(findings: &[Finding], point: &Point) -> bool {
    findings.iter().any(|finding| (finding.first..=finding.last).contains(&point.sequence))
}

/// By how much TAI is ahead of UTC, in ns: 37 s since 2017 (IERS Bulletin C 52). If the kernel's
/// TAI offset is not set, CLOCK_TAI is behind by this time.
const LEAP_SECONDS: u64 = 37_000_000_000;
/// An offset counts as the leap seconds if it differs from them by less than this time, in ns. The
/// errors of clocks under NTP or PTP are smaller.
const NEAR: u64 = 500_000_000;

/// The finding that the clocks differ, if this is proven: by the series, by latencies below zero,
/// or by a median near the leap seconds, which are longer than any latency.
fn apart(points: &[Point], context: &Context) -> Option<Finding> {
    if !context.crosses() {
        return None;
    }
    let least = points.iter().min_by_key(|point| point.latency)?;
    let below = if context.segment.proves() { least.latency.min(0).unsigned_abs() } else { 0 };
    let proven = context.clock.proven_ns();
    let usual = median(points.iter().map(|point| point.latency));
    let difference = context.clock.offset_ns().unwrap_or(usual).unsigned_abs();
    let is_leap = difference.abs_diff(LEAP_SECONDS) < NEAR;
    let cause = if proven > 0 {
        format!("returned frames prove that the clocks differ by at least {proven} ns")
    } else if below > 0 {
        let Point { sequence, latency, .. } = least;
        format!("frame {sequence} took {latency} ns: the clocks differ by at least {below} ns")
    } else if is_leap {
        format!("the median is {usual} ns, about the leap seconds between TAI and UTC")
    } else {
        return None;
    };
    let why = match is_leap {
        true => "; the ends differ by 37 s: only one has TAI's offset from UTC",
        false => "",
    };
    let (first, last) = (points.first()?.sequence, points.last()?.sequence);
    let n = points.iter().filter(|point| point.latency < 0).count() as u64;
    let size_ns = proven.max(below).max(if is_leap { difference } else { 0 });
    let evidence = format!("{cause}; one-way times are not latencies{why}");
    Some(Finding { n, size_ns, ..context.finding(Kind::ClockOffset, (first, last), evidence) })
}
