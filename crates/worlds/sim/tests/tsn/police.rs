//! Filters, stream gates and meters at a bridge.

use super::redundancy::ms;
use super::*;
use sim::ethernet::Tag;
use sim::ethernet::streams::Identification;
use sim::network::{StreamConfig, mac};
use tsn::Clock;
use tsn::psfp::{self, Counters, GateConfig, GateEntry, MeterConfig, Reason};

/// Two talkers and a listener at one bridge of 100 Mb/s. The good stream sends 200 bytes every
/// 1 ms, the bad stream 1500 bytes every `babble`, both with priority 5.
fn star(babble: Duration) -> (Tree, [StreamId; 2]) {
    let mut tree = Tree::new(Rate::M100, Duration::from_ns(50));
    let stations: Vec<Place> = (0..3).map(|_| tree.station()).collect();
    let bridge = tree.bridge(bridge::Mode::StoreAndForward, Duration::from_us(2));
    stations.iter().for_each(|station| {
        tree.link(*station, bridge);
    });
    let good = TrafficConfig::new(2, 200, 5, Pattern::Periodic(Duration::from_ms(1)));
    let good = TrafficConfig { start: Instant::from_ns(60_000), ..good };
    let bad = TrafficConfig::new(2, 1_500, 5, Pattern::Periodic(babble));
    let ids = [tree.stream(stations[0], good), tree.stream(stations[1], bad)];
    (tree, ids)
}

/// All frames that station 1 sends, with a filter at the bridge.
fn filtered(filter: psfp::Config) -> StreamConfig {
    StreamConfig {
        identification: Identification::Source { source: mac(1), vlan: Some(1) },
        from: 1,
        to: Vec::new(),
        paths: Vec::new(),
        eliminate: Vec::new(),
        numbers: Place::Station(1),
        filters: vec![(0, filter)],
    }
}

fn run(babble_us: u64, streams: Vec<StreamConfig>) -> (Report, [u64; 2], Option<Counters>) {
    let (mut tree, ids) = star(Duration::from_us(babble_us));
    tree.network().streams = streams;
    let (report, _) = observed(&config(&mut tree, Duration::from_ms(100)));
    let arrived = ids.map(|id| report.stream(id).expect("it is there").arrived());
    let counters = report.handled.first().and_then(|handled| handled.counters.filter);
    (report, arrived, counters)
}

/// The longest latency of the good stream, in microseconds.
fn worst(report: &Report) -> u64 {
    report.streams[0].latency().summary().max_ns / 1_000
}

/// 1500 bytes every 122 us are 98 Mb/s. The meter passes 20 Mb/s.
#[test]
fn a_meter_cuts_a_babbling_talker_to_its_rate() {
    let (report, _, none) = run(122, vec![]);
    assert_eq!(none, None);
    let unpoliced = worst(&report);
    let meter = MeterConfig { cir: 20_000_000, cbs: 1_504, ..MeterConfig::default() };
    let (report, [good, bad], counters) =
        run(122, vec![filtered(psfp::Config { meter: Some(meter), ..Default::default() })]);
    // A frame of 1504 bytes with the tag needs 601.6 us at 20 Mb/s. With a frame every 122 us,
    // every fifth one passes.
    assert_eq!((good, bad), (100, 164));
    let counters = counters.expect("it filters");
    assert_eq!(counters.matching, 820 - 1, "one is on the way");
    assert_eq!(counters.red, counters.dropped);
    assert_eq!(counters.matching - counters.red, 164);
    assert!(worst(&report) < unpoliced, "{} of {unpoliced} us", worst(&report));
}

/// The first frame beyond the burst blocks the stream permanently.
#[test]
fn meter_with_mark_all_red_blocks_stream_for_good() {
    let meter =
        MeterConfig { cir: 20_000_000, cbs: 3_008, mark_all_red: true, ..MeterConfig::default() };
    let (_, [good, bad], counters) =
        run(122, vec![filtered(psfp::Config { meter: Some(meter), ..Default::default() })]);
    // The burst of 3008 bytes is two frames. In 122 us the bucket gains 305 bytes.
    assert_eq!((good, bad), (100, 2));
    let blocked = counters.expect("it filters").blocked.expect("it is blocked");
    assert_eq!(blocked.0, Reason::Red);
    assert!(blocked.1 < ms(1), "{}", blocked.1);
}

#[test]
fn long_frames_do_not_pass() {
    let (_, [good, bad], counters) =
        run(500, vec![filtered(psfp::Config { max_sdu: Some(1_481), ..Default::default() })]);
    assert_eq!((good, bad), (100, 0));
    assert_eq!(counters.expect("it filters").not_passing_sdu, 200);
    // The SDU has 1500 - 14 - 4 bytes.
    let (_, [_, bad], _) =
        run(500, vec![filtered(psfp::Config { max_sdu: Some(1_482), ..Default::default() })]);
    assert_eq!(bad, 200);
}

/// An internal priority selects another queue and does not change the tag.
#[test]
fn a_stream_gate_gives_another_priority() {
    let entry =
        GateEntry { open: true, ipv: Some(1), interval: Duration::from_ms(1), octets: None };
    let gate = GateConfig {
        base: Instant::ZERO,
        cycle: Duration::from_ms(1),
        entries: vec![entry],
        close_on_invalid: false,
        close_on_excess: false,
        clock: Clock::default(),
    };
    let (mut tree, _) = star(Duration::from_us(122));
    tree.network().streams =
        vec![filtered(psfp::Config { gate: Some(gate), ..Default::default() })];
    let (report, seen) = observed(&config(&mut tree, Duration::from_ms(100)));
    // A good frame waits for at most one frame of 1504 bytes with preamble and gap: 121.92 us.
    let plain = 2 * (200 + 4 + 8) * 80 + 2 * 50 + 2_000;
    assert!(report.streams[0].latency().summary().max_ns <= plain + 121_920);
    let tags = seen.sent.iter().filter_map(|sent| sent.frame.frame.tag);
    assert!(tags.clone().count() > 100 && tags.into_iter().all(|Tag { pcp, .. }| pcp == 5));
}

/// A stream gate is closed half of the time. One talker sends only while it is open, another does
/// not.
#[test]
fn a_stream_gate_is_closed_outside_of_its_window() {
    let entry =
        |open| GateEntry { open, ipv: None, interval: Duration::from_us(500), octets: None };
    let gate = GateConfig {
        base: Instant::ZERO,
        cycle: Duration::from_ms(1),
        entries: vec![entry(true), entry(false)],
        close_on_invalid: true,
        close_on_excess: false,
        clock: Clock::default(),
    };
    let filter = |gate| vec![filtered(psfp::Config { gate: Some(gate), ..Default::default() })];
    let (_, [_, bad], counters) = run(1_000, filter(gate.clone()));
    assert_eq!((bad, counters.expect("it filters").blocked), (100, None));
    // With an interval of 400 us frames come at 0.12 and 0.52 ms. The second frame closes the gate
    // permanently.
    let (_, [_, bad], counters) = run(400, filter(gate));
    let blocked = counters.expect("it filters").blocked.map(|(reason, _)| reason);
    assert_eq!((bad, blocked), (1, Some(Reason::GateClosed)));
}
