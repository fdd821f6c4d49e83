//! Calculates all results of a run from its samples.

use crate::clock::{ClockError, Source};
use crate::findings::{self, Context, Finding, Kind, Point};
use crate::sample::{Sample, Segment};
use crate::slots::{self, Slots};
use crate::stable::{self, Range};
use crate::statistics::{Band, Figures, quantile};
use crate::{frame, statistics};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most pieces of [`SegmentReport::course`].
const BINS: usize = 200;
const BARS: usize = 48;

/// The input of the analysis.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The frames, in the order of their numbers.
    pub samples: &'a [Sample],
    /// Time from one frame to the next, in ns.
    pub interval: u64,
    /// The windows: cycle and length; both 0 if the schedule has no windows.
    pub window: frame::Window,
    /// The clock error.
    pub clock: ClockError,
    /// The band whose share of frames is counted.
    pub band: Option<Band>,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Analysis {
    /// The segments that have stamps, in the order of the path.
    pub segments: Vec<SegmentReport>,
    /// The stable range of the run.
    pub stable: Range,
    /// Name of the segment from which the stable range and the findings were determined.
    pub stable_by: String,
    /// How many frames were within their windows; empty if the schedule has no windows.
    pub slots: Vec<Slots>,
    /// The faults of the run.
    pub findings: Vec<Finding>,
    /// The clock error.
    pub clock: Clocks,
}

/// The latencies on a segment of the path.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "LatencySegment")]
pub struct SegmentReport {
    /// Name of the segment.
    pub segment: String,
    /// Whether different clocks measure the start and the end of the segment.
    pub crosses_clocks: bool,
    /// Figures of all frames.
    pub whole: Figures,
    /// Figures of the stable range.
    pub stable: Figures,
    /// Frames whose latency is below the greatest possible clock error; null if the clock error is
    /// unknown, or if one clock measures the segment.
    pub within_clock_error: Option<u64>,
    /// A warning about the figures; empty if there is none.
    pub caution: String,
    /// Latency over time, in up to 200 pieces of the run.
    pub course: Vec<Bin>,
    /// 48 bars from the shortest latency to the 99th percentile.
    pub histogram: Vec<Bar>,
}

/// The latencies in a piece of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "CourseBin")]
pub struct Bin {
    /// Due time of the first frame of the piece, relative to the first frame of the run.
    pub at_ns: u64,
    /// The shortest latency.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// The longest latency.
    pub max_ns: i64,
}

/// A bar of a histogram. The last bar also counts all longer latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "HistogramBar")]
pub struct Bar {
    /// The least latency.
    pub from_ns: i64,
    /// The end of the bar, exclusive.
    pub to_ns: i64,
    /// Frames.
    pub n: u64,
}

/// The clock error of a run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ClockError")]
pub struct Clocks {
    /// The listener's clock minus the talker's, the median of `series`; null if `series` is empty.
    pub offset_ns: Option<i64>,
    /// The least clock error that `series` proves.
    pub proven_ns: u64,
    /// The greatest possible clock error; null if unknown.
    pub possible_ns: Option<u64>,
    /// The source of the clock error, and the series.
    #[serde(flatten)]
    pub error: ClockError,
}

impl Analysis {
    /// Analyses the samples.
    pub fn from_input(input: &Input) -> Self {
        let (primary, points) = primary(input.samples);
        let mut found = findings::find(&points, &context(input, primary));
        let stable = stable::choose(&points, &found);
        if primary == Segment::SentToKernel {
            found.extend(application_stalls(input, &found));
        }
        let apart = found.iter().any(|finding| finding.kind == Kind::ClockOffset);
        let segments = Segment::ALL.into_iter();
        Self {
            segments: segments
                .filter_map(|segment| segment_report(segment, input, &stable, apart))
                .collect(),
            stable,
            stable_by: primary.name().to_owned(),
            slots: slots::by_stamp(input.samples, &input.window),
            findings: found,
            clock: Clocks {
                offset_ns: input.clock.offset_ns(),
                proven_ns: input.clock.proven_ns(),
                possible_ns: input.clock.possible_ns(),
                error: input.clock.clone(),
            },
        }
    }
}

fn context<'a>(input: &'a Input, segment: Segment) -> Context<'a> {
    let cycle = u64::from(input.window.cycle);
    Context { interval: input.interval, cycle, clock: &input.clock, segment }
}

/// The segment that is searched for faults, and its frames: the first segment of the list for which
/// at least two frames, or the only frame, have stamps.
fn primary(samples: &[Sample]) -> (Segment, Vec<Point>) {
    let all = [Segment::SentToKernel, Segment::EndToEnd, Segment::RoundTrip, Segment::ToWire];
    let some = all.into_iter().map(|segment| (segment, points(segment, samples)));
    let most = |(_, points): &(Segment, Vec<Point>)| points.len() * 2 > samples.len().min(2);
    some.into_iter().find(most).unwrap_or((Segment::ToWire, Vec::new()))
}

/// The frames of a segment. [`Segment::EndToEnd`] is measured from the sending of a frame, because
/// a late wake-up of the talker is not a fault of the path.
fn points(segment: Segment, samples: &[Sample]) -> Vec<Point> {
    let point = |sample: &Sample| {
        let sequence = sample.sequence;
        let (from, latency) = match segment {
            Segment::ToWire => (sample.scheduled, segment.latency(sample)?),
            Segment::EndToEnd => {
                (sample.sent, sample.received?.get().wrapping_sub(sample.sent) as i64)
            }
            _ => (sample.sent, segment.latency(sample)?),
        };
        Some(Point { sequence, from, latency })
    };
    samples.iter().filter_map(point).collect()
}

/// Stalls of the application in which the kernel received the frames in time.
fn application_stalls(input: &Input, known: &[Finding]) -> Vec<Finding> {
    let points = points(Segment::EndToEnd, input.samples);
    let found = findings::find(&points, &context(input, Segment::EndToEnd));
    let is_known = |finding: &Finding| {
        let both = |other: &&Finding| other.first <= finding.last && other.last >= finding.first;
        known.iter().any(|other| other.kind == Kind::Stall && both(&other))
    };
    found.into_iter().filter(|finding| finding.kind == Kind::Stall && !is_known(finding)).collect()
}

fn segment_report(
    segment: Segment,
    input: &Input,
    stable: &Range,
    apart: bool,
) -> Option<SegmentReport> {
    let with = |sample: &Sample| Some((*sample, segment.latency(sample)?));
    let samples: Vec<(Sample, i64)> = input.samples.iter().filter_map(with).collect();
    if samples.is_empty() {
        return None;
    }
    let all: Vec<i64> = samples.iter().map(|(_, ns)| *ns).collect();
    let is_stable = |sample: &Sample| (stable.first..=stable.last).contains(&sample.sequence);
    let part = samples.iter().filter(|(sample, _)| is_stable(sample)).map(|(_, ns)| *ns);
    let crosses = segment.crosses_clocks();
    let within = |error: u64| all.iter().filter(|ns| ns.unsigned_abs() < error).count() as u64;
    let known = input.clock.possible_ns().filter(|_| crosses);
    let whole = Figures::from_samples(&all, input.band);
    let unknown = input.clock.source == Source::Unknown;
    let caution = match crosses {
        true if apart || (segment.proves() && whole.negative > 0) => {
            "not a latency: the clocks differ"
        }
        true if unknown => "includes the clock error, which is unknown",
        true if known.is_some_and(|error| whole.p50_ns.unsigned_abs() < error) => {
            "the median is below the possible clock error"
        }
        _ => "",
    };
    Some(SegmentReport {
        segment: segment.name().to_owned(),
        crosses_clocks: crosses,
        whole,
        stable: Figures::from_samples(&part.collect::<Vec<_>>(), input.band),
        within_clock_error: known.map(within),
        caution: caution.to_owned(),
        course: course(&samples),
        histogram: histogram(&all),
    })
}

fn course(samples: &[(Sample, i64)]) -> Vec<Bin> {
    let start = samples[0].0.scheduled;
    let bin = |part: &[(Sample, i64)]| {
        let mut sorted: Vec<i64> = part.iter().map(|(_, ns)| *ns).collect();
        sorted.sort_unstable();
        Bin {
            at_ns: part[0].0.scheduled.saturating_sub(start),
            min_ns: sorted[0],
            p50_ns: quantile(&sorted, 5_000),
            max_ns: sorted[sorted.len() - 1],
        }
    };
    samples.chunks(samples.len().div_ceil(BINS)).map(bin).collect()
}

/// Bars of equal width from the shortest latency to the 99th percentile.
fn histogram(samples: &[i64]) -> Vec<Bar> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let (least, most) = (sorted[0], statistics::quantile(&sorted, 9_900));
    let width = (most.saturating_sub(least) / BARS as i64 + 1).max(1);
    let mut counts = [0; BARS];
    for ns in &sorted {
        counts[((ns.saturating_sub(least) / width) as usize).min(BARS - 1)] += 1;
    }
    let bar = |(at, n): (usize, &u64)| {
        let from_ns = least.saturating_add(at as i64 * width);
        Bar { from_ns, to_ns: from_ns.saturating_add(width), n: *n }
    };
    counts.iter().enumerate().map(bar).collect()
}
