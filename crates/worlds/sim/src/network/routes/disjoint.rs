//! Two paths that share as little as possible: a flow of two units with the least cost, by the
//! successive shortest paths of the residual network (Ahuja, Magnanti, Orlin: Network Flows, 9.7).

use super::Path;
use crate::network::wiring::Wiring;
use std::collections::VecDeque;

/// The cost of a cable or bridge for the second path: more than any detour costs.
const SHARED: i64 = 1 << 32;

/// A directed arc for one unit. The arc with the other parity leads back.
struct Arc {
    to: usize,
    cost: i64,
    is_free: bool,
    /// The cable of the arc, unless the arc passes a bridge.
    cable: Option<usize>,
}

/// Arcs by the node at which they begin. Each node is split: 2n receives, 2n + 1 sends.
struct Flow {
    arcs: Vec<Arc>,
    leaving: Vec<Vec<usize>>,
}

impl Wiring<'_> {
    /// Two paths from one station to another that share as few cables and bridges as possible, and
    /// of these the two that are shortest together. `None` if there are no two.
    pub fn disjoint(&self, from: usize, to: usize) -> Option<[Path; 2]> {
        let nodes = self.ways().len();
        let mut flow = Flow { arcs: Vec::new(), leaving: vec![Vec::new(); 2 * nodes] };
        for (node, ways) in self.ways().iter().enumerate() {
            if self.is_station(node) && ![from, to].contains(&node) {
                continue;
            }
            for cost in [0, SHARED] {
                flow.add(2 * node, 2 * node + 1, cost, None);
                for (cable, other) in ways {
                    flow.add(2 * node + 1, 2 * other, 1 + cost, Some(*cable));
                }
            }
        }
        let ends = (2 * from + 1, 2 * to);
        flow.augment(ends)?;
        flow.augment(ends)?;
        let paths = [flow.walk(ends)?, flow.walk(ends)?];
        (paths[0] != paths[1]).then_some(paths)
    }
}

impl Flow {
    fn add(&mut self, from: usize, to: usize, cost: i64, cable: Option<usize>) {
        for (from, to, cost, is_free) in [(from, to, cost, true), (to, from, -cost, false)] {
            self.leaving[from].push(self.arcs.len());
            self.arcs.push(Arc { to, cost, is_free, cable });
        }
    }

    /// Sends a unit along the cheapest path of free arcs.
    fn augment(&mut self, (from, to): (usize, usize)) -> Option<()> {
        let mut costs = vec![i64::MAX; self.leaving.len()];
        let mut by = vec![None; self.leaving.len()];
        let mut next = VecDeque::from([from]);
        costs[from] = 0;
        while let Some(node) = next.pop_front() {
            for number in &self.leaving[node] {
                let arc = &self.arcs[*number];
                if arc.is_free && costs[node] + arc.cost < costs[arc.to] {
                    costs[arc.to] = costs[node] + arc.cost;
                    by[arc.to] = Some(*number);
                    next.push_back(arc.to);
                }
            }
        }
        let mut here = to;
        while here != from {
            let number = by[here]?;
            self.arcs[number].is_free = false;
            self.arcs[number ^ 1].is_free = true;
            here = self.arcs[number ^ 1].to;
        }
        Some(())
    }

    /// Takes a unit out of the flow, and returns its cables.
    fn walk(&mut self, (from, to): (usize, usize)) -> Option<Path> {
        let (mut here, mut path) = (from, Path::new());
        while here != to {
            let carries =
                |number: &&usize| number.is_multiple_of(2) && !self.arcs[**number].is_free;
            let number = *self.leaving[here].iter().find(carries)?;
            self.arcs[number].is_free = true;
            path.extend(self.arcs[number].cable);
            here = self.arcs[number].to;
        }
        Some(path)
    }
}
