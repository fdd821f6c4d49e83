//! Places the nodes of a large network in two dimensions, so that distances on the picture are like
//! distances in cables. The time grows little faster than the number of nodes.
//!
//! Pivot multidimensional scaling (U. Brandes and C. Pich, "Eigensolver Methods for Progressive
//! Multidimensional Scaling of Large Data", 2006) gives the first places; springs along cables and
//! repulsion between near nodes then separate nodes that are alike (T. Fruchterman and E. Reingold,
//! "Graph Drawing by Force-Directed Placement", 1991).

use super::place::Point;
use std::collections::{BTreeMap, VecDeque};

const PIVOTS: usize = 40;
const ROUNDS: usize = 120;
/// Angle between consecutive nodes at one place: no two are in the same direction.
const GOLDEN: f64 = 2.399_963;

/// Places nodes with these radii; the unit is the length of a cable between nodes without radius.
pub(super) fn spread(radii: &[f64], edges: &[(usize, usize)]) -> Vec<Point> {
    if radii.is_empty() {
        return Vec::new();
    }
    let mut near = vec![Vec::new(); radii.len()];
    for (a, b) in edges {
        near[*a].push(*b);
        near[*b].push(*a);
    }
    let mut places = scaled(&near);
    let lengths = edges.iter().map(|(a, b)| distance(places[*a], places[*b]));
    let mean = lengths.sum::<f64>() / edges.len().max(1) as f64;
    let scale = (1.0 + 2.0 * radii.iter().sum::<f64>() / radii.len() as f64) / mean.max(1e-9);
    for (at, place) in places.iter_mut().enumerate() {
        let (sin, cos) = (at as f64 * GOLDEN).sin_cos();
        *place = (place.0 * scale + 0.3 * cos, place.1 * scale + 0.3 * sin);
    }
    for round in 0..ROUNDS {
        let most = 0.4 * (1.0 - round as f64 / ROUNDS as f64) + 0.02;
        relax(&mut places, radii, edges, most);
    }
    turned(&places)
}

/// Turns all places so that they fill a picture which is twice as wide as high.
fn turned(places: &[Point]) -> Vec<Point> {
    let turn = |step: u32| {
        let (sin, cos) = (f64::from(step) * std::f64::consts::PI / 36.0).sin_cos();
        let turn = |(x, y): &Point| (x * cos - y * sin, x * sin + y * cos);
        places.iter().map(turn).collect::<Vec<_>>()
    };
    let extent = |of: &mut dyn Iterator<Item = f64>| {
        let (least, most) =
            of.fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
        most - least
    };
    let size = |places: &Vec<Point>| {
        let wide = extent(&mut places.iter().map(|place| place.0));
        (wide / 2.0).max(extent(&mut places.iter().map(|place| place.1)))
    };
    let all = (0..36).map(turn);
    all.min_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or_default()
}

fn distance(a: Point, b: Point) -> f64 {
    (b.0 - a.0).hypot(b.1 - a.1)
}

/// Moves each node by at most `most`.
fn relax(places: &mut [Point], radii: &[f64], edges: &[(usize, usize)], most: f64) {
    let mut moves = vec![(0.0, 0.0); places.len()];
    let mut push = |a: usize, b: usize, share: f64| {
        let (dx, dy) = (places[b].0 - places[a].0, places[b].1 - places[a].1);
        let length = dx.hypot(dy).max(1e-6);
        let (x, y) = (share * dx / length, share * dy / length);
        moves[a] = (moves[a].0 - x, moves[a].1 - y);
        moves[b] = (moves[b].0 + x, moves[b].1 + y);
    };
    let reach = 1.4 + 2.0 * radii.iter().copied().fold(0.0, f64::max);
    let cell = |place: Point| ((place.0 / reach).floor() as i64, (place.1 / reach).floor() as i64);
    let mut cells: BTreeMap<(i64, i64), Vec<usize>> = BTreeMap::new();
    places.iter().enumerate().for_each(|(at, one)| cells.entry(cell(*one)).or_default().push(at));
    for (at, place) in places.iter().enumerate() {
        let (x, y) = cell(*place);
        let around = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y)));
        for other in around.filter_map(|cell| cells.get(&cell)).flatten() {
            let room = 1.4 + radii[at] + radii[*other];
            let length = distance(*place, places[*other]);
            if at < *other && length < room {
                push(at, *other, 0.25 * (room - length));
            }
        }
    }
    for (a, b) in edges {
        let wanted = 1.0 + radii[*a] + radii[*b];
        push(*a, *b, -0.2 * (distance(places[*a], places[*b]) - wanted));
    }
    for (place, (x, y)) in places.iter_mut().zip(moves) {
        let share = (most / x.hypot(y).max(1e-9)).min(1.0);
        *place = (place.0 + x * share, place.1 + y * share);
    }
}

/// Returns the first places, from the distances to some pivots.
fn scaled(near: &[Vec<usize>]) -> Vec<Point> {
    let nodes = near.len();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut least = vec![f64::MAX; nodes];
    let mut pivot = 0;
    while columns.len() < PIVOTS.min(nodes) {
        let distances = distances(near, pivot);
        for (least, own) in least.iter_mut().zip(&distances) {
            *least = least.min(*own);
        }
        let farthest = (0..nodes).max_by(|a, b| least[*a].total_cmp(&least[*b]));
        pivot = farthest.unwrap_or(0);
        columns.push(distances.iter().map(|distance| distance * distance).collect());
    }
    centre(&mut columns);
    let first = axis(&columns, None);
    let second = axis(&columns, Some(&first));
    let along = |axis: &[f64], node: usize| -> f64 {
        columns.iter().zip(axis).map(|(column, share)| column[node] * share).sum()
    };
    (0..nodes).map(|node| (along(&first, node), along(&second, node))).collect()
}

/// Subtracts the means of rows and columns.
fn centre(columns: &mut [Vec<f64>]) {
    let (count, nodes) = (columns.len() as f64, columns[0].len());
    let rows: Vec<f64> = (0..nodes)
        .map(|node| columns.iter().map(|column| column[node]).sum::<f64>() / count)
        .collect();
    let all = rows.iter().sum::<f64>() / nodes as f64;
    for column in columns {
        let mean = column.iter().sum::<f64>() / nodes as f64;
        for (value, row) in column.iter_mut().zip(&rows) {
            *value = -0.5 * (*value - row - mean + all);
        }
    }
}

/// Returns the direction in which the columns differ most, at right angles to `other`.
fn axis(columns: &[Vec<f64>], other: Option<&[f64]>) -> Vec<f64> {
    let mut axis: Vec<f64> =
        (0..columns.len()).map(|at| 1.0 + (at as f64 * GOLDEN).sin()).collect();
    for _ in 0..60 {
        if let Some(other) = other {
            let share: f64 = axis.iter().zip(other).map(|(a, b)| a * b).sum();
            axis.iter_mut().zip(other).for_each(|(a, b)| *a -= share * b);
        }
        let mut image = vec![0.0; columns[0].len()];
        for (column, share) in columns.iter().zip(&axis) {
            image.iter_mut().zip(column).for_each(|(sum, value)| *sum += value * share);
        }
        let next = columns.iter().map(|column| column.iter().zip(&image).map(|(a, b)| a * b).sum());
        let next: Vec<f64> = next.collect();
        let length = next.iter().map(|value| value * value).sum::<f64>().sqrt();
        if length < 1e-9 {
            break;
        }
        axis = next.iter().map(|value| value / length).collect();
    }
    axis
}

/// Returns the distance of each node from one node in cables. Nodes without a way are far away.
fn distances(near: &[Vec<usize>], from: usize) -> Vec<f64> {
    let mut distances = vec![usize::MAX; near.len()];
    let mut open = VecDeque::from([from]);
    distances[from] = 0;
    let mut farthest = 0;
    while let Some(node) = open.pop_front() {
        farthest = distances[node];
        for next in &near[node] {
            if distances[*next] == usize::MAX {
                distances[*next] = farthest + 1;
                open.push_back(*next);
            }
        }
    }
    let far = farthest + 3;
    distances.into_iter().map(|distance| distance.min(far) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grid of `side` by `side` nodes.
    fn grid(side: usize) -> Vec<(usize, usize)> {
        let right = (0..side * side).filter(|at| at % side + 1 < side).map(|at| (at, at + 1));
        let down = (0..side * (side - 1)).map(|at| (at, at + side));
        right.chain(down).collect()
    }

    #[test]
    fn a_grid_has_short_cables_and_far_corners() {
        let side = 12;
        let edges = grid(side);
        let places = spread(&vec![0.0; side * side], &edges);
        let longest = edges.iter().map(|(a, b)| distance(places[*a], places[*b]));
        assert!(longest.fold(0.0, f64::max) < 2.5);
        let corner = |at: usize| distance(places[at], places[side * side - 1 - at]);
        assert!(corner(0) > 9.0 && corner(side - 1) > 9.0, "{} {}", corner(0), corner(side - 1));
        assert_eq!(places, spread(&vec![0.0; side * side], &edges));
    }

    #[test]
    fn alike_and_separate_nodes_do_not_share_a_place() {
        // A star, and two nodes without a cable.
        let edges: Vec<_> = (1..30).map(|leaf| (0, leaf)).collect();
        let places = spread(&[0.0; 32], &edges);
        for (at, a) in places.iter().enumerate() {
            assert!(a.0.is_finite() && a.1.is_finite());
            assert!(places[..at].iter().all(|b| distance(*a, *b) > 0.3), "{at}");
        }
    }
}
