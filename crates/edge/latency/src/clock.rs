//! The offset between the clocks of the two ends.

use crate::sample::Sample;
use crate::statistics::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of the clock error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ClockSource")]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Unknown: one-way times include the clock error.
    Unknown,
    /// Both ends are on one machine.
    Shared,
    /// From the frames that the listener returned.
    Exchange,
    /// From ptp4l's offset from its master.
    Ptp4l,
    /// From the difference between the system clock and a hardware clock, which phc2sys steers.
    Phc2sys,
    /// From the sum of `phc2sys` and `ptp4l`: system clock to hardware clock, and hardware clock to
    /// master.
    #[serde(rename = "ptp4l+phc2sys")]
    Both,
}

impl Source {
    /// A description of the source.
    pub fn says(self) -> &'static str {
        match self {
            Self::Unknown => "unknown; one-way times include it",
            Self::Shared => "both ends share one clock",
            Self::Exchange => "from the frames that the listener sent back",
            Self::Ptp4l => "from ptp4l's offset from its master",
            Self::Phc2sys => "from the system clock minus the hardware clock",
            Self::Both => {
                "from the system's clock less the hardware clock, and ptp4l's offset of that from \
                 its master"
            }
        }
    }
}

/// The listener's clock minus the talker's at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ClockPoint {
    /// Time of the point, in ns of TAI.
    pub at_ns: u64,
    /// How far the listener's clock is ahead, in ns.
    pub offset_ns: i64,
    /// The greatest error of `offset_ns` in either direction, in ns.
    pub bound_ns: u64,
}

impl ClockPoint {
    /// The least difference between the clocks that the point proves.
    fn proven(&self) -> u64 {
        self.offset_ns.unsigned_abs().saturating_sub(self.bound_ns)
    }

    fn possible(&self) -> u64 {
        self.offset_ns.unsigned_abs().saturating_add(self.bound_ns)
    }
}

/// The clock error of a run.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ClockErrorSeries")]
pub struct ClockError {
    /// The source of the clock error.
    pub source: Source,
    /// The clock error over time.
    pub series: Vec<ClockPoint>,
    /// The series whose sum is `series`; empty if `series` is not a sum.
    pub parts: Vec<Part>,
}

/// One series of a clock error that is a sum.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "ClockPart")]
pub struct Part {
    /// The source of this part.
    pub source: Source,
    /// The series.
    pub series: Vec<ClockPoint>,
}

/// Number of frames per point of the series. The frame with the least error bound counts, as in
/// NTP's clock filter (RFC 5905, section 10).
const FILTER: usize = 16;

/// The clock error, calculated from returned frames. With t1 to t4 as in RFC 5905, section 8, the
/// offset is ((t2 - t1) + (t3 - t4)) / 2. Half of (t4 - t1) - (t3 - t2) bounds the error of the
/// offset, even if the delays of the two directions differ.
pub fn exchange(samples: &[Sample]) -> Vec<ClockPoint> {
    let point = |sample: &Sample| {
        let t1 = sample.departed();
        let t2 = sample.came()?.get();
        let t3 = sample.departed_back()?.get();
        let t4 = sample.came_back()?.get();
        let apart = |to: u64, from: u64| i128::from(to) - i128::from(from);
        let way = apart(t4, t1) - apart(t3, t2);
        Some(ClockPoint {
            at_ns: t1,
            offset_ns: ((apart(t2, t1) + apart(t3, t4)) / 2) as i64,
            bound_ns: (way.max(0) / 2) as u64,
        })
    };
    let points: Vec<ClockPoint> = samples.iter().filter_map(point).collect();
    let best = |points: &[ClockPoint]| points.iter().min_by_key(|point| point.bound_ns).copied();
    points.chunks(FILTER).filter_map(best).collect()
}

impl ClockError {
    /// A clock error from one source.
    pub fn from_series(source: Source, series: Vec<ClockPoint>) -> Self {
        Self { source, series, parts: Vec::new() }
    }

    /// An unknown clock error.
    pub fn unknown() -> Self {
        Self::from_series(Source::Unknown, Vec::new())
    }

    /// The sum of two series: system clock minus hardware clock, and hardware clock minus master,
    /// at the times of the first series. Empty if one series is empty.
    pub fn sum(system: Vec<ClockPoint>, master: Vec<ClockPoint>) -> Self {
        let hardware = Self::from_series(Source::Ptp4l, master);
        let add = |point: &ClockPoint| {
            let (offset, bound) = hardware.around(point.at_ns)?;
            Some(ClockPoint {
                at_ns: point.at_ns,
                offset_ns: point.offset_ns.saturating_add(offset),
                bound_ns: point.bound_ns.saturating_add(bound),
            })
        };
        let series = system.iter().filter_map(add).collect();
        let parts = vec![
            Part { source: Source::Phc2sys, series: system },
            Part { source: Source::Ptp4l, series: hardware.series },
        ];
        Self { source: Source::Both, series, parts }
    }

    /// The least difference that the series proves, in ns; 0 if the clocks may be equal.
    pub fn proven_ns(&self) -> u64 {
        self.series.iter().map(ClockPoint::proven).max().unwrap_or(0)
    }

    /// The greatest possible difference, in ns; `None` if unknown.
    pub fn possible_ns(&self) -> Option<u64> {
        if self.proven_ns() == 0 && self.source == Source::Shared {
            return Some(0);
        }
        self.series.iter().map(ClockPoint::possible).max()
    }

    /// The median offset of the series, in ns; `None` if the series is empty.
    pub fn offset_ns(&self) -> Option<i64> {
        let offsets = self.series.iter().map(|point| point.offset_ns);
        (!self.series.is_empty()).then(|| median(offsets))
    }

    /// The offset at a time, in ns, interpolated between the points before and after it. `None` if
    /// the series is empty.
    pub fn offset_at(&self, at: u64) -> Option<i64> {
        self.around(at).map(|(offset, _)| offset)
    }

    /// The interpolated offset, and the greater bound of the points before and after `at`.
    fn around(&self, at: u64) -> Option<(i64, u64)> {
        let after = self.series.partition_point(|point| point.at_ns < at);
        let (Some(right), Some(left)) =
            (self.series.get(after).or(self.series.last()), self.series.get(after.max(1) - 1))
        else {
            return None;
        };
        let bound = left.bound_ns.max(right.bound_ns);
        let span = i128::from(right.at_ns) - i128::from(left.at_ns);
        if span <= 0 || at <= left.at_ns {
            return Some((if at <= left.at_ns { left.offset_ns } else { right.offset_ns }, bound));
        }
        let part = i128::from(at) - i128::from(left.at_ns);
        let change = i128::from(right.offset_ns) - i128::from(left.offset_ns);
        Some(((i128::from(left.offset_ns) + change * part / span) as i64, bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::stamp;
    use proptest::prelude::*;

    /// A frame sent at `at`, with `there` ns to the listener, 10 ns at the listener and `back` ns
    /// to the talker. The listener's clock is ahead by `ahead`.
    fn sample(at: u64, there: u64, back: u64, ahead: i64) -> Sample {
        let theirs = |at: u64| stamp(at.wrapping_add_signed(ahead));
        Sample {
            sent: at,
            received: theirs(at + there),
            returned: theirs(at + there + 10),
            back_received: stamp(at + there + 10 + back),
            ..Sample::default()
        }
    }

    #[test]
    fn an_offset_is_seen_and_equal_clocks_are_not_accused() {
        let ahead = exchange(&[sample(1000, 300, 100, 50_000)]);
        // ((300 + 50000) + (50000 - 100)) / 2, and (300 + 100) / 2.
        assert_eq!(ahead, [ClockPoint { at_ns: 1000, offset_ns: 50_100, bound_ns: 200 }]);
        let error = ClockError::from_series(Source::Shared, ahead);
        assert_eq!((error.proven_ns(), error.possible_ns()), (49_900, Some(50_300)));
        let same = exchange(&[sample(1000, 300, 100, 0)]);
        let shared = ClockError::from_series(Source::Shared, same.clone());
        assert_eq!((shared.proven_ns(), shared.possible_ns()), (0, Some(0)));
        let found = ClockError::from_series(Source::Exchange, same);
        assert_eq!((found.proven_ns(), found.possible_ns()), (0, Some(300)));
        assert_eq!(ClockError::unknown().possible_ns(), None);
    }

    #[test]
    fn the_series_is_a_line_between_its_points() {
        let point = |at_ns, offset_ns| ClockPoint { at_ns, offset_ns, bound_ns: 0 };
        let series = vec![point(100, 10), point(200, 30)];
        let error = ClockError::from_series(Source::Ptp4l, series);
        let at = [0, 100, 150, 200, 300].map(|at| error.offset_at(at).unwrap());
        assert_eq!(at, [10, 10, 20, 30, 30]);
        assert_eq!(ClockError::unknown().offset_at(5), None);
    }

    /// The system clock is 100 ns ahead of the hardware clock, whose offset from its master changes
    /// sign.
    #[test]
    fn a_sum_has_the_offsets_and_bounds_of_its_parts() {
        let point = |at_ns, offset_ns, bound_ns| ClockPoint { at_ns, offset_ns, bound_ns };
        let system = vec![point(150, 100, 7), point(300, 100, 8)];
        let master = vec![point(100, 10, 10), point(200, -30, 30)];
        let sum = ClockError::sum(system.clone(), master.clone());
        // The middle of 10 and -30, then the last point.
        assert_eq!(sum.series, [point(150, 90, 37), point(300, 70, 38)]);
        assert_eq!((sum.source, sum.possible_ns()), (Source::Both, Some(127)));
        let [first, second] = &sum.parts[..] else { panic!("{:?}", sum.parts) };
        assert_eq!((first.source, &first.series), (Source::Phc2sys, &system));
        assert_eq!((second.source, &second.series), (Source::Ptp4l, &master));
        assert_eq!(ClockError::sum(system, Vec::new()).possible_ns(), None);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            ways in prop::collection::vec((0u64..10_000, 0u64..10_000), 1..50),
            ahead in -1_000_000i64..1_000_000,
        ) {
            let one = |(number, (there, back)): (usize, &(u64, u64))| {
                sample(1_000_000_000 + 1000 * number as u64, *there, *back, ahead)
            };
            let samples: Vec<Sample> = ways.iter().enumerate().map(one).collect();
            for point in exchange(&samples) {
                // Halves are rounded.
                prop_assert!(point.offset_ns.abs_diff(ahead) <= point.bound_ns + 1);
            }
        }
    }
}
