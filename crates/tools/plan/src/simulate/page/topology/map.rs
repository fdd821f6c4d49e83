//! The picture of a large network: nodes in two dimensions, with stations of one cable around their
//! bridge. The page's script enlarges it.

use super::place::{Point, width};
use super::spread::spread;
use super::{Edge, Node, Picture};
use report::escape;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Pixels per unit of length.
const UNIT: f64 = 64.0;
const MARGIN: f64 = 40.0;
/// Height of a box, radius of a dot, and distance between dots, in pixels.
const BOX: f64 = 18.0;
const DOT: f64 = 4.5;
const STEP: f64 = 13.0;
/// Radius of the first circle of dots around a box.
const CIRCLE: f64 = 28.0;
/// Maximum number of nodes with room for all names.
const ROOMY: usize = 100;

/// Draws a picture of boxes and dots. Boxes have a name; names of dots are for larger scales.
pub(super) fn svg(picture: &Picture) -> String {
    let names: BTreeMap<Node, &str> =
        picture.levels.iter().flatten().map(|(node, words)| (*node, words[0].as_str())).collect();
    let places = places(picture, &names);
    let points = || places.values().map(|(place, _)| *place);
    let side = |of: fn(Point) -> f64| {
        let all = || points().map(of);
        (all().fold(f64::MAX, f64::min) - MARGIN, all().fold(f64::MIN, f64::max) + MARGIN)
    };
    let ((left, right), (top, bottom)) = (side(|place| place.0), side(|place| place.1));
    let mut out = format!(
        "<svg class=\"plot map\" viewBox=\"{left:.0} {top:.0} {:.0} {:.0}\" role=\"img\" \
         aria-label=\"topology\">",
        right - left,
        bottom - top
    );
    for edge in picture.edges.iter().filter(shows) {
        let ((x1, y1), (x2, y2)) = (places[&edge.a].0, places[&edge.b].0);
        let _ = write!(
            out,
            "<path{} d=\"M{x1:.0} {y1:.0}L{x2:.0} {y2:.0}\"><title>{} – {}: {}</title></path>",
            edge.mark(),
            escape(names[&edge.a]),
            escape(names[&edge.b]),
            escape(&edge.words)
        );
    }
    for (node, ((x, y), angle)) in &places {
        let (name, mark, fill) = (escape(names[node]), node.mark(), node.fill());
        let _ = match angle {
            Some(angle) => {
                let (dx, dy, anchor) = beside(*angle);
                write!(
                    out,
                    "<g class=\"dot\"{mark}><circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{DOT}\" \
                     fill=\"{fill}\"/><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{name}\
                     </text><title>{name}</title></g>",
                    x + dx,
                    y + dy
                )
            }
            None => {
                let wide = width(names[node]) + 8.0;
                write!(
                    out,
                    "<g{mark}><rect x=\"{:.0}\" y=\"{:.0}\" width=\"{wide:.0}\" \
                     height=\"{BOX}\" rx=\"4\" fill=\"{fill}\"/><text x=\"{x:.0}\" y=\"{:.0}\" \
                     text-anchor=\"middle\">{name}</text></g>",
                    x - wide / 2.0,
                    y - BOX / 2.0,
                    y + 4.0
                )
            }
        };
    }
    out + "</svg>"
}

/// Returns where the name of a dot is: on the far side from the box.
fn beside(angle: f64) -> (f64, f64, &'static str) {
    match (angle.cos(), angle.sin()) {
        (x, _) if x > 0.4 => (8.0, 4.0, "start"),
        (x, _) if x < -0.4 => (-8.0, 4.0, "end"),
        (_, y) => (0.0, if y < 0.0 { -8.0 } else { 15.0 }, "middle"),
    }
}

/// Returns whether a line is drawn: all but tunnels between stations.
fn shows(edge: &&Edge) -> bool {
    edge.cable || !matches!((edge.a, edge.b), (Node::Station(_), Node::Station(_)))
}

/// Returns the place of each node; of a dot also its direction from its box.
fn places(picture: &Picture, names: &BTreeMap<Node, &str>) -> BTreeMap<Node, (Point, Option<f64>)> {
    let mut near: BTreeMap<Node, Vec<Node>> = names.keys().map(|node| (*node, vec![])).collect();
    for edge in picture.edges.iter().filter(shows) {
        near.entry(edge.a).or_default().push(edge.b);
        near.entry(edge.b).or_default().push(edge.a);
    }
    let is_dot = |node: &Node| match &near[node][..] {
        [only] => near[only].len() > 1 && !matches!(node, Node::Bridge(_)),
        _ => false,
    };
    let boxes: Vec<Node> = near.keys().copied().filter(|node| !is_dot(node)).collect();
    let number: BTreeMap<Node, usize> = boxes.iter().copied().zip(0..).collect();
    let dots_of = |node: &Node| near[node].iter().copied().filter(is_dot).collect::<Vec<_>>();
    let scale = if names.len() > ROOMY { 1.0 } else { 2.0 };
    let radius = |node: &Node| match circles(dots_of(node).len()).last() {
        Some((radius, _)) => (radius + STEP) * scale / UNIT,
        None => 0.0,
    };
    let ends = |edge: &Edge| Some((*number.get(&edge.a)?, *number.get(&edge.b)?));
    let edges: Vec<_> = picture.edges.iter().filter(shows).filter_map(ends).collect();
    let spread = spread(&boxes.iter().map(radius).collect::<Vec<_>>(), &edges);
    let spread: Vec<Point> = spread.into_iter().map(|(x, y)| (x * UNIT, y * UNIT)).collect();
    let mut places = BTreeMap::new();
    for (at, node) in boxes.iter().enumerate() {
        let here = spread[at];
        places.insert(*node, (here, None));
        let others = near[node].iter().filter_map(|other| Some(spread[*number.get(other)?]));
        let (x, y) = others
            .fold((0.0, 0.0), |sum, other| (sum.0 + here.0 - other.0, sum.1 + here.1 - other.1));
        let away = f64::atan2(y, x);
        let mut dots = dots_of(node).into_iter();
        for (radius, count) in circles(dots.len()) {
            let step = (std::f64::consts::TAU / count as f64).min(1.6 * STEP / radius);
            for (at, dot) in dots.by_ref().take(count).enumerate() {
                let angle = away + (at as f64 - (count as f64 - 1.0) / 2.0) * step;
                let radius = radius * scale;
                let place = (here.0 + radius * angle.cos(), here.1 + radius * angle.sin());
                places.insert(dot, (place, Some(angle)));
            }
        }
    }
    places
}

/// Returns radius and number of dots of each circle around a box.
fn circles(mut dots: usize) -> Vec<(f64, usize)> {
    let mut circles = Vec::new();
    while dots > 0 {
        let radius = CIRCLE + circles.len() as f64 * STEP;
        let count = dots.min((std::f64::consts::TAU * radius / STEP) as usize);
        circles.push((radius, count));
        dots -= count;
    }
    circles
}
