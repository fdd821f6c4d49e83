//! Asynchronous traffic shaping in talkers and bridges, with times calculated by hand.

use super::*;
use sim::ethernet::FrameStage;
use sim::ethernet::port::{Algorithm, Ats, Committed, Counted};
use sim::ethernet::streams::Identification;
use sim::network::{BridgeOutage, StreamConfig, mac};
use tsn::psfp::{self, GateConfig, GateEntry};

/// Bytes of a frame from header to FCS without tag. On a line of 100 Mb/s it takes 8 + 204 + 12
/// bytes of 80 ns.
const LENGTH: usize = 200;
const SLOT_NS: u64 = 224 * 80;

/// The rate of one frame every `interval_us`, with preamble and gap.
fn one_frame_each(interval_us: u64) -> Algorithm {
    let rate = 224 * 8 * 1_000_000 / interval_us;
    Algorithm::Ats(Ats {
        committed: Committed { rate, burst: 224 * 8 },
        streams: Vec::new(),
        max_residence: None,
        counted: Counted::WithGap,
    })
}

/// Ten streams of class 6 on one cable, together with best-effort traffic above the line rate. The
/// first stream sends `burst` frames at once.
fn talker(tx_ring: usize, burst: u32) -> Config {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let way = tree.link(from, to);
    tree.port(way).classes[6].algorithm = one_frame_each(512);
    for number in 0..10 {
        let start = Instant::from_ns(3_000 * number);
        let periodic = Pattern::Periodic(Duration::from_us(512));
        let burst = if number == 0 { burst } else { 1 };
        tree.stream(
            from,
            TrafficConfig { start, burst, ..TrafficConfig::new(1, LENGTH, 6, periodic) },
        );
    }
    tree.stream(from, TrafficConfig::new(1, 1_500, 0, Pattern::Periodic(Duration::from_us(97))));
    tree.network().stations[0].tx_ring = tx_ring;
    config(&mut tree, Duration::from_ms(50))
}

/// When each frame of class 6 arrived.
fn arrivals(seen: &Seen) -> Vec<(u64, Instant)> {
    let express = seen.arrived.iter().filter(|(_, frame)| frame.priority == 6);
    express.map(|(at, frame)| (frame.id, *at)).collect()
}

/// A frame waits for at most one best-effort frame (1524 bytes with preamble and gap) and nine
/// frames of its own class, with any size of the transmit ring.
#[test]
fn conforming_streams_of_a_talker_wait_for_strict_priority_alone_whatever_the_ring() {
    let most = Duration::from_ns(1_524 * 80 + 10 * SLOT_NS - 12 * 80 + 50);
    let (_, unbounded) = observed(&talker(4_096, 1));
    for ring in [1, 2, 4, 9, 10] {
        let (report, seen) = observed(&talker(ring, 1));
        for (_, frame) in seen.arrived.iter().filter(|(_, frame)| frame.priority == 6) {
            assert_eq!(frame.latency.spent(FrameStage::Shaper), Duration::ZERO, "ring {ring}");
            let total = frame.latency.total();
            assert!(total <= most, "ring {ring}: {total} > {most}");
        }
        assert_eq!(arrivals(&seen), arrivals(&unbounded), "ring {ring}");
        assert_eq!(report.streams[0].lost(), 0);
    }
}

/// The first stream sends twice its rate. Its second frame is eligible 512 us after the first, the
/// next pair 1024 us later, with any size of the transmit ring.
#[test]
fn a_stream_above_its_rate_is_shaped_alike_whatever_the_ring() {
    let (_, unbounded) = observed(&talker(4_096, 2));
    let first = arrivals(&unbounded);
    let id = StreamId { station: 0, number: 0 }.first_frame() + 1;
    let second = first.iter().find(|(frame, _)| *frame == id).expect("it arrived");
    let eligible = Instant::from_ns(512_000);
    assert!(second.1 >= eligible + Duration::from_ns(SLOT_NS - 960 + 50));
    for ring in [1, 2, 4, 9] {
        assert_eq!(arrivals(&observed(&talker(ring, 2)).1), first, "ring {ring}");
    }
}

/// The first stream sends eight times its rate and waits. The other streams do not wait for it.
#[test]
fn a_burst_of_a_source_delays_no_other_source_of_the_talker() {
    for ring in [1, 4, 64] {
        let (_, seen) = observed(&talker(ring, 8));
        let mut held = [Duration::ZERO; 10];
        for (_, frame) in seen.arrived.iter().filter(|(_, frame)| frame.priority == 6) {
            let stream = StreamId::of_frame(frame.id).expect("of a stream");
            let held = &mut held[usize::from(stream.number)];
            *held = (*held).max(frame.latency.spent(FrameStage::Shaper));
        }
        assert!(held[0] > Duration::from_ms(10), "{held:?}");
        assert_eq!(held[1..], [Duration::ZERO; 9], "ring {ring}");
    }
}

/// The ports of a bridge to stations 1 and 2 shape classes 5 and 6. Station 0 sends two frames to
/// station 1 at once; the second one is eligible 1 ms after the first. Then station 0 sends a frame
/// to station 2, which belongs to the same group although it leaves by another port.
#[test]
fn frames_of_a_reception_port_and_class_keep_their_order_whatever_port_they_leave_by() {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let stations: Vec<Place> = (0..3).map(|_| tree.station()).collect();
    let bridge = tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    for (number, station) in stations.iter().enumerate() {
        let back = tree.link(*station, bridge) + 1;
        if number > 0 {
            let classes = &mut tree.port(back).classes[5..=6];
            classes.iter_mut().for_each(|class| class.algorithm = one_frame_each(1_000));
        }
    }
    let mut stream = |from: usize, to, priority, at_us: u64, burst| {
        let once = Pattern::Periodic(Duration::from_ms(100));
        let start = Instant::from_ns(at_us * 1_000);
        let stream = TrafficConfig::new(to, LENGTH, priority, once);
        tree.stream(stations[from], TrafficConfig { start, burst, ..stream })
    };
    let pair = stream(0, 1, 6, 0, 2);
    let same_group = stream(0, 2, 6, 100, 1);
    let other_class = stream(0, 2, 5, 200, 1);
    let other_port = stream(1, 2, 6, 300, 1);
    let (_, seen) = observed(&config(&mut tree, Duration::from_ms(10)));
    let latencies = |stream: StreamId| -> Vec<u64> {
        let own = |frame: &&Frame| StreamId::of_frame(frame.id) == Some(stream);
        let frames = seen.arrived.iter().map(|(_, frame)| frame).filter(own);
        frames.map(|frame| frame.latency.total().as_ns()).collect()
    };
    // A line takes 8 + 204 bytes and the cable. A frame passes two lines and the bridge.
    let line = 212 * 80 + 50;
    assert_eq!(latencies(other_class), [2 * line + 2_000]);
    assert_eq!(latencies(other_port), [2 * line + 2_000]);
    // The second frame is eligible 1 ms after the arrival of the first frame.
    assert_eq!(latencies(pair), [2 * line + 2_000, line + 1_000_000 + line]);
    assert_eq!(latencies(same_group), [line + 1_000_000 + line - 100_000]);
}

/// Eight frames come at once, each eligible 5 ms after the previous one. The bridge has no power
/// from 1 to 2 ms. The next frame, at 10 ms, does not wait for the schedule of the eight frames.
#[test]
fn schedulers_of_a_bridge_forget_what_they_admitted_without_power() {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let (from, to) = (tree.station(), tree.station());
    let bridge = tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    tree.link(from, bridge);
    let out = tree.link(bridge, to);
    tree.port(out).classes[6].algorithm = one_frame_each(5_000);
    let periodic = Pattern::Periodic(Duration::from_ms(10));
    let stream = TrafficConfig { burst: 8, ..TrafficConfig::new(1, LENGTH, 6, periodic) };
    let stream = tree.stream(from, stream);
    let [off, on] = [1_000_000, 2_000_000].map(Instant::from_ns);
    tree.network().bridge_outages = vec![BridgeOutage { bridge: 0, from: off, until: Some(on) }];
    let (report, seen) = observed(&config(&mut tree, Duration::from_ms(15)));
    assert_eq!(report.streams[0].lost(), 7);
    let ninth = seen.arrived.iter().find(|(_, frame)| frame.id == stream.first_frame() + 8);
    let (_, ninth) = ninth.expect("it arrived");
    assert_eq!(ninth.latency.total(), Duration::from_ns(2 * (212 * 80 + 50) + 2_000));
}

/// A stream gate at the first of two bridges sets the internal priority 5 for frames of priority 6.
/// Therefore they leave the bridge in class 5, like frames of priority 5, and both belong to one
/// group at the second bridge. There the second frame of priority 6 is eligible 1 ms after the
/// first. A frame of priority 5 that arrives 100 us later is not eligible earlier.
#[test]
fn groups_go_by_the_class_that_an_internal_priority_gave() {
    let entry =
        GateEntry { open: true, ipv: Some(5), interval: Duration::from_ms(1), octets: None };
    let gate = GateConfig {
        base: Instant::ZERO,
        cycle: Duration::from_ms(1),
        entries: vec![entry],
        close_on_invalid: false,
        close_on_excess: false,
        clock: tsn::Clock::default(),
    };
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let stations: Vec<Place> = (0..3).map(|_| tree.station()).collect();
    let mut bridge = || tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    let [first, second] = [bridge(), bridge()];
    tree.link(stations[0], first);
    tree.link(stations[1], first);
    tree.link(first, second);
    let out = tree.link(second, stations[2]);
    let classes = &mut tree.port(out).classes[5..=6];
    classes.iter_mut().for_each(|class| class.algorithm = one_frame_each(1_000));
    let mut stream = |from: usize, priority, at_us: u64, burst| {
        let once = Pattern::Periodic(Duration::from_ms(100));
        let start = Instant::from_ns(at_us * 1_000);
        let stream = TrafficConfig::new(2, LENGTH, priority, once);
        tree.stream(stations[from], TrafficConfig { start, burst, ..stream });
    };
    stream(0, 6, 0, 2);
    stream(1, 5, 100, 1);
    tree.network().streams = vec![StreamConfig {
        identification: Identification::Source { source: mac(0), vlan: Some(1) },
        from: 0,
        to: Vec::new(),
        paths: Vec::new(),
        eliminate: Vec::new(),
        numbers: Place::Station(0),
        filters: vec![(0, psfp::Config { gate: Some(gate), ..psfp::Config::default() })],
    }];
    let (report, _) = observed(&config(&mut tree, Duration::from_ms(10)));
    // A line takes the frame and the cable. There are two to the second bridge, and one after it.
    let line = 212 * 80 + 50;
    let first_there = 2 * line + 2_000;
    // Both frames are eligible 1 ms after the first frame arrived. The frame of class 6 leaves
    // first; the other one follows after a gap.
    let last = first_there + 1_000_000 + line;
    assert_eq!(report.streams[0].latency().summary().max_ns, last);
    assert_eq!(report.streams[1].latency().summary().max_ns, last + SLOT_NS - 100_000);
}
