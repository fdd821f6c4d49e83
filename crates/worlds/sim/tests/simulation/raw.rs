//! Links over raw Ethernet.

use crate::simulation::worlds::*;
use sim::ethernet::port::{Algorithm, Ats, Committed, Counted};
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;

fn plan(rw: Rw, rate: Rate, congestion: &str) -> Config {
    let stations = vec![station(rate); 2];
    let port = (raw([0, 1], congestion), drive(0, Timing::NULL));
    let host = host(Workload::Fio(fio(rw, 4096, 8)), vec![port]);
    config(vec![host], bridged(stations, 1, bridge::Mode::StoreAndForward, None))
}

#[test]
fn reads_and_writes_pass() {
    for rw in [Rw::RandRead, Rw::RandWrite] {
        for congestion in ["none", "swift", "swift=40us", "rate=5G"] {
            let (report, world) = twice(&plan(rw, Rate::G10, congestion));
            assert_eq!(world.retransmitted(), 0, "{congestion}: nothing was lost");
            assert_eq!(report.hosts[0].breakdown.get(Stage::Tcp), Duration::ZERO);
        }
    }
}

#[test]
fn configuration_read_takes_time_of_its_way() {
    let reads = Workload::ConfigReads { count: 10, gap: Duration::from_us(5) };
    let mut plan = plan(Rw::Read, Rate::G1, "none");
    plan.hosts[0].workload = reads;
    let report = run(&plan);
    let least = report.hosts[0].config_reads.summary().min_ns;
    // Two lines in each direction: preamble, Ethernet with tag, raw header, tunnel frame, TLP.
    let bytes = [12, 16].map(|tlp| (8 + 22 + 12 + 12 + tlp).max(72));
    let line: u64 = bytes.iter().map(|bytes| 2 * Rate::G1.duration(*bytes).as_ns()).sum();
    let models = 4 * 300 + 2 * 1_500 + 4 * 50;
    let pcie = 4 * 100 + 4 * 134 + 2 * 130;
    assert!((line + models..line + models + 2 * pcie).contains(&least), "{least} {line}");
}

/// Raw Ethernet recovers from loss, corruption and a cut shorter than the loss limit.
#[test]
fn lost_raw_frames_are_sent_again() {
    for congestion in ["none", "swift=60us", "rate=2G"] {
        let mut plan = plan(Rw::RandRw, Rate::G10, congestion);
        let faults = Faults {
            seed: 0,
            loss: PERCENT,
            corruption: PERCENT,
            delay: PERCENT,
            delay_up_to: Duration::from_us(30),
            cuts: vec![(ms(3), ms(5))],
            ..Faults::default()
        };
        spoil(&mut plan.network, faults);
        let work = jobs(&mut plan);
        (work.runtime, work.time_based) = (Some(Duration::from_ms(6)), true);
        let (report, world) = twice(&plan);
        assert!(world.retransmitted() > 20, "{}", world.retransmitted());
        assert!(report.hosts[0].breakdown.get(Stage::Carrier) > Duration::ZERO);
    }
}

/// On a slow line, doorbells have a much shorter round trip than data. Data must not time out
/// because of this, and the timeouts must not reduce Swift's window. Otherwise reads of drives
/// would time out.
#[test]
fn data_after_doorbells_on_a_slow_line_is_sent_once() {
    let mut station = station(Rate::M100);
    (station.tx_ring, station.ack_delay) = (3, Some(Duration::from_us(27)));
    let work = Fio { numjobs: 2, size: 12 << 16, ..Fio::new(Rw::Rw, 64 << 10, 3) };
    let ports = vec![(raw([0, 1], "swift"), drive(0, Timing::SAMSUNG_970_PRO))];
    let host = host(Workload::Fio(work), ports);
    let network = bridged(vec![station; 2], 2, bridge::Mode::StoreAndForward, None);
    let (report, world) = twice(&config(vec![host], network));
    assert_eq!(report.hosts[0].latency.count(), 24);
    assert!(world.retransmitted() < 30, "{}", world.retransmitted());
    check_errors(&world);
}

/// Several links of one host, two of them to one station.
#[test]
fn links_of_one_station_are_told_apart() {
    let stations = vec![station(Rate::G10); 3];
    let ports = [1, 1, 2].into_iter().enumerate();
    let ports = ports.map(|(n, at)| (raw([0, at], "swift=50us"), drive(n, Timing::NULL)));
    let work = Fio { stripe: 4096, ..fio(Rw::RandRw, 4096, 4) };
    let host = host(Workload::Fio(work), ports.collect());
    let network = bridged(stations, 2, bridge::Mode::CutThrough, None);
    let report = run(&config(vec![host], network));
    check(&report);
    let carried = report.tunnels.iter().filter(|tunnel| tunnel.tlps > 20).count();
    assert_eq!(carried, 6, "{:?}", report.tunnels);
}

/// Frames of the tunnel leave only in their window, also with background traffic.
#[test]
fn gates_hold_for_raw_frames() {
    let mut plan = plan(Rw::Read, Rate::G1, "none");
    jobs(&mut plan).iodepth = 1;
    let open = run(&plan);
    let ports = plan.network.bridges[0].ports.iter_mut();
    let gates = gates(Duration::from_us(200), Duration::from_us(500));
    ports.for_each(|port| port.gates = Some(gates.clone()));
    let gated = run(&plan);
    [&open, &gated].into_iter().for_each(check);
    assert_eq!(open.hosts[0].breakdown.get(Stage::GateWait), Duration::ZERO);
    assert!(gated.hosts[0].breakdown.get(Stage::GateWait) > Duration::ZERO);
}

/// A rate limit of raw Ethernet includes headers and gaps on the wire.
#[test]
fn a_rate_limit_holds_on_the_wire() {
    let mut plan = plan(Rw::Read, Rate::G10, "rate=2G");
    (jobs(&mut plan).bs, jobs(&mut plan).size) = (64 << 10, 2 << 20);
    let report = run(&plan);
    check(&report);
    let up = report.links.iter().find(|link| link.name == "station 1 to bridge 0 port 1");
    let up = up.expect("the device's cable").load;
    let bits = (up.bytes + 12 * up.packets) * 8;
    let rate = bits as f64 / (report.hosts[0].span.as_ns() as f64 / 1e9);
    assert!((1.8e9..=2.02e9).contains(&rate), "{rate}");
}

/// A node loses its power and returns. The connection gets another number, and the workload
/// continues.
#[test]
fn a_node_that_was_away_comes_back() {
    let mut plan = plan(Rw::RandRead, Rate::G10, "swift=60us");
    let work = jobs(&mut plan);
    (work.runtime, work.time_based, work.iodepth) = (Some(Duration::from_ms(300)), true, 1);
    plan.outages = vec![Outage { station: 1, from: ms(20), until: Some(ms(40)) }];
    let report = run(&plan);
    let host = &report.hosts[0];
    assert_eq!(host.mismatches, 0);
    assert!(host.failures > 0, "commands under way have failed");
    assert!(host.latency.count() > 100, "{}", host.latency.count());
    assert_eq!(run(&plan).digest, report.digest);
}

/// A tunnel has much more data than its rate of 20 Mb/s. A stream of the same priority stays below
/// its own rate. At the interface and at the bridge the stream waits for at most one tunnel frame
/// of 1542 bytes with preamble and gap. The stream never waits for eligibility, with any ring.
#[test]
fn a_shaped_tunnel_does_not_hold_a_stream_of_its_priority() {
    let committed = Committed { rate: 20_000_000, burst: 8 * 1_542 };
    let (streams, max_residence) = (Vec::new(), None);
    let shaper = Ats { committed, streams, max_residence, counted: Counted::WithGap };
    for tx_ring in [1, 4, 64] {
        let mut plan = plan(Rw::Write, Rate::M100, "none");
        let host = &mut plan.network.stations[0];
        host.tx_ring = tx_ring;
        host.ports[0].classes[usize::from(PRIORITY)].algorithm = Algorithm::Ats(shaper.clone());
        let each = Pattern::Periodic(Duration::from_us(997));
        host.traffic.push(TrafficConfig::new(1, 200, PRIORITY, each));
        let report = run(&plan);
        let longest = report.streams[0].latency().longest();
        // Two lines of 212 bytes, two cables, the interfaces, and the bridge.
        let plain = Duration::from_ns(2 * 212 * 80 + 2 * 50 + 3 * 300 + 1_500);
        let most = plain + Duration::from_ns(2 * 1_542 * 80);
        assert!(longest <= most, "ring {tx_ring}: {longest} > {most}");
        assert!(report.streams[0].sent > 50);
    }
}
