//! Replication and elimination over two paths, with counts calculated by hand.

use super::*;
use sim::ethernet::streams::{Identification, Recover};
use sim::network::{BridgeOutage, Handled, StreamConfig, mac};
use tsn::frer::{Algorithm, Config as Recovery, LatentTest};

/// The VLAN of the stations of a [`Tree`].
const VLAN: Option<u16> = Some(1);

pub fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

pub fn vector(history: u16) -> Recover {
    let algorithm = Algorithm::Vector { history };
    let recovery =
        Recovery { algorithm, reset: Recovery::RESET, take_no_sequence: false, individual: false };
    Recover { recovery, latent: None }
}

/// A stream of all frames from station 0 to station 1, identified by destination, with these paths
/// (numbers of cables) and eliminating nodes.
pub fn stream(paths: Vec<Vec<usize>>, eliminate: Vec<(Place, Recover)>) -> StreamConfig {
    StreamConfig {
        identification: Identification::Null { destination: mac(1), vlan: VLAN },
        from: 0,
        to: vec![1],
        paths,
        eliminate,
        numbers: Place::Station(0),
        filters: Vec::new(),
    }
}

/// Station 0, bridge 0, bridges 1 and 2 in parallel, bridge 3 and station 1, at 100 Mb/s, with a
/// stream of 1000 bytes every millisecond. Also returns the directions from bridge 0 to bridges 1
/// and 2.
pub fn diamond() -> (Tree, StreamId, [usize; 2]) {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let bridges: Vec<Place> =
        (0..4).map(|_| tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2))).collect();
    tree.link(from, bridges[0]);
    let one = tree.link(bridges[0], bridges[1]);
    let two = tree.link(bridges[0], bridges[2]);
    tree.link(bridges[1], bridges[3]);
    tree.link(bridges[2], bridges[3]);
    tree.link(bridges[3], to);
    let periodic = Pattern::Periodic(Duration::from_ms(1));
    let id = tree.stream(from, TrafficConfig::new(1, 1_000, 5, periodic));
    (tree, id, [one, two])
}

/// Both paths of the diamond.
fn both() -> Vec<Vec<usize>> {
    vec![vec![0, 1, 3, 5], vec![0, 2, 4, 5]]
}

fn run(tree: &mut Tree, streams: Vec<StreamConfig>) -> Report {
    tree.network().streams = streams;
    observed(&config(tree, Duration::from_ms(100))).0
}

fn at(report: &Report, place: Place) -> Handled {
    *report.handled.iter().find(|handled| handled.place == place).expect("it handles the stream")
}

fn counts(report: &Report, id: StreamId) -> [u64; 4] {
    let stream = report.stream(id).expect("it is there");
    [stream.sent, stream.arrived(), stream.lost(), stream.sum(|listener| listener.duplicates)]
}

/// As in INET's showcase framereplication, a bridge is down from 20 to 80 of 100 ms, and no frame
/// is lost.
#[test]
fn a_bridge_dies_and_nothing_is_lost() {
    for eliminator in [Place::Bridge(3), Place::Station(1)] {
        let (mut tree, id, _) = diamond();
        let outage = BridgeOutage { bridge: 1, from: ms(20), until: Some(ms(80)) };
        tree.network().bridge_outages = vec![outage];
        let report = run(&mut tree, vec![stream(both(), vec![(eliminator, vector(8))])]);
        assert_eq!(counts(&report, id), [100, 100, 0, 0], "{eliminator}");
        let recovery = at(&report, eliminator).counters.recovery.expect("it eliminates");
        // Frames 20 to 79 arrive once, all others twice.
        assert_eq!((recovery.passed, recovery.discarded), (100, 40));
        assert_eq!((recovery.rogue, recovery.out_of_order, recovery.resets), (0, 0, 0));
        assert_eq!(at(&report, Place::Station(0)).counters.numbered, 100);
        let split = at(&report, Place::Bridge(0)).counters;
        assert_eq!((split.copies, split.recovery), (100, None));
    }
    // With one path, all frames during the outage are lost.
    let (mut tree, id, _) = diamond();
    tree.network().bridge_outages =
        vec![BridgeOutage { bridge: 1, from: ms(20), until: Some(ms(80)) }];
    let report = run(&mut tree, vec![]);
    assert_eq!(counts(&report, id), [100, 40, 60, 0], "the tree leads over bridge 1");
}

/// The R-TAG has 6 bytes on every line except the last one, because the bridge removes the R-TAG.
#[test]
fn the_tag_takes_its_bytes_from_the_line() {
    // Four lines with 1012 bytes at 80 ns (preamble 8, frame 1000, VLAN tag 4), four cables, three
    // bridges.
    let plain = 4 * 1_012 * 80 + 4 * 50 + 3 * 2_000;
    for (eliminator, lines) in [(Place::Bridge(3), 3), (Place::Station(1), 4)] {
        let (mut tree, id, _) = diamond();
        let report = run(&mut tree, vec![stream(both(), vec![(eliminator, vector(2))])]);
        let latency = report.stream(id).expect("it is there").latency().summary();
        assert_eq!(latency.min_ns, plain + lines * 6 * 80, "{eliminator}");
    }
    let (mut tree, id, _) = diamond();
    let report = run(&mut tree, vec![]);
    assert_eq!(report.stream(id).expect("it is there").latency().summary().min_ns, plain);
}

#[test]
fn without_elimination_every_frame_arrives_twice() {
    let (mut tree, id, _) = diamond();
    let report = run(&mut tree, vec![stream(both(), vec![])]);
    assert_eq!(counts(&report, id), [100, 100, 0, 100]);
    let numbers = |handled: &Handled| handled.counters.numbered > 0;
    assert!(!report.handled.iter().any(numbers), "nobody needs numbers");
}

/// Bridge 0 numbers the frames instead of the station. After a restart the bridge begins at 0
/// again. The eliminating bridge discards these numbers as old until its reset timer expires.
#[test]
fn restart_of_sequence_generator_costs_the_reset_time() {
    let (mut tree, id, _) = diamond();
    tree.network().bridge_outages =
        vec![BridgeOutage { bridge: 0, from: ms(40), until: Some(ms(41)) }];
    let mut recover = vector(4);
    recover.recovery.reset = Duration::from_ms(10);
    let numbers = Place::Bridge(0);
    let stream = StreamConfig { numbers, ..stream(both(), vec![(Place::Bridge(3), recover)]) };
    let report = run(&mut tree, vec![stream]);
    let recovery = at(&report, Place::Bridge(3)).counters.recovery.expect("it eliminates");
    // Frame 39 has the number 39, and frame 40 is lost in the outage. Frames 41 to 48 have the
    // numbers 0 to 7; each is rogue twice. Frame 49 comes 10 ms after 39, when the timer expires.
    assert_eq!((recovery.resets, recovery.rogue), (1, 2 * 8));
    let [sent, arrived, lost, _] = counts(&report, id);
    assert_eq!((sent, arrived, lost), (100, 91, 9));
}

/// Latent error detection finds a broken path although no frame is lost.
#[test]
fn latent_errors_are_found() {
    for (broken, errors) in [(false, 0), (true, 4)] {
        let (mut tree, id, [one, _]) = diamond();
        if broken {
            tree.network().cables[one / 2].faults[0].cuts = vec![(ms(50), ms(1_000))];
        }
        let mut recover = vector(4);
        let (period, reset_period) = (Duration::from_ms(10), Duration::from_ms(1_000));
        // At 60 ms 10 copies are missing, which is not above 10. At 70, 80, 90 and 100 ms more are
        // missing.
        recover.latent = Some(LatentTest { paths: 2, difference: 10, period, reset_period });
        let report = run(&mut tree, vec![stream(both(), vec![(Place::Bridge(3), recover)])]);
        assert_eq!(at(&report, Place::Bridge(3)).counters.latent_errors, errors);
        assert_eq!(counts(&report, id)[2], 0);
    }
}

/// The shorter path loses a frame, whose copy arrives after a later frame.
#[test]
fn a_lost_copy_on_the_faster_path_reorders() {
    let (mut tree, id, [one, two]) = diamond();
    // The second path is longer by 2.5 intervals.
    tree.network().cables[two / 2].propagation = Duration::from_us(2_500);
    tree.network().cables[one / 2].faults[0].cuts = vec![(ms(30), ms(31))];
    let report = run(&mut tree, vec![stream(both(), vec![(Place::Bridge(3), vector(8))])]);
    let recovery = at(&report, Place::Bridge(3)).counters.recovery.expect("it eliminates");
    // Frame 31 comes before frame 30, so both are out of order.
    assert_eq!(recovery.out_of_order, 2);
    let counts = report.stream(id).expect("it is there");
    assert_eq!((counts.lost(), counts.sum(|listener| listener.overtaken)), (0, 1));
    // With the default history of 2, frame 31 and all later frames of the faster path are rogue.
    // From then on all frames come from the slower path.
    let report = run(&mut tree, vec![stream(both(), vec![(Place::Bridge(3), vector(2))])]);
    let recovery = at(&report, Place::Bridge(3)).counters.recovery.expect("it eliminates");
    // The late copies of 0 to 27 are also rogue, because they are two numbers old. The copy of 28
    // is only one number old.
    assert_eq!((recovery.rogue, recovery.out_of_order), (28 + 69, 0));
    let latency = report.stream(id).expect("it is there").latency().summary();
    assert!(latency.max_ns > latency.min_ns + 2_400_000);
}

/// Frames that belong to no stream use the tree, even with an unknown destination, and do not
/// circulate.
#[test]
fn frames_of_no_stream_use_the_tree() {
    let (mut tree, _, [one, two]) = diamond();
    assert_eq!(tree.network().wiring().spanning(), [true, true, true, true, false, true]);
    let (_, seen) = observed(&config(&mut tree, Duration::from_ms(10)));
    let on = |wire: usize| seen.sent.iter().filter(|sent| sent.wire == wire).count();
    assert_eq!((on(one), on(two)), (10, 0));
}

#[test]
fn streams_that_cannot_be_are_refused() {
    let (mut tree, ..) = diamond();
    let mut error = |stream: StreamConfig| stream.check(&tree.network().wiring()).unwrap_err();
    let plain = |paths, eliminate| stream(paths, eliminate);
    assert_eq!(error(plain(vec![vec![0, 5]], vec![])), "cable 5 does not begin at bridge 0");
    assert_eq!(error(plain(vec![vec![0, 1]], vec![])), "a path does not lead to a destination");
    assert_eq!(
        error(plain(both(), vec![(Place::Station(0), vector(2))])),
        "station 0 eliminates duplicates, but is on no path of the stream"
    );
    assert_eq!(
        error(plain(both(), vec![(Place::Bridge(3), vector(1))])),
        "invalid history of '1' numbers: expected 2 to 32768"
    );
    let numbers = Place::Bridge(1);
    let eliminate = vec![(Place::Bridge(3), vector(2))];
    assert_eq!(
        error(StreamConfig { numbers, ..plain(both(), eliminate) }),
        "bridge 1 numbers the frames, but is not on every path"
    );
    assert_eq!(error(plain(vec![vec![0, 1, 1, 2, 4, 5]], vec![])), "a path passes a bridge twice");
}

/// Three paths form a loop: 1 to 2, 2 to 4, 4 to 1.
#[test]
fn a_circle_needs_a_bridge_that_ends_it() {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let make = |tree: &mut Tree| tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    let bridges: Vec<Place> = (0..6).map(|_| make(&mut tree)).collect();
    tree.link(from, bridges[0]);
    for (a, b) in [(0, 1), (0, 2), (0, 4), (1, 2), (2, 4), (4, 1), (1, 5), (2, 5), (4, 5)] {
        tree.link(bridges[a], bridges[b]);
    }
    tree.link(bridges[5], to);
    let periodic = Pattern::Periodic(Duration::from_ms(1));
    let id = tree.stream(from, TrafficConfig::new(1, 100, 5, periodic));
    // Bridge 3 is on no path.
    tree.link(bridges[3], bridges[5]);
    let paths = vec![vec![0, 1, 4, 5, 9, 10], vec![0, 2, 5, 6, 7, 10], vec![0, 3, 6, 4, 8, 10]];
    let listener = (Place::Station(1), vector(8));
    let circle = "its paths together are a circle in which no bridge eliminates by vector";
    let alone = stream(paths.clone(), vec![listener]);
    assert_eq!(alone.check(&tree.network().wiring()).unwrap_err(), circle);
    let mut matching = vector(8);
    matching.recovery.algorithm = Algorithm::Match;
    let by_match = stream(paths.clone(), vec![listener, (Place::Bridge(2), matching)]);
    assert_eq!(by_match.check(&tree.network().wiring()).unwrap_err(), circle);
    let report = run(&mut tree, vec![stream(paths, vec![listener, (Place::Bridge(2), vector(8))])]);
    assert_eq!(counts(&report, id), [100, 100, 0, 0]);
}

/// The numbers of 70 000 frames wrap once. Their copies come 1 us later, and no number counts as
/// old.
#[test]
fn numbers_wrap_in_a_long_run() {
    let mut tree = Tree::new(Rate::G1, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let bridges: Vec<Place> =
        (0..3).map(|_| tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(1))).collect();
    tree.link(from, bridges[0]);
    tree.link(bridges[0], bridges[1]);
    tree.link(bridges[0], bridges[2]);
    tree.link(bridges[2], bridges[1]);
    tree.link(bridges[1], to);
    let periodic = Pattern::Periodic(Duration::from_us(2));
    let stop = Some(ms(140));
    let id = tree.stream(from, TrafficConfig { stop, ..TrafficConfig::new(1, 64, 5, periodic) });
    let paths = vec![vec![0, 1, 4], vec![0, 2, 3, 4]];
    tree.network().streams = vec![stream(paths, vec![(Place::Bridge(1), vector(8))])];
    let config = config(&mut tree, Duration::from_ms(141));
    let report = World::new(&config).expect("it is right").run().expect("it runs");
    assert_eq!(counts(&report, id), [70_000, 70_000, 0, 0]);
    let recovery = at(&report, Place::Bridge(1)).counters.recovery.expect("it eliminates");
    let found = (recovery.passed, recovery.discarded, recovery.rogue, recovery.out_of_order);
    assert_eq!(found, (70_000, 70_000, 0, 0));
    // The history was empty before the first number.
    assert_eq!((recovery.lost, recovery.lost_before_first), (7, 7));
}
