//! Compares shortest and disjoint paths with an exhaustive search.

use super::wiring::any_network;
use proptest::prelude::*;
use sim::network::{NetworkConfig, Path, Place};
use std::collections::BTreeSet;

/// All paths between two stations that pass no node twice and no other station.
fn all_paths(network: &NetworkConfig, from: usize, to: usize) -> Vec<Path> {
    let mut found = Vec::new();
    let mut open = vec![(Path::new(), vec![Place::Station(from)])];
    while let Some((path, nodes)) = open.pop() {
        let here = nodes[nodes.len() - 1];
        for (number, cable) in network.cables.iter().enumerate() {
            let ends = [cable.a.node(), cable.b.node()];
            let Some(at) = ends.iter().position(|end| *end == here) else { continue };
            let next = ends[1 - at];
            if nodes.contains(&next) {
                continue;
            }
            let path = [&path[..], &[number]].concat();
            match next {
                Place::Station(station) if station == to => found.push(path),
                Place::Station(_) => {}
                Place::Bridge(_) => open.push((path, [&nodes[..], &[next]].concat())),
            }
        }
    }
    found
}

/// What two paths share, and their length together: bridges and cables that both use, then cables.
fn cost(network: &NetworkConfig, from: usize, paths: [&Path; 2]) -> (usize, usize) {
    let wiring = network.wiring();
    let [a, b] = paths.map(|path| -> BTreeSet<Place> {
        let hops = wiring.hops(from, path).expect("a path");
        hops[..hops.len() - 1].iter().map(|[_, end]| end.node()).collect()
    });
    let cables = paths[0].iter().filter(|cable| paths[1].contains(cable)).count();
    (a.intersection(&b).count() + cables, paths[0].len() + paths[1].len())
}

proptest! {
    #[test]
    fn shortest_and_disjoint_paths_match_exhaustive_search(network in any_network()) {
        let wiring = network.wiring();
        for from in 0..network.stations.len() {
            let shortest = wiring.shortest(from);
            for to in (0..network.stations.len()).filter(|to| *to != from) {
                let all = all_paths(&network, from, to);
                let least = all.iter().map(Vec::len).min();
                prop_assert_eq!(shortest.to(to).map(|path| path.len()), least);
                let pairs = || all.iter().enumerate().flat_map(|(at, a)| {
                    all[at + 1..].iter().map(move |b| [a, b])
                });
                let best = pairs().map(|pair| cost(&network, from, pair)).min();
                let found = wiring.disjoint(from, to);
                prop_assert_eq!(found.is_some(), best.is_some(), "{} to {}", from, to);
                if let Some([a, b]) = found {
                    prop_assert_eq!(Some(cost(&network, from, [&a, &b])), best);
                }
            }
        }
    }
}
