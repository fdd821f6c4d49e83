//! Places boxes, lines and labels, so that labels overlap neither each other nor boxes.

/// Approximate width of a character of a label, and height of a line of text, in pixels.
const CHARACTER: f64 = 6.6;
const HEIGHT: f64 = 14.0;
/// Possible positions of a label along its line as shares of the length, best first.
const PLACES: [f64; 13] =
    [0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86];
/// Costs of a line that crosses a label, and of a label next to its line.
const CROSSED: f64 = 10.0;
const ASIDE: f64 = 4.0;

pub(super) type Point = (f64, f64);

/// Returns the approximate width of a text.
pub(super) fn width(words: &str) -> f64 {
    words.chars().count() as f64 * CHARACTER
}

/// An upright rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    /// Middle of the rectangle.
    pub(super) middle: Point,
    /// Width and height.
    pub(super) size: Point,
}

impl Rect {
    pub(super) fn left(&self) -> f64 {
        self.middle.0 - self.size.0 / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.middle.0 + self.size.0 / 2.0
    }

    pub(super) fn top(&self) -> f64 {
        self.middle.1 - self.size.1 / 2.0
    }

    pub(super) fn bottom(&self) -> f64 {
        self.middle.1 + self.size.1 / 2.0
    }

    /// Returns whether two rectangles overlap.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.left() < other.right()
            && other.left() < self.right()
            && self.top() < other.bottom()
            && other.top() < self.bottom()
    }

    /// Returns whether a line crosses the rectangle (Liang and Barsky, 1984).
    pub(super) fn is_crossed(&self, from: Point, to: Point) -> bool {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let sides = [
            (-dx, from.0 - self.left()),
            (dx, self.right() - from.0),
            (-dy, from.1 - self.top()),
            (dy, self.bottom() - from.1),
        ];
        let (mut enters, mut leaves) = (0.0f64, 1.0f64);
        for (towards, distance) in sides {
            if towards == 0.0 {
                if distance <= 0.0 {
                    return false;
                }
            } else if towards < 0.0 {
                enters = enters.max(distance / towards);
            } else {
                leaves = leaves.min(distance / towards);
            }
        }
        enters < leaves
    }
}

/// A line through some points, and its label.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) points: Vec<Point>,
    pub(super) words: String,
}

impl Line {
    fn segments(&self) -> impl Iterator<Item = (Point, Point)> {
        self.points.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// Returns places for the label: on the longest part of the line, or next to it.
    fn candidates(&self) -> Vec<(Rect, f64)> {
        let long = |(a, b): &(Point, Point)| (b.0 - a.0).hypot(b.1 - a.1);
        let Some((a, b)) = self.segments().max_by(|x, y| long(x).total_cmp(&long(y))) else {
            return Vec::new();
        };
        let size = (width(&self.words) + 4.0, HEIGHT);
        let aside = size.0 / 2.0 + 4.0;
        let mut all = Vec::new();
        for (rank, share) in PLACES.into_iter().enumerate() {
            let (x, y) = (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share);
            for (shift, cost) in [(0.0, 0.0), (aside, ASIDE), (-aside, ASIDE)] {
                all.push((Rect { middle: (x + shift, y), size }, cost + rank as f64 * 0.2));
            }
        }
        all
    }
}

/// Returns the place of each label: in `room`, without overlap with boxes and other labels, and
/// crossed by as few lines as possible. `None` for a label without a place.
pub(super) fn labels(lines: &[Line], boxes: &[Rect], room: Point) -> Vec<Option<Rect>> {
    let mut placed: Vec<Rect> = Vec::new();
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let free = |(rect, _): &(Rect, f64)| {
            let inside = rect.left() >= 0.0 && rect.right() <= room.0 && rect.bottom() <= room.1;
            inside && !boxes.iter().chain(&placed).any(|other| rect.meets(other))
        };
        let costs = |(rect, cost): (Rect, f64)| {
            let others = lines.iter().enumerate().filter(|(other, _)| *other != number);
            let through = others.flat_map(|(_, other)| other.segments());
            let crossed = through.filter(|(a, b)| rect.is_crossed(*a, *b)).count();
            (rect, cost + CROSSED * crossed as f64)
        };
        let candidates = line.candidates().into_iter().filter(free).map(costs);
        let best = candidates.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(rect, _)| rect);
        placed.extend(best);
        all.push(best);
    }
    all
}

/// Returns the positions of `count` lines that leave one side of a box around `middle`.
pub(super) fn side(middle: f64, wide: f64, count: usize) -> impl Iterator<Item = f64> {
    let step = (wide / count as f64).min(30.0);
    (0..count).map(move |at| middle + (at as f64 - (count as f64 - 1.0) / 2.0) * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(points: &[Point], words: &str) -> Line {
        Line { points: points.to_vec(), words: words.to_owned() }
    }

    #[test]
    fn lines_cross_rectangles_or_pass_them() {
        let rect = Rect { middle: (10.0, 10.0), size: (8.0, 4.0) };
        assert!(rect.is_crossed((0.0, 10.0), (20.0, 10.0)));
        assert!(rect.is_crossed((10.0, 0.0), (10.0, 9.0)), "it ends within");
        assert!(!rect.is_crossed((10.0, 0.0), (10.0, 8.0)), "it ends at the side");
        assert!(!rect.is_crossed((0.0, 0.0), (5.0, 20.0)));
        assert!(!rect.is_crossed((0.0, 12.5), (20.0, 12.5)));
    }

    #[test]
    fn labels_avoid_boxes_and_lines() {
        let vertical = line(&[(100.0, 0.0), (100.0, 44.0)], "1 Gb/s");
        let labels_of = |lines: &[Line]| labels(lines, &[], (200.0, 44.0));
        let [Some(alone)] = labels_of(std::slice::from_ref(&vertical))[..] else { panic!() };
        assert_eq!(alone.middle, (100.0, 22.0));
        let [Some(one), Some(other)] = labels_of(&[vertical.clone(), vertical])[..] else {
            panic!("there is room for two")
        };
        assert!(!one.meets(&other));
        let full = Rect { middle: (100.0, 22.0), size: (200.0, 44.0) };
        let wide = line(&[(0.0, 22.0), (200.0, 22.0)], "1 Gb/s");
        assert_eq!(labels(&[wide], &[full], (200.0, 44.0)), [None]);
    }

    proptest! {
        #[test]
        fn labels_overlap_no_box_and_no_label(
            lines in prop::collection::vec(((0.0..600.0, 0.0..300.0), (0.0..600.0, 0.0..300.0)), 1..30),
            boxes in prop::collection::vec((0.0..600.0, 0.0..300.0), 0..8),
        ) {
            let lines: Vec<Line> = lines.iter().map(|(a, b)| line(&[*a, *b], "10 Gb/s")).collect();
            let boxes: Vec<Rect> =
                boxes.into_iter().map(|middle| Rect { middle, size: (80.0, 40.0) }).collect();
            let labels = labels(&lines, &boxes, (600.0, 300.0));
            let placed: Vec<Rect> = labels.into_iter().flatten().collect();
            for (number, label) in placed.iter().enumerate() {
                prop_assert!(!boxes.iter().chain(&placed[..number]).any(|other| label.meets(other)));
            }
        }
    }
}
