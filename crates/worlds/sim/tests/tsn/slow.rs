//! A slow model of strict priority in networks with multicast streams, compared to the picosecond.

use super::*;
use proptest::prelude::*;
use sim::ethernet::frame::{GAP, PREAMBLE, TAG};
use sim::network::{CableEnd, Listener};
use std::collections::{BTreeMap, BTreeSet};

const RATE: Rate = Rate::G1;
const PROPAGATION: Duration = Duration::from_ns(50);
const DELAY: Duration = Duration::from_ns(1_700);

/// A copy of a frame that waits at a port.
struct Waiting {
    class: u8,
    since: Instant,
    /// Station, number of the stream and of the frame.
    frame: (usize, usize, u64),
    length: usize,
}

/// Calculates when each frame arrives at each listener: again and again the transmission that
/// begins first, of all ports.
fn arrivals(config: &Config) -> BTreeMap<(usize, usize, u64, usize), Instant> {
    let wiring = config.network.wiring();
    let until = Instant::ZERO + config.runtime.expect("it has one");
    let mut ports: BTreeMap<CableEnd, (Instant, Vec<Waiting>)> = BTreeMap::new();
    let mut trees: BTreeMap<(usize, usize), BTreeSet<CableEnd>> = BTreeMap::new();
    for (station, sender) in config.network.stations.iter().enumerate() {
        for (number, traffic) in sender.traffic.iter().enumerate() {
            let hops =
                traffic.listeners.iter().flat_map(|to| wiring.route(station, to).expect("one"));
            let tree: BTreeSet<CableEnd> = hops.map(|[sent, _]| sent).collect();
            let first: Vec<_> =
                tree.iter().copied().filter(|end| end.node() == Place::Station(station)).collect();
            trees.insert((station, number), tree);
            let (mut at, mut count) = (traffic.start, 0);
            while at < until {
                for port in &first {
                    let class = traffic.priority;
                    let waiting = Waiting {
                        class,
                        since: at,
                        frame: (station, number, count),
                        length: traffic.length + TAG,
                    };
                    ports.entry(*port).or_default().1.push(waiting);
                }
                (at, count) = (at + traffic.pattern.interval(), count + 1);
            }
        }
    }
    let mut arrived = BTreeMap::new();
    loop {
        let starts = ports.iter().filter_map(|(end, (free, waiting))| {
            let first = waiting.iter().map(|one| one.since).min()?;
            Some((first.max(*free), *end))
        });
        let Some((start, end)) = starts.min() else { return arrived };
        let (free, waiting) = ports.get_mut(&end).expect("it is there");
        let ready = (0..waiting.len()).filter(|at| waiting[*at].since <= start);
        let next =
            ready.min_by_key(|at| (std::cmp::Reverse(waiting[*at].class), waiting[*at].since));
        let Waiting { class, frame, length, .. } = waiting.remove(next.expect("one is ready"));
        let ends = start + RATE.duration(PREAMBLE + length);
        *free = ends + RATE.duration(GAP);
        let received = ends + PROPAGATION;
        let other = wiring.across(end).expect("a cable").1;
        match other.node() {
            Place::Station(station) => {
                arrived.insert((frame.0, frame.1, frame.2, station), received);
            }
            node @ Place::Bridge(_) => {
                for port in trees[&(frame.0, frame.1)]
                    .iter()
                    .filter(|end| end.node() == node && **end != other)
                {
                    let since = received + DELAY;
                    ports.entry(*port).or_default().1.push(Waiting { class, since, frame, length });
                }
            }
        }
    }
}

/// A stream: sender, listeners, priority, interval and start in nanoseconds, length.
type AnyStream = (usize, Vec<usize>, u8, u64, u64, usize);

prop_compose! {
    /// A mesh of bridges with a station at each. Streams use shortest paths or the tree.
    fn any_config()(
        bridges in 2..6_usize,
        more in prop::collection::vec(any::<[usize; 2]>(), 0..4),
        streams in prop::collection::vec(
            (0..6_usize, prop::collection::vec(0..5_usize, 1..4), 0..8_u8, 20_000..90_000_u64, 1..90_000_u64, 64..1_500_usize),
            1..7,
        ),
        shortest in any::<bool>(),
    ) -> Config {
        let mut tree = Tree::new(RATE, PROPAGATION);
        let stations: Vec<Place> = (0..bridges).map(|_| tree.station()).collect();
        let mut make = || tree.bridge(bridge::Mode::StoreAndForward, DELAY);
        let nodes: Vec<Place> = (0..bridges).map(|_| make()).collect();
        for at in 0..bridges {
            tree.link(stations[at], nodes[at]);
            if at > 0 {
                tree.link(nodes[at - 1], nodes[at]);
            }
        }
        for [a, b] in more.iter().map(|ends| ends.map(|end| end % bridges)) {
            if a != b {
                tree.link(nodes[a], nodes[b]);
            }
        }
        for (from, to, priority, interval, start, length) in &streams as &Vec<AnyStream> {
            let from = from % bridges;
            let to: BTreeSet<usize> = to.iter().map(|to| (from + 1 + to % (bridges - 1)) % bridges).collect();
            let wiring = tree.network().wiring();
            let paths = wiring.shortest(from);
            let listener = |to: usize| Listener { path: shortest.then(|| paths.to(to).expect("one")), ..Listener::new(to) };
            let listeners = to.into_iter().map(listener).collect();
            let pattern = Pattern::Periodic(Duration::from_ns(*interval));
            let start = Instant::from_ns(*start);
            let stream = TrafficConfig { listeners, start, ..TrafficConfig::new(0, *length, *priority, pattern) };
            tree.stream(stations[from], stream);
        }
        config(&mut tree, Duration::from_us(400))
    }
}

proptest! {
    #[test]
    fn multicast_streams_arrive_as_the_slow_model_says(config in any_config()) {
        let (report, seen) = observed(&config);
        let wanted = arrivals(&config);
        let mut count = 0;
        for ((at, frame), listener) in seen.arrived.iter().zip(&seen.listeners) {
            let stream = StreamId::of_frame(frame.id).expect("of a stream");
            let number = frame.id - stream.first_frame();
            let key = (usize::from(stream.station), usize::from(stream.number), number, *listener);
            prop_assert_eq!(wanted.get(&key), Some(at), "{:?}", key);
            count += 1;
        }
        let within = wanted.values().filter(|at| **at < report.time).count();
        prop_assert!(count >= within, "{} of {}", count, within);
    }
}
