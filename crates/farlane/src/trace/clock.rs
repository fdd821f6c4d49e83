//! How far the clocks of two nodes are apart, from nothing but the frames
//! that passed between them: nothing arrives before it was sent.
//!
//! A frame from the parent to the child says that the child's clock is ahead
//! by its journey's time less at most; one the other way says how much at
//! least. The best of both directions bound the offset; its middle is taken.
//! That is exact if the shortest journeys take equally long both ways, and
//! never wrong by more than the uncertainty.

use serde::Serialize;

/// Nanoseconds that a window has at least, if one offset does not explain
/// everything: clocks drift.
const WINDOW: u64 = 1_000_000_000;
/// Windows at most.
const MOST_WINDOWS: u64 = 1000;

/// A bound of the offset, by when it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The parent's time in nanoseconds.
    pub at: u64,
    /// The child's time less the parent's.
    pub offset: i64,
    /// Whether the offset is at most this; at least, if not.
    pub most: bool,
}

/// The offset of one clock against another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offset {
    /// The parent's time and the child's time less it, in nanoseconds; between
    /// the points it is interpolated. One point: the offset is constant.
    points: Vec<(u64, i64)>,
    /// It may be wrong by this many nanoseconds either way.
    pub uncertainty_ns: u64,
    /// Frames and echoes it was taken from.
    pub samples: u64,
    /// Whether the clocks were seen to drift.
    pub drifts: bool,
    /// Whether nothing explains all bounds: some times cannot be right.
    pub contradictory: bool,
}

impl Offset {
    /// No offset: the same clock.
    pub fn none() -> Self {
        Self {
            points: vec![(0, 0)],
            uncertainty_ns: 0,
            samples: 0,
            drifts: false,
            contradictory: false,
        }
    }

    /// From bounds; `None` if they are all of one direction.
    pub(super) fn estimate(bounds: &[Bound]) -> Option<Self> {
        let (least, most) = extremes(bounds)?;
        let samples = bounds.len() as u64;
        if least <= most {
            let (middle, half) = middle(least, most);
            let points = vec![(0, middle)];
            let uncertainty_ns = half;
            return Some(Self {
                points,
                uncertainty_ns,
                samples,
                drifts: false,
                contradictory: false,
            });
        }
        Some(Self { samples, ..Self::piecewise(bounds, (least, most)) })
    }

    /// An offset for each window, for clocks that drift.
    fn piecewise(bounds: &[Bound], (least, most): (i64, i64)) -> Self {
        let (first, last) = bounds
            .iter()
            .fold((u64::MAX, 0), |(first, last), bound| (first.min(bound.at), last.max(bound.at)));
        let width = ((last - first) / MOST_WINDOWS).max(WINDOW);
        let mut windows: std::collections::BTreeMap<u64, Vec<Bound>> = Default::default();
        for bound in bounds {
            windows.entry((bound.at - first) / width).or_default().push(*bound);
        }
        let (mut points, mut uncertainty_ns, mut contradictory) = (Vec::new(), 0, false);
        for (window, bounds) in windows {
            let Some((least, most)) = extremes(&bounds) else { continue };
            let (middle, half) = middle(least.min(most), least.max(most));
            contradictory |= least > most;
            uncertainty_ns = uncertainty_ns.max(half);
            points.push((first + window * width + width / 2, middle));
        }
        if points.is_empty() {
            let (middle, half) = middle(most, least);
            (points, uncertainty_ns, contradictory) = (vec![(0, middle)], half, true);
        }
        Self { points, uncertainty_ns, samples: 0, drifts: true, contradictory }
    }

    /// The parent's time when the child's clock shows `at`, in nanoseconds.
    pub fn to_parent(&self, at: i64) -> i64 {
        at - self.at(at)
    }

    /// The offset in nanoseconds near the child's time `at`.
    pub fn at(&self, at: i64) -> i64 {
        let time = |index: usize| self.points[index].0 as i64 + self.points[index].1;
        let next = self.points.partition_point(|(t, offset)| *t as i64 + offset <= at);
        if next == 0 || next == self.points.len() {
            return self.points[next.saturating_sub(1)].1;
        }
        let (from, to) = (self.points[next - 1].1, self.points[next].1);
        let span = i128::from(time(next) - time(next - 1)).max(1);
        let part = i128::from(at - time(next - 1)) * i128::from(to - from) / span;
        from + part as i64
    }
}

/// The greatest lower and the least upper bound.
fn extremes(bounds: &[Bound]) -> Option<(i64, i64)> {
    let least = bounds.iter().filter(|bound| !bound.most).map(|bound| bound.offset).max()?;
    let most = bounds.iter().filter(|bound| bound.most).map(|bound| bound.offset).min()?;
    Some((least, most))
}

fn middle(least: i64, most: i64) -> (i64, u64) {
    let width = most.abs_diff(least);
    (least + (width / 2) as i64, width.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames both ways over a network of `delay` and more, between clocks
    /// that differ by `offset` at the start and drift apart.
    fn bounds(offset: i64, drift_ppm: i64, delay: i64) -> Vec<Bound> {
        let mut all = Vec::new();
        for i in 0..2000i64 {
            let at = i * 5_000_000;
            let theirs = |at: i64| at + offset + at * drift_ppm / 1_000_000;
            let journey = delay + (i * 7919) % 5_000;
            all.push(Bound { at: at as u64, offset: theirs(at + journey) - at, most: true });
            let arrival = at + journey + 100;
            all.push(Bound { at: arrival as u64, offset: theirs(at) + 100 - arrival, most: false });
        }
        all
    }

    #[test]
    fn a_constant_offset_is_found_to_its_uncertainty() {
        for offset in [0, 123_456_789, -5_000_000_000] {
            let found = Offset::estimate(&bounds(offset, 0, 8_000)).unwrap();
            assert!(found.at(0).abs_diff(offset) <= found.uncertainty_ns, "{found:?}");
            assert!((7_900..8_200).contains(&found.uncertainty_ns), "{found:?}");
            assert!(!found.drifts && !found.contradictory);
            assert_eq!(found.to_parent(1_000_000 + found.at(0)), 1_000_000);
        }
    }

    #[test]
    fn drift_is_followed() {
        let found = Offset::estimate(&bounds(1_000_000, 50, 8_000)).unwrap();
        assert!(found.drifts && !found.contradictory, "{found:?}");
        // 50 ppm of a window of 1 s are 50 us.
        assert!(found.uncertainty_ns < 60_000, "{found:?}");
        let at = 5_000_000_000 + 1_000_000 + 250_000;
        assert!(found.to_parent(at).abs_diff(5_000_000_000) < 60_000, "{found:?}");
    }

    #[test]
    fn one_direction_says_nothing() {
        let mut all = bounds(0, 0, 5);
        all.retain(|bound| bound.most);
        assert_eq!(Offset::estimate(&all), None);
        assert_eq!(Offset::estimate(&[]), None);
    }
}
