//! The run time and the counters of a world without hosts.

use super::*;

/// Two stations with a bridge between them at 100 Mb/s, and a stream of 64 bytes every 1 ms.
fn line(start: Instant) -> (Tree, StreamId) {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let bridge = tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    tree.link(from, bridge);
    tree.link(bridge, to);
    let periodic = Pattern::Periodic(Duration::from_ms(1));
    let stream = TrafficConfig { start, ..TrafficConfig::new(1, 64, 5, periodic) };
    let stream = tree.stream(from, stream);
    (tree, stream)
}

#[test]
fn run_ends_after_runtime_and_counts_frames_under_way() {
    let (mut tree, stream) = line(Instant::ZERO);
    // Frames at 0, 1 and 2 ms, none at the end.
    let runtime = Duration::from_ms(3);
    let (report, seen) = observed(&config(&mut tree, runtime));
    assert_eq!(report.time, Instant::ZERO + runtime);
    let counts = report.stream(stream).expect("it is there");
    assert_eq!((counts.sent, counts.arrived(), counts.lost()), (3, 3, 0));
    assert_eq!(seen.sent.len(), 6);
    assert_eq!(seen.arrived.len(), 3);
    // Two lines of 8 + 64 bytes and 4 of the tag, two cables, and the bridge.
    let expected = Duration::from_ns(2 * 76 * 80 + 2 * 50 + 2_000);
    assert!(seen.arrived.iter().all(|(_, frame)| frame.latency.total() == expected));
    assert!(report.hosts.is_empty() && report.throughput() == 0);
    // The line was busy for 76 bytes each millisecond: 6.08 us.
    assert_eq!(report.links[0].utilisation_ppm, 6_080);
    // This run ends 1 ns after the start of the last frame.
    let (cut, _) = observed(&config(&mut tree, Duration::from_ns(2_000_001)));
    let counts = cut.stream(stream).expect("it is there");
    assert_eq!((counts.sent, counts.arrived(), counts.lost()), (3, 2, 0));
}

/// Up to 1000 frames of a stream wait in the station. The port counts further frames.
#[test]
fn frames_without_room_in_their_station_are_counted_at_its_port() {
    let (mut tree, stream) = line(Instant::ZERO);
    tree.network().stations[0].traffic[0].burst = 1_500;
    let (report, _) = observed(&config(&mut tree, Duration::from_us(900)));
    let counts = report.stream(stream).expect("it is there");
    assert_eq!((counts.sent, counts.lost()), (1_500, 500));
    assert_eq!((report.queues[0].dropped, report.queues[0].offered), (500, counts.sent));
}

#[test]
fn a_world_without_an_end_is_refused() {
    let (mut tree, _) = line(Instant::ZERO);
    let endless = Config { runtime: None, ..config(&mut tree, Duration::from_ms(1)) };
    let none = config(&mut tree, Duration::ZERO);
    for config in [endless, none] {
        let error = World::new(&config).err().expect("it has no end");
        assert_eq!(
            error,
            Error::Config("without hosts, 'runtime' must be set; it must be above 0".into())
        );
    }
}
