//! Lays out the boxes and lines of the picture, and draws them as SVG.

use super::place::{Line, Point, Rect, labels, side, width};
use super::{Edge, Node, Picture};
use report::escape;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Minimum width of a box and of the picture, in pixels.
const BOX: f64 = 136.0;
const LEAST: f64 = 420.0;
/// Height of a box with two lines of text, and of each further line.
const HEIGHT: f64 = 40.0;
const MORE: f64 = 14.0;
/// Gap between boxes of a row and between rows; larger where lines fan out.
const GAP: f64 = 20.0;
const ROWS: f64 = 44.0;
const FAN: f64 = 6.0;
const MOST_FAN: f64 = 170.0;
const MARGIN: f64 = 6.0;
/// Maximum enlargement of the picture, and minimum scale before the picture scrolls.
const LARGEST: f64 = 1.2;
const SMALLEST: f64 = 0.7;

/// The boxes and lines of the picture, with their places.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) size: Point,
    pub(super) boxes: BTreeMap<Node, Rect>,
    pub(super) lines: Vec<Line>,
    pub(super) labels: Vec<Option<Rect>>,
}

impl Drawing {
    pub(super) fn new(picture: &Picture) -> Self {
        let (size, boxes, rows) = boxes(picture);
        let lines = lines(picture, &boxes, &rows);
        let all: Vec<Rect> = boxes.values().copied().collect();
        let labels = labels(&lines, &all, size);
        Self { size, boxes, lines, labels }
    }

    pub(super) fn svg(&self, picture: &Picture) -> String {
        let (width, height) = self.size;
        let mut out = format!(
            "<svg class=\"plot own\" style=\"--own:{:.0}px;--least:{:.0}px\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"topology\">",
            width * LARGEST,
            width * SMALLEST
        );
        for (edge, line) in picture.edges.iter().zip(&self.lines) {
            path(&mut out, edge, line);
        }
        for (node, words) in picture.levels.iter().flatten() {
            node_box(&mut out, &self.boxes[node], *node, words);
        }
        for (line, label) in self.lines.iter().zip(&self.labels) {
            if let Some(label) = label {
                words(&mut out, label, &line.words);
            }
        }
        out + "</svg>"
    }
}

/// One end of a line: the position of the line's other end, the index of the line, and 0 or 1 for
/// the first or second end.
type End = (f64, usize, usize);
type Rows = BTreeMap<Node, (usize, usize)>;

/// Returns the size of the picture, its boxes, and row and column of each.
fn boxes(picture: &Picture) -> (Point, BTreeMap<Node, Rect>, Rows) {
    let levels: Vec<&Vec<_>> = picture.levels.iter().filter(|level| !level.is_empty()).collect();
    let mut rows = Rows::new();
    for (row, level) in levels.iter().enumerate() {
        let nodes = level.iter().enumerate();
        rows.extend(nodes.map(|(column, (node, _))| (*node, (row, column))));
    }
    let texts = levels.iter().flat_map(|level| level.iter()).flat_map(|(_, words)| words);
    let wide = texts.map(|words| width(words) + 14.0).fold(BOX, f64::max);
    // Lines within a row have their labels between the boxes.
    let gap = |row: usize| {
        let within = |edge: &&Edge| [edge.a, edge.b].iter().all(|node| rows[node].0 == row);
        let words = picture.edges.iter().filter(within).map(|edge| width(&edge.words) + 24.0);
        words.fold(GAP, f64::max)
    };
    let queue_entries =
        levels.iter().enumerate().map(|(row, level)| level.len() as f64 * (wide + gap(row)));
    let whole = queue_entries.fold(LEAST, f64::max);
    let most = levels.iter().map(|level| level.len()).max().unwrap_or(1) as f64;
    let between = ROWS + ((most - 4.0) * FAN).clamp(0.0, MOST_FAN);
    let (mut boxes, mut top) = (BTreeMap::new(), MARGIN);
    for level in levels {
        let room = whole / level.len() as f64;
        let mut highest = 0.0f64;
        for (column, (node, words)) in level.iter().enumerate() {
            let height = HEIGHT + MORE * words.len().saturating_sub(2) as f64;
            let middle = (room * (column as f64 + 0.5), top + height / 2.0);
            boxes.insert(*node, Rect { middle, size: (wide, height) });
            highest = highest.max(height);
        }
        top += highest + between;
    }
    ((whole, top - between + MARGIN), boxes, rows)
}

fn lines(picture: &Picture, boxes: &BTreeMap<Node, Rect>, rows: &Rows) -> Vec<Line> {
    // Line ends by box and side; `true` is the lower side.
    let mut sides: BTreeMap<(Node, bool), Vec<End>> = BTreeMap::new();
    let mut ends = vec![[(0.0, 0.0); 2]; picture.edges.len()];
    for (number, Edge { a, b, .. }) in picture.edges.iter().enumerate() {
        for (end, (node, other)) in [(a, b), (b, a)].into_iter().enumerate() {
            if rows[node].0 != rows[other].0 {
                let below = rows[node].0 < rows[other].0;
                let towards = boxes[other].middle.0;
                sides.entry((*node, below)).or_default().push((towards, number, end));
            }
        }
    }
    for ((node, below), mut leaving) in sides {
        leaving.sort_by(|a, b| a.0.total_cmp(&b.0));
        let node_box = boxes[&node];
        let y = if below { node_box.bottom() } else { node_box.top() };
        let places = side(node_box.middle.0, node_box.size.0 - 16.0, leaving.len());
        for ((_, number, end), x) in leaving.into_iter().zip(places) {
            ends[number][end] = (x, y);
        }
    }
    let mut arcs = 0;
    let line = |(edge, ends): (&Edge, [Point; 2])| {
        let ((row, column), (other_row, other)) = (rows[&edge.a], rows[&edge.b]);
        let points = match (row == other_row, column.abs_diff(other)) {
            (false, _) => ends.to_vec(),
            (true, 0 | 1) => straight(&boxes[&edge.a], &boxes[&edge.b]),
            (true, _) => {
                arcs += 1;
                around(&boxes[&edge.a], &boxes[&edge.b], 8.0 + 5.0 * f64::from(arcs % 6))
            }
        };
        Line { points, words: edge.words.clone() }
    };
    picture.edges.iter().zip(ends).map(line).collect()
}

/// Returns a line from a box to the next one in its row.
fn straight(a: &Rect, b: &Rect) -> Vec<Point> {
    match a.middle.0 < b.middle.0 {
        true => vec![(a.right(), a.middle.1), (b.left(), b.middle.1)],
        false => vec![(a.left(), a.middle.1), (b.right(), b.middle.1)],
    }
}

/// Returns a line between two boxes of a row that passes above the boxes between them.
fn around(a: &Rect, b: &Rect, above: f64) -> Vec<Point> {
    let inwards = (b.middle.0 - a.middle.0).signum() * a.size.0 / 3.0;
    let (from, to) = (a.middle.0 + inwards, b.middle.0 - inwards);
    let y = a.top().min(b.top()) - above;
    vec![(from, a.top()), (from, y), (to, y), (to, b.top())]
}

fn path(out: &mut String, edge: &Edge, line: &Line) {
    let (stroke, wide) = if edge.cable { ("#1c2733", 2.0) } else { ("#8a97a3", 1.2) };
    let points: Vec<String> = line.points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(
        out,
        "<polyline{} points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{wide}\"/>",
        edge.mark(),
        points.join(" ")
    );
}

/// Draws a label on a white background, so that the line does not cross the text.
fn words(out: &mut String, label: &Rect, words: &str) {
    let _ = write!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#fff\"/>\
         <text class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        label.left(),
        label.top(),
        label.size.0,
        label.size.1,
        label.middle.0,
        label.middle.1 + 4.0,
        escape(words)
    );
}

fn node_box(out: &mut String, rect: &Rect, node: Node, words: &[String]) {
    let ((x, _), (width, height)) = (rect.middle, rect.size);
    let _ = write!(
        out,
        "<g{}><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"5\" \
         fill=\"{}\" stroke=\"#5b6875\"/>",
        node.mark(),
        rect.left(),
        rect.top(),
        node.fill()
    );
    for (number, words) in words.iter().enumerate() {
        let style = if number == 0 { " style=\"font-weight:600;fill:#1c2733\"" } else { "" };
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\"{style}>{}</text>",
            rect.top() + 17.0 + 15.0 * number as f64,
            escape(words)
        );
    }
    *out += "</g>";
}
