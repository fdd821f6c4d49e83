//! The layout of the diagram: columns, scale and labels that do not overlap.

use super::Column;
use crate::trace::locations::Location;
use crate::trace::path::Stage;
use std::collections::BTreeSet;

/// Position of the first column, in pixels; the time axis is to its left.
pub(super) const LEFT: f64 = 74.0;
/// Position of the first time, in pixels.
pub(super) const TOP: f64 = 118.0;
/// Height of the time axis, in pixels.
pub(super) const HEIGHT: f64 = 640.0;
/// Distance between lines of labels, in pixels.
pub(super) const LINE: f64 = 15.0;

/// Returns the columns of a diagram in which these locations were seen.
pub(super) fn columns(locations: impl Iterator<Item = Location>) -> Vec<Column> {
    let seen: BTreeSet<Location> = locations.collect();
    use Location::{DownstreamLink, Function, RootPort, SwitchLink, SwitchUplink, UpstreamLink};
    let switch = seen.contains(&SwitchUplink) || seen.contains(&SwitchLink);
    let all = |needed: &[Location]| needed.iter().all(|location| seen.contains(location));
    let labels = 236.0;
    let stages: Vec<(Stage, f64, bool)> = if switch {
        vec![
            (Stage::Host, labels, all(&[RootPort])),
            (Stage::Upstream, 72.0, all(&[RootPort, UpstreamLink])),
            (Stage::Network, 150.0, all(&[UpstreamLink, SwitchUplink])),
            (Stage::Switch, 72.0, all(&[SwitchUplink, SwitchLink])),
            (Stage::Network, 150.0, all(&[SwitchLink, DownstreamLink])),
            (Stage::Downstream, 84.0, all(&[DownstreamLink, Function])),
            (Stage::Drive, labels, all(&[Function])),
        ]
    } else {
        vec![
            (Stage::Host, labels, all(&[RootPort])),
            (Stage::Upstream, 88.0, all(&[RootPort, UpstreamLink])),
            (Stage::Network, 190.0, all(&[UpstreamLink, DownstreamLink])),
            (Stage::Downstream, 88.0, all(&[DownstreamLink, Function])),
            (Stage::Drive, labels, all(&[Function])),
        ]
    };
    let mut left = LEFT;
    let column = |(stage, width, seen)| {
        let column = Column { stage, left, right: left + width, seen };
        left += width;
        column
    };
    stages.into_iter().map(column).collect()
}

/// Returns the position of a location.
pub(super) fn x(columns: &[Column], location: Location) -> f64 {
    let last = columns.len() - 1;
    match location {
        Location::RootPort => columns[1].left,
        Location::UpstreamLink => columns[2].left,
        Location::SwitchUplink => columns[2].right,
        Location::SwitchPort => (columns[3].left + columns[3].right) / 2.0,
        Location::SwitchLink => columns[3].right,
        Location::DownstreamLink => columns[last - 1].left,
        Location::Function => columns[last].left,
    }
}

/// Moves labels apart. `preferred` are their preferred positions in any order. The returned
/// positions are at least `line` apart, and between `top` and `bottom` if they fit there.
pub(super) fn spread(preferred: &[f64], line: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..preferred.len()).collect();
    order.sort_by(|a, b| preferred[*a].total_cmp(&preferred[*b]));
    let mut places = preferred.to_vec();
    let mut least = top;
    for index in &order {
        places[*index] = places[*index].max(least);
        least = places[*index] + line;
    }
    let mut most = bottom.max(top + line * preferred.len().saturating_sub(1) as f64);
    for index in order.iter().rev() {
        places[*index] = places[*index].min(most);
        most = places[*index] - line;
    }
    places
}

/// Returns the step of an axis: 1, 2 or 5 times a power of ten, so that `span` has about `parts`
/// steps.
pub(super) fn tick(span: f64, parts: f64) -> f64 {
    let rough = (span / parts).max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_apart_and_inside() {
        let places = spread(&[10.0, 12.0, 11.0, 100.0], 15.0, 0.0, 100.0);
        assert_eq!(places, [10.0, 40.0, 25.0, 100.0]);
        let places = spread(&[98.0, 99.0, 100.0], 15.0, 0.0, 100.0);
        assert_eq!(places, [70.0, 85.0, 100.0]);
        let places = spread(&[5.0; 10], 15.0, 0.0, 100.0);
        assert!(places.windows(2).all(|pair| (pair[1] - pair[0]).abs() >= 15.0), "{places:?}");
        assert!(spread(&[], 15.0, 0.0, 100.0).is_empty());
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(tick(168_414.0, 10.0), 20_000.0);
        assert_eq!(tick(99.0, 10.0), 10.0);
        assert_eq!(tick(0.0, 10.0), 1.0);
        assert_eq!(tick(3e9, 10.0), 500_000_000.0);
    }
}
