//! All kinds of topologies: equal digests of two runs, correct data, exact stages.

use crate::simulation::worlds::*;
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;

/// Runs a configuration twice with its seed, and once with another seed.
fn three_times(config: &Config) -> Report {
    let (report, _) = twice(config);
    let other = Config { seed: config.seed + 1, ..config.clone() };
    assert_ne!(run(&other).digest, report.digest, "another seed, another digest");
    report
}

fn mixed() -> Workload {
    Workload::Fio(fio(Rw::RandRw, 4096, 8))
}

#[test]
fn direct() {
    let report = three_times(&Config::nvme_tsn_direct(mixed()));
    assert_eq!(report.hosts[0].commands, 64);
    assert!(report.hosts[0].verified > 0);
    assert_eq!(report.hosts[0].breakdown.get(Stage::Serialisation), Duration::ZERO);
}

#[test]
fn over_a_pipe() {
    three_times(&Config::nvme_tsn_tunnel(mixed(), pipe()));
}

#[test]
fn over_tcp() {
    let report = three_times(&Config::nvme_tsn_tcp(mixed(), Rate::G1));
    assert!(report.hosts[0].breakdown.get(Stage::Nic) > Duration::ZERO);
    assert!(report.tunnels.iter().any(|way| way.tlps > way.frames), "nothing was aggregated");
}

#[test]
fn over_tsn_with_gates_that_close() {
    for mode in [bridge::Mode::StoreAndForward, bridge::Mode::CutThrough] {
        let open = gates(Duration::from_us(300), Duration::from_us(500));
        let network = bridged(vec![station(Rate::G1); 2], 2, mode, Some(open));
        let ports = vec![(tcp([0, 1]), drive(0, Timing::SAMSUNG_970_PRO))];
        let gated = config(vec![host(mixed(), ports.clone())], network);
        let report = three_times(&gated);
        let waits = report.hosts[0].breakdown.get(Stage::GateWait);
        assert!(waits > Duration::from_us(100), "{waits}");
        assert!(report.hosts[0].breakdown.get(Stage::Bridge) > Duration::ZERO);
        let network = bridged(vec![station(Rate::G1); 2], 2, mode, None);
        let free = run(&config(vec![host(mixed(), ports)], network));
        assert_eq!(free.hosts[0].breakdown.get(Stage::GateWait), Duration::ZERO);
        let mean = |report: &Report| report.hosts[0].latency.summary().mean_ns;
        assert!(mean(&free) < mean(&report), "gates cost time");
    }
}

#[test]
fn several_drives_striped() {
    let stations = vec![station(Rate::G10); 3];
    let network = bridged(stations, 1, bridge::Mode::StoreAndForward, None);
    // Two drives on one device node, one on another.
    let ports = [1, 1, 2].into_iter().enumerate();
    let ports = ports.map(|(number, at)| (tcp([0, at]), drive(number, Timing::OPTANE))).collect();
    let work = Fio { numjobs: 2, stripe: 8192, ..fio(Rw::RandRw, 16 << 10, 4) };
    let report = three_times(&config(vec![host(Workload::Fio(work), ports)], network));
    let host = &report.hosts[0];
    assert_eq!(host.latency.count(), 32);
    assert!(host.commands > host.latency.count(), "transfers have parts");
}

#[test]
fn two_hosts_with_drives_of_their_own() {
    let stations = vec![station(Rate::G1); 4];
    let network = bridged(stations, 1, bridge::Mode::StoreAndForward, None);
    let hosts = [(0, 2), (1, 3)].into_iter().enumerate().map(|(number, (near, far))| {
        host(mixed(), vec![(tcp([near, far]), drive(number, Timing::NULL))])
    });
    let report = three_times(&config(hosts.collect(), network));
    assert_eq!(report.hosts.len(), 2);
    assert!(report.hosts.iter().all(|host| host.commands == 64 && host.verified > 0));
}

#[test]
fn loss_is_repaired() {
    let mut plan = Config::nvme_tsn_tcp(mixed(), Rate::G1);
    for faults in &mut plan.network.cables[0].faults {
        faults.loss = Probability::from_ppm(3_000).expect("a probability");
    }
    assert!(twice(&plan).1.retransmitted() > 0, "nothing was lost");
}

/// Background traffic on the same bridge increases latency more with a higher priority.
#[test]
fn background_traffic_costs_by_priority() {
    let mean = |priority: Option<u8>| {
        let mut stations = vec![station(Rate::G1); 3];
        // 700 Mb/s of large frames to the host, in the direction of the data.
        stations[2].traffic.extend(priority.map(|priority| TrafficConfig {
            seed: 3,
            ..TrafficConfig::new(0, 1518, priority, Pattern::Poisson(Duration::from_us(17)))
        }));
        let network = bridged(stations, 1, bridge::Mode::StoreAndForward, None);
        let ports = vec![(tcp([0, 1]), drive(0, Timing::OPTANE))];
        let report = run(&config(vec![host(mixed(), ports)], network));
        check(&report);
        report.hosts[0].latency.summary().mean_ns
    };
    let (alone, low, high) = (mean(None), mean(Some(0)), mean(Some(7)));
    assert!(alone < low && low < high, "{alone} {low} {high}");
}
