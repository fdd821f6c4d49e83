//! Compares paths over the tree of a network with an exhaustive search.

use super::*;
use proptest::prelude::*;
use sim::ethernet::bridge;
use sim::network::{CableEnd, NetworkConfig, Place, Tree};

/// Nodes that are connected at random, each one to an earlier node, additional cables between
/// bridges, and further ports of stations.
pub fn any_network() -> impl Strategy<Value = NetworkConfig> {
    let bridges = prop::collection::vec(any::<prop::sample::Index>(), 1..8);
    let stations = prop::collection::vec(any::<prop::sample::Index>(), 2..8);
    let two = any::<[prop::sample::Index; 2]>;
    let (more, second) = (prop::collection::vec(two(), 0..4), prop::collection::vec(two(), 0..3));
    (bridges, stations, more, second).prop_map(|(before, stations, more, second)| {
        let mut tree = Tree::new(Rate::G1, Duration::ZERO);
        let count = before.len() + 1;
        let bridges: Vec<Place> = (0..count)
            .map(|_| tree.bridge(bridge::Mode::StoreAndForward, Duration::ZERO))
            .collect();
        for (at, before) in before.iter().enumerate() {
            tree.link(bridges[before.index(at + 1)], bridges[at + 1]);
        }
        let stations: Vec<Place> = stations
            .iter()
            .map(|at| {
                let station = tree.station();
                tree.link(bridges[at.index(count)], station);
                station
            })
            .collect();
        for [station, at] in second {
            tree.link(bridges[at.index(count)], stations[station.index(stations.len())]);
        }
        for [a, b] in more {
            tree.link(bridges[a.index(count)], bridges[b.index(count)]);
        }
        tree.network().clone()
    })
}

/// The output ports from `at` to station `to`, found by trying every port.
fn search(network: &NetworkConfig, at: CableEnd, to: usize) -> Option<Vec<CableEnd>> {
    let number = network.cables.iter().position(|cable| [cable.a, cable.b].contains(&at))?;
    let cable = &network.cables[number];
    let other = if cable.a == at { cable.b } else { cable.a };
    if !network.wiring().spanning()[number] {
        return None;
    }
    let rest = match other {
        CableEnd::Station(station, _) => (station == to).then(Vec::new)?,
        CableEnd::Bridge(bridge, entered) => (0..network.bridges[bridge].ports.len())
            .filter(|port| *port != entered)
            .find_map(|port| search(network, CableEnd::Bridge(bridge, port), to))?,
    };
    Some([vec![at], rest].concat())
}

proptest! {
    #[test]
    fn ways_match_exhaustive_search(network in any_network()) {
        let wiring = network.wiring();
        for from in 0..network.stations.len() {
            for to in (0..network.stations.len()).filter(|to| *to != from) {
                let found = search(&network, CableEnd::station(from), to);
                prop_assert_eq!(Some(wiring.way(from, to)), found, "{} to {}", from, to);
            }
        }
        // Each cable that is not part of the tree closes a loop.
        let nodes = network.stations.len() + network.bridges.len();
        let part = wiring.spanning().iter().filter(|part| **part).count();
        prop_assert_eq!(part, nodes - 1);
    }
}
