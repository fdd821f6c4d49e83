//! Elimination in random networks with loops, random paths, faults and outages.

use super::redundancy::{ms, stream, vector};
use super::*;
use proptest::prelude::*;
use sim::network::{BridgeOutage, Path};
use stats::random::Probability;
use std::collections::BTreeSet;

/// Number of bridges.
const BRIDGES: usize = 6;

/// A network, the paths of a stream, and faults.
#[derive(Clone, Debug)]
struct AnyMesh {
    /// Cables between bridges in addition to the cables of a line, by their ends.
    more: Vec<(usize, usize)>,
    /// Random numbers that select the paths.
    turns: Vec<Vec<usize>>,
    /// Both stations have a second port, to these bridges, and two disjoint paths.
    second: Option<[usize; 2]>,
    /// Bridges that eliminate.
    eliminate: Vec<bool>,
    /// Outages of bridges: bridge, start and length in units of 100 us.
    outages: Vec<(usize, u64, u64)>,
    interval_us: u64,
    length: usize,
    seed: u64,
    /// Share of frames lost on each cable between bridges.
    loss_ppm: u32,
}

prop_compose! {
    fn any_mesh()(
        more in prop::collection::vec((0..BRIDGES, 0..BRIDGES), 1..6),
        turns in prop::collection::vec(prop::collection::vec(any::<usize>(), BRIDGES), 1..4),
        second in prop::option::of([0..BRIDGES, 0..BRIDGES]),
        eliminate in prop::collection::vec(any::<bool>(), BRIDGES),
        outages in prop::collection::vec((1..BRIDGES - 1, 0_u64..90, 1_u64..50), 0..3),
        interval_us in 110_u64..400,
        // Three copies of a frame take less than an interval on one line.
        length in 64_usize..400,
        seed in any::<u64>(),
        loss_ppm in 0_u32..200_000,
    ) -> AnyMesh {
        AnyMesh { more, turns, second, eliminate, outages, interval_us, length, seed, loss_ppm }
    }
}

impl AnyMesh {
    fn cables(&self) -> BTreeSet<(usize, usize)> {
        let line = (1..BRIDGES).map(|at| (at - 1, at));
        let more = self.more.iter().map(|&(a, b)| (a.min(b), a.max(b)));
        line.chain(more.filter(|(a, b)| a != b)).collect()
    }

    /// Paths from the first bridge to the last one that pass no bridge twice, and always the line
    /// of all bridges.
    fn paths(&self) -> Vec<Vec<usize>> {
        let cables = self.cables();
        let walk = |turns: &Vec<usize>| {
            let mut path = vec![0];
            for turn in turns {
                let at = path[path.len() - 1];
                let next: Vec<usize> = (0..BRIDGES)
                    .filter(|to| cables.contains(&(at.min(*to), at.max(*to))) && !path.contains(to))
                    .collect();
                if at == BRIDGES - 1 || next.is_empty() {
                    break;
                }
                path.push(next[turn % next.len()]);
            }
            (path[path.len() - 1] == BRIDGES - 1).then_some(path)
        };
        let found: BTreeSet<Vec<usize>> = self.turns.iter().filter_map(walk).collect();
        match found.is_empty() {
            true => vec![(0..BRIDGES).collect()],
            false => found.into_iter().collect(),
        }
    }

    /// A configuration with elimination at the listener and at the selected bridges on the paths,
    /// or at all bridges if `all`.
    fn config(&self, all: bool) -> (Config, StreamId) {
        let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
        let (from, to) = (tree.station(), tree.station());
        let make = |_| tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
        let bridges: Vec<Place> = (0..BRIDGES).map(make).collect();
        tree.link(from, bridges[0]);
        for (a, b) in self.cables() {
            tree.link(bridges[a], bridges[b]);
        }
        tree.link(bridges[BRIDGES - 1], to);
        let interval = Pattern::Periodic(Duration::from_us(self.interval_us));
        let id = tree.stream(from, TrafficConfig::new(1, self.length, 5, interval));
        let last = tree.network().cables.len() - 1;
        for (station, bridge) in [from, to].into_iter().zip(self.second.into_iter().flatten()) {
            tree.link(station, bridges[bridge]);
        }
        let network = tree.network();
        for (number, cable) in network.cables[1..last].iter_mut().enumerate() {
            for (way, faults) in cable.faults.iter_mut().enumerate() {
                faults.seed = self.seed ^ (2 * number + way) as u64;
                faults.loss = Probability::from_ppm(self.loss_ppm).expect("a share");
            }
        }
        let outage = |&(bridge, from, span): &(usize, u64, u64)| {
            let at = |tenths: u64| Instant::from_ns(tenths * 100_000);
            BridgeOutage { bridge, from: at(from), until: Some(at(from + span)) }
        };
        network.bridge_outages = self.outages.iter().map(outage).collect();
        let nodes = |path: &Vec<usize>| {
            let bridges = path.iter().map(|bridge| Place::Bridge(*bridge));
            std::iter::once(from).chain(bridges).chain([to]).collect::<Vec<_>>()
        };
        let wiring = network.wiring();
        let given = self.paths().into_iter();
        let given = given.map(|path| wiring.path(&nodes(&path)).expect("it has cables"));
        let paths: Vec<Path> = match self.second {
            Some(_) => wiring.disjoint(0, 1).expect("there are two").into(),
            None => given.collect(),
        };
        let hops = paths.iter().flat_map(|path| wiring.hops(0, path).expect("a path"));
        let passed: BTreeSet<Place> = hops.map(|[_, end]| end.node()).collect();
        let bridges = (0..BRIDGES).filter(|at| all || self.eliminate[*at]).map(Place::Bridge);
        let bridges = bridges.filter(|at| passed.contains(at)).map(|at| (at, vector(64)));
        let eliminate = bridges.chain([(Place::Station(1), vector(64))]).collect();
        network.streams = vec![stream(paths, eliminate)];
        (config(&mut tree, Duration::from_ms(14)), id)
    }
}

/// Stops the stream after 10 ms, so that the last frames have 4 ms to arrive.
fn stop(config: &mut Config) {
    config.network.stations[0].traffic[0].stop = Some(ms(10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each frame arrives at most once. Each frame arrives or is lost, so no copy circulates. If
    /// all bridges eliminate, every loop is allowed.
    #[test]
    fn every_frame_arrives_once_at_most(mesh in any_mesh(), all in any::<bool>()) {
        let (mut config, id) = mesh.config(all);
        stop(&mut config);
        let refused = config.network.streams[0].check(&config.network.wiring()).is_err();
        prop_assert!(!(refused && all), "nothing is left to circle");
        if !refused {
            let (report, _) = observed(&config);
            let stream = report.stream(id).expect("it is there");
            prop_assert_eq!(stream.sum(|listener| listener.duplicates), 0);
            prop_assert_eq!(stream.arrived() + stream.lost(), stream.sent);
            let again = observed(&config).0;
            prop_assert_eq!(again.digest, report.digest, "the same twice");
        }
    }

    /// No frame is lost while all cables and bridges of one path work, with any faults on the other
    /// paths.
    #[test]
    fn nothing_is_lost_beyond_all_paths(mesh in any_mesh()) {
        let (mut config, id) = mesh.config(true);
        stop(&mut config);
        let whole = config.network.streams[0].paths[0].clone();
        let network = &mut config.network;
        let hops = network.wiring().hops(0, &whole).expect("it is a path");
        let on_path = |at| hops.iter().any(|[_, end]| end.node() == Place::Bridge(at));
        network.bridge_outages.retain(|outage| !on_path(outage.bridge));
        whole.iter().for_each(|at| network.cables[*at].faults = Default::default());
        let (report, _) = observed(&config);
        let stream = report.stream(id).expect("it is there");
        prop_assert_eq!((stream.arrived(), stream.lost()), (stream.sent, 0));
    }
}
