//! Estimates the offset of two nodes' clocks from the times of the frames
//! that passed between them: no frame arrives before it was sent.
//!
//! A frame from the parent to the child bounds the child's clock offset from above: receive time
//! less send time. A frame the other way bounds it from below. The estimate is the middle between
//! the tightest bounds. It is exact if the shortest delays are equal both ways, and never wrong by
//! more than the uncertainty.

use schemars::JsonSchema;
use serde::Serialize;

/// The largest difference of clock rates that is searched, as a ratio.
const MOST_DRIFT: f64 = 1e-3;
/// Number of steps of the search for the rate; each step leaves two thirds of the interval.
const STEPS: usize = 80;

/// A bound of the offset, and the time at which it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Time of the parent's clock in nanoseconds.
    pub at: u64,
    /// Bound of the child's time less the parent's time, in nanoseconds.
    pub offset: i64,
    /// Whether this is an upper bound; otherwise it is a lower bound.
    pub most: bool,
}

/// The offset of a node's clock from its parent's clock.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct ClockOffset {
    /// The node's time less the parent's time, at `since_ns`.
    pub offset_ns: i64,
    /// The time of the parent's clock at which `offset_ns` holds.
    pub since_ns: u64,
    /// Nanoseconds per second that the node's clock gains. 0 if one constant offset fits all
    /// samples.
    pub drift_ns_per_s: f64,
    /// Maximum error of `offset_ns` in either direction.
    pub uncertainty_ns: u64,
    /// Number of frames and echoes from which the offset was estimated.
    pub samples: u64,
    /// Whether no offset and drift fit all samples: some times are wrong.
    pub contradictory: bool,
}

impl ClockOffset {
    /// The offset between two nodes that share one clock: zero.
    pub(super) fn none(samples: u64) -> Self {
        Self { samples, ..Self::default() }
    }

    /// Estimates the offset from bounds; `None` if they are all upper or all lower bounds.
    pub(super) fn estimate(bounds: &[Bound]) -> Option<Self> {
        let since = bounds.iter().map(|bound| bound.at).min()?;
        let mut rate = 0.0;
        let (mut least, mut most) = extremes(bounds, since, rate)?;
        if least > most {
            rate = steepest(bounds, since);
            (least, most) = extremes(bounds, since, rate)?;
        }
        let width = most.abs_diff(least);
        Some(Self {
            offset_ns: least.min(most) + (width / 2) as i64,
            since_ns: since,
            drift_ns_per_s: rate * 1e9,
            uncertainty_ns: width.div_ceil(2),
            samples: bounds.len() as u64,
            contradictory: least > most,
        })
    }

    /// Converts `at`, a time of the child's clock in nanoseconds, to a time of the parent's clock.
    pub fn to_parent(&self, at: i64) -> i64 {
        let plain = at.saturating_sub(self.offset_ns);
        let rate = self.drift_ns_per_s / 1e9;
        let since = plain.saturating_sub(self.since_ns as i64) as f64;
        plain.saturating_sub((since * rate / (1.0 + rate)).round() as i64)
    }
}

/// The drift rate with the widest gap between the lower and the upper bounds. The gap is a minimum
/// of straight lines, hence a concave function of the rate, so this search finds its maximum.
fn steepest(bounds: &[Bound], since: u64) -> f64 {
    let width = |rate| extremes(bounds, since, rate).map_or(0, |(least, most)| most - least);
    let (mut low, mut high) = (-MOST_DRIFT, MOST_DRIFT);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        if width(low + third) < width(high - third) {
            low += third;
        } else {
            high -= third;
        }
    }
    (low + high) / 2.0
}

/// Returns the greatest lower and the least upper bound of the offset at `since`, if the child's
/// clock gains `rate`.
fn extremes(bounds: &[Bound], since: u64, rate: f64) -> Option<(i64, i64)> {
    let level = |bound: &Bound| {
        let gained = (bound.at - since) as f64 * rate;
        bound.offset.saturating_sub(gained.round() as i64)
    };
    let levels = |most| bounds.iter().filter(move |bound| bound.most == most).map(level);
    // The limits are so small that a difference of two offsets cannot overflow.
    let sane = |offset: i64| offset.clamp(i64::MIN / 4, i64::MAX / 4);
    Some((sane(levels(false).max()?), sane(levels(true).min()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames in both directions over a network with a delay of `delay` or more. The clocks differ
    /// by `offset` at the start, and drift.
    fn bounds(offset: i64, drift_ppm: i64, delay: i64) -> Vec<Bound> {
        let mut all = Vec::new();
        for i in 0..2000i64 {
            let at = i * 5_000_000;
            let remote = |at: i64| at + offset + at * drift_ppm / 1_000_000;
            let journey = delay + (i * 7919) % 5_000;
            all.push(Bound { at: at as u64, offset: remote(at + journey) - at, most: true });
            let arrival = at + journey + 100;
            all.push(Bound { at: arrival as u64, offset: remote(at) + 100 - arrival, most: false });
        }
        all
    }

    #[test]
    fn a_constant_offset_is_found_to_its_uncertainty() {
        for offset in [0, 123_456_789, -5_000_000_000] {
            let found = ClockOffset::estimate(&bounds(offset, 0, 8_000)).unwrap();
            assert!(found.offset_ns.abs_diff(offset) <= found.uncertainty_ns, "{found:?}");
            assert!((7_900..8_200).contains(&found.uncertainty_ns), "{found:?}");
            assert!(found.drift_ns_per_s == 0.0 && !found.contradictory);
            assert_eq!(found.to_parent(1_000_000 + found.offset_ns), 1_000_000);
        }
    }

    #[test]
    fn drift_is_followed() {
        for ppm in [50, -30] {
            let found = ClockOffset::estimate(&bounds(1_000_000, ppm, 8_000)).unwrap();
            assert!(!found.contradictory, "{found:?}");
            assert!((found.drift_ns_per_s - ppm as f64 * 1e3).abs() < 2_000.0, "{found:?}");
            assert!(found.uncertainty_ns < 9_000, "{found:?}");
            for at in [0, 5_000_000_000, 9_900_000_000] {
                let remote = at + 1_000_000 + at * ppm / 1_000_000;
                assert!(found.to_parent(remote).abs_diff(at) < 9_000, "{found:?}");
            }
        }
    }

    #[test]
    fn contradictory_bounds_are_flagged() {
        let mut all = bounds(0, 0, 5_000);
        all.push(Bound { at: 7, offset: -40_000, most: true });
        all.push(Bound { at: 5_000_000_000, offset: -90_000, most: true });
        all.push(Bound { at: 9_000_000_000, offset: -40_000, most: true });
        assert!(ClockOffset::estimate(&all).unwrap().contradictory);
        all.push(Bound { at: u64::MAX, offset: i64::MIN, most: true });
        all.push(Bound { at: 1, offset: i64::MAX, most: false });
        let wild = ClockOffset::estimate(&all).unwrap();
        wild.to_parent(i64::MIN);
        wild.to_parent(i64::MAX);
    }

    #[test]
    fn frames_of_one_direction_give_no_offset() {
        let mut all = bounds(0, 0, 5);
        all.retain(|bound| bound.most);
        assert_eq!(ClockOffset::estimate(&all), None);
        assert_eq!(ClockOffset::estimate(&[]), None);
    }
}
