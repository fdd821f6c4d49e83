//! Asynchronous shaping over three bridges, compared with the bounds of a paper of ICCT 2020.

use super::star::{CABLE, at};
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::port::{Algorithm, Ats, Committed, Counted};
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::network::{Place, TrafficConfig, Tree};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// A path: name, numbers of sender and receiver from 1, priority, number of flows, interval in ms,
/// and bytes on the line with preamble.
type Path = (&'static str, usize, usize, u8, usize, u64, usize);

const PATHS: [Path; 7] = [
    ("flow_1", 1, 7, 6, 10, 5, 100),
    ("flow_2", 2, 7, 5, 10, 10, 1000),
    ("flow_3", 3, 7, 4, 10, 20, 1500),
    ("flow_4", 4, 6, 5, 5, 10, 1000),
    ("flow_5", 5, 6, 4, 5, 20, 1500),
    ("flow_6", 8, 7, 5, 5, 10, 800),
    ("flow_7", 8, 7, 4, 5, 20, 1200),
];
/// Number of paths with a bound.
const BOUNDED: usize = 5;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let mut tree = Tree::new(Rate::M100, CABLE);
    let stations: Vec<_> = (0..8).map(|_| tree.station()).collect();
    let bridges = [(); 3].map(|()| tree.bridge(Mode::StoreAndForward, Duration::ZERO));
    let homes = [0, 0, 0, 1, 1, 2, 2, 2];
    let links = stations.iter().zip(homes).map(|(station, home)| (*station, bridges[home]));
    let trunks = [(bridges[0], bridges[1]), (bridges[1], bridges[2])];
    let links: Vec<_> = links.chain(trunks).collect();
    let ways: Vec<_> = links.iter().map(|(a, b)| tree.link(*a, *b)).collect();
    let (paths, committed) = add_streams(&mut tree, &stations);
    for way in ways.iter().flat_map(|way| [*way, way + 1]) {
        // Control traffic is shaped only at its source.
        let of_station = way / 2 < stations.len() && way % 2 == 0;
        let classes = if of_station { 4..=6 } else { 4..=5 };
        for class in classes {
            tree.port(way).classes[class].algorithm = Algorithm::Ats(Ats {
                committed: Committed { rate: 8, burst: 8 * 1522 },
                streams: committed.clone(),
                max_residence: None,
                counted: Counted::FrameOnly,
            });
        }
    }
    let names = || PATHS[..BOUNDED].iter().map(|(name, ..)| *name);
    let rows: Vec<&str> = names().collect();
    let observed = lab.rows(&rows).run(&mut tree, RUNTIME)?;
    Ok(names().map(|name| (name, observed.latencies(&paths[name]).max)).collect())
}

const RUNTIME: Duration = Duration::from_ms(100);

/// The streams of each path, and the committed rate and burst of each stream: one frame per
/// interval.
type Streams = (BTreeMap<&'static str, Vec<StreamId>>, Vec<(StreamId, Committed)>);

fn add_streams(tree: &mut Tree, stations: &[Place]) -> Streams {
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    let mut committed = Vec::new();
    for (name, from, to, priority, flows, interval_ms, line) in PATHS {
        let bytes = line - 8;
        let interval = Duration::from_ms(interval_ms);
        let pattern = Pattern::Periodic(interval);
        let stream = TrafficConfig::new(to - 1, bytes - 4, priority, pattern);
        for _ in 0..flows {
            let start = Instant::ZERO + interval;
            let id = tree.stream(stations[from - 1], TrafficConfig { start, ..stream.clone() });
            let burst = 8 * bytes as u64;
            committed.push((id, Committed { rate: burst * 1000 / interval_ms, burst }));
            paths.entry(name).or_default().push(id);
        }
    }
    // Best effort that exceeds the rate of the line.
    let flood = TrafficConfig::new(6, 1518 - 8 - 4, 0, Pattern::Periodic(Duration::from_us(100)));
    tree.stream(stations[0], TrafficConfig { start: at(0.0), ..flood });
    (paths, committed)
}
