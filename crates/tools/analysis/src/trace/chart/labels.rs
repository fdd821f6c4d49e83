//! Labels along slanted lines that overlap neither each other nor other lines.

/// Half the height of a label, in pixels.
const HALF: f64 = 5.0;
/// Distance from a line to the middle of its label, in pixels.
const BESIDE: f64 = 10.0;
/// Half the width of a frame's band, in pixels.
const BAND: f64 = 3.5;
/// Possible positions of a label along its line as shares of the length, best first.
const PLACES: [f64; 9] = [0.5, 0.4, 0.6, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8];

type Point = (f64, f64);

/// A line from left to right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) from: Point,
    pub(super) to: Point,
}

/// The position of a line's label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    /// The point of the line next to the label.
    pub(super) at: Point,
    /// The line's slope in radians.
    pub(super) angle: f64,
    /// Below the line instead of above.
    pub(super) below: bool,
    /// Half the width of the label.
    half: f64,
}

impl Label {
    fn new(line: &Line, share: f64, below: bool, width: f64) -> Self {
        let ((x1, y1), (x2, y2)) = (line.from, line.to);
        let at = (x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
        Self { at, angle: (y2 - y1).atan2(x2 - x1), below, half: width / 2.0 }
    }

    /// Returns the corners of the label's box, which is `more` wider on all sides.
    pub(super) fn corners(&self, more: f64) -> [Point; 4] {
        let (sin, cos) = self.angle.sin_cos();
        let beside = if self.below { BESIDE } else { -BESIDE };
        let (along, across) = (self.half + more, HALF + more);
        [(-along, -across), (along, -across), (along, across), (-along, across)].map(|(a, b)| {
            let b = b + beside;
            (self.at.0 + a * cos - b * sin, self.at.1 + a * sin + b * cos)
        })
    }
}

/// Returns whether two convex shapes do not overlap: one side of a shape separates them (separating
/// axis theorem).
fn apart(a: &[Point], b: &[Point]) -> bool {
    let axes = |shape: &[Point]| -> Vec<Point> {
        let next = shape.iter().cycle().skip(1);
        shape.iter().zip(next).map(|(p, q)| (p.1 - q.1, q.0 - p.0)).collect()
    };
    let range = |shape: &[Point], axis: Point| {
        let along = shape.iter().map(|p| p.0 * axis.0 + p.1 * axis.1);
        along.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)))
    };
    axes(a).into_iter().chain(axes(b)).any(|axis| {
        let ((low, high), (least, most)) = (range(a, axis), range(b, axis));
        high < least || most < low
    })
}

/// Places a label of the given width next to each line, within `room` (left, top, right, bottom)
/// and away from all other lines and labels. Returns `None` for a line without a place.
pub(super) fn place(lines: &[(Line, f64)], room: [f64; 4]) -> Vec<Option<Label>> {
    let mut placed: Vec<Label> = Vec::new();
    let mut all = Vec::new();
    for (number, (line, width)) in lines.iter().enumerate() {
        let candidates = PLACES
            .into_iter()
            .flat_map(|share| [false, true].map(|below| Label::new(line, share, below, *width)));
        let fits = |label: &Label| {
            let [left, top, right, bottom] = room;
            let corners = label.corners(0.0);
            let inside = |p: &Point| (left..=right).contains(&p.0) && (top..=bottom).contains(&p.1);
            let wide = label.corners(BAND);
            let others = lines.iter().enumerate().filter(|(other, _)| *other != number);
            corners.iter().all(inside)
                && placed.iter().all(|other| apart(&corners, &other.corners(1.0)))
                && others.into_iter().all(|(_, (o, _))| apart(&wide, &[o.from, o.to]))
        };
        let label = candidates.into_iter().find(fits);
        placed.extend(label);
        all.push(label);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: [f64; 4] = [400.0, 100.0, 590.0, 770.0];

    fn line(from: f64, to: f64) -> (Line, f64) {
        (Line { from: (400.0, from), to: (590.0, to) }, 120.0)
    }

    #[test]
    fn shapes_meet_or_do_not() {
        let square = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)];
        assert!(!apart(&square, &[(-1.0, 1.0), (3.0, 1.2)]), "a line across it");
        assert!(apart(&square, &[(-1.0, 1.5), (1.5, 4.0)]), "a line past a corner");
        assert!(!apart(&square, &[(1.0, -1.0), (3.0, 1.0), (1.0, 3.0), (-1.0, 1.0)]));
        assert!(apart(&square, &[(3.0, 0.0), (4.0, 0.0), (4.0, 1.0)]));
    }

    #[test]
    fn label_is_above_the_middle_of_a_single_line() {
        let [Some(label)] = place(&[line(200.0, 220.0)], ROOM)[..] else { panic!("no label") };
        assert_eq!((label.at, label.below), ((495.0, 210.0), false));
    }

    /// Frames that a gate delayed follow each other: their lines are steep and closer than the
    /// height of a label.
    #[test]
    fn only_outer_lines_of_a_steep_bundle_have_labels() {
        let lines = [line(600.0, 330.0), line(612.0, 342.0), line(624.0, 354.0)];
        let labels = place(&lines, ROOM);
        assert!(labels[0].is_some_and(|label| !label.below));
        assert!(labels[1].is_none(), "between two lines");
        assert!(labels[2].is_some_and(|label| label.below));
    }

    proptest! {
        #[test]
        fn chart_labels_do_not_overlap(
            ends in prop::collection::vec((110.0..760.0, -200.0..200.0f64), 1..40),
        ) {
            let lines: Vec<_> = ends.iter().map(|(from, rise)| line(*from, from + rise)).collect();
            let labels = place(&lines, ROOM);
            for (number, label) in labels.iter().enumerate() {
                let Some(label) = label else { continue };
                let corners = label.corners(0.0);
                for other in labels[..number].iter().flatten() {
                    prop_assert!(apart(&corners, &other.corners(0.0)));
                }
                for (line, _) in &lines {
                    prop_assert!(apart(&corners, &[line.from, line.to]));
                }
            }
        }
    }
}
