//! Topologies for the tests.

use sim::drive::{DriveConfig, Timing};
use sim::ethernet::cable::Faults;
use sim::ethernet::nic::Tagging;
use sim::ethernet::{Rate, bridge, port};
use sim::measure::{CommandRecord, Observer, Point};
use sim::network::{BridgeConfig, CableConfig, CableEnd, NetworkConfig, StationConfig};
use sim::pcie::LinkConfig;
use sim::transport::{PipeConfig, RawConfig, TcpConfig, TransportConfig};
use sim::workload::{Fio, Rw, Workload};
use sim::world::{Attached, HostConfig, PortConfig, Report, SwitchConfig};
use sim::{Config, World};
use stats::random::Probability;
use std::cell::RefCell;
use std::rc::Rc;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// The priority of tunnel traffic where it has one.
pub const PRIORITY: u8 = 3;

pub fn fio(rw: Rw, bs: usize, iodepth: usize) -> Fio {
    Fio { size: 256 << 10, ..Fio::new(rw, bs, iodepth) }
}

pub fn pipe() -> TransportConfig {
    TransportConfig::Pipe(PipeConfig {
        byte: Duration::from_ps(8_000),
        latency: Duration::from_ns(1_000),
        max_packet: 1_460,
        overhead: 78,
        script: None,
    })
}

pub fn tcp(stations: [usize; 2]) -> TransportConfig {
    TransportConfig::Tcp(TcpConfig { stations, priority: PRIORITY, burst: 1_460 })
}

pub fn raw(stations: [usize; 2], congestion: &str) -> TransportConfig {
    let congestion = congestion.parse().expect("a control");
    let settings = switch::raw::Settings { congestion, ..switch::raw::Settings::new(0) };
    TransportConfig::Raw(RawConfig { stations, priority: PRIORITY, settings })
}

pub fn station(rate: Rate) -> StationConfig {
    let tagging = Some(Tagging::vlan(7));
    StationConfig { tagging, ..StationConfig::new(rate, Duration::from_ns(300), 2) }
}

pub fn drive(number: usize, timing: Timing) -> DriveConfig {
    DriveConfig {
        size: 4 << 20,
        ..DriveConfig::new(format!("D{number}"), timing).as_in_nvme_tsn(4)
    }
}

/// The PCIe links of the NVMe/TSN paper.
fn links() -> (LinkConfig, LinkConfig) {
    let reads = Workload::ConfigReads { count: 1, gap: Duration::ZERO };
    let config = Config::nvme_tsn_tunnel(reads, pipe());
    let Attached::Switch(switch) = &config.hosts[0].attached else { unreachable!("a tunnel") };
    (config.hosts[0].link, switch.ports[0].link)
}

/// A host like the NVMe/TSN paper's with these ports.
pub fn host(workload: Workload, ports: Vec<(TransportConfig, DriveConfig)>) -> HostConfig {
    let (top, bottom) = links();
    let ports = ports
        .into_iter()
        .map(|(transport, drive)| PortConfig { transport, link: bottom, drive })
        .collect();
    let like = Config::nvme_tsn_direct(workload).hosts.remove(0);
    HostConfig { link: top, attached: Attached::Switch(SwitchConfig::new(256, ports)), ..like }
}

pub fn config(hosts: Vec<HostConfig>, network: NetworkConfig) -> Config {
    let reads = Workload::ConfigReads { count: 1, gap: Duration::ZERO };
    Config { hosts, network, ..Config::nvme_tsn_direct(reads) }
}

/// Gates that give the tunnel `open` of every `cycle`, and the rest to others.
pub fn gates(open: Duration, cycle: Duration) -> Gates {
    let ours = GateStates(1 << PRIORITY);
    let entries = [
        Entry { states: ours, interval: open },
        Entry { states: GateStates(!ours.0), interval: cycle - open },
    ];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a valid list");
    Gates::new(list, Clock::default())
}

/// Stations in a row of bridges: the first on bridge 0, the others on the last
/// one.
pub fn bridged(
    stations: Vec<StationConfig>,
    bridges: usize,
    mode: bridge::Mode,
    gates: Option<Gates>,
) -> NetworkConfig {
    let rate = stations[0].rate;
    let far = stations.len() - 1;
    let mut cables = Vec::new();
    let mut made = Vec::new();
    let cable = |a, b| CableConfig::new(a, b, Duration::from_ns(50));
    for number in 0..bridges {
        let last = number + 1 == bridges;
        let mut ports = vec![port::Config::new(rate); if last { 1 + far } else { 2 }];
        ports.iter_mut().for_each(|port| port.gates = gates.clone());
        made.push(BridgeConfig {
            ports,
            mode,
            delay: Duration::from_ns(1_500),
            jitter: Duration::ZERO,
        });
        let before =
            if number == 0 { CableEnd::Station(0) } else { CableEnd::Bridge(number - 1, 1) };
        cables.push(cable(before, CableEnd::Bridge(number, 0)));
    }
    for station in 1..=far {
        cables.push(cable(CableEnd::Bridge(bridges - 1, station), CableEnd::Station(station)));
    }
    NetworkConfig { stations, bridges: made, cables }
}

/// The same faults on every cable, each way with a seed of its own.
pub fn spoil(network: &mut NetworkConfig, faults: Faults) {
    for (seed, cable) in (1..).zip(&mut network.cables) {
        cable.faults = [0, 1].map(|way| Faults { seed: seed * 2 + way, ..faults.clone() });
    }
}

/// 1 %.
pub const PERCENT: Probability = match Probability::from_ppm(10_000) {
    Some(percent) => percent,
    None => unreachable!(),
};

pub fn run(config: &Config) -> Report {
    World::new(config).expect("a valid plan").run().expect("it ends")
}

/// Links that came up or went down, and commands that ended.
#[derive(Debug, Default)]
pub struct Happened {
    pub links: Vec<(Instant, Point, bool)>,
    pub commands: Vec<CommandRecord>,
}

#[derive(Clone, Default)]
pub struct Recorder(pub Rc<RefCell<Happened>>);

impl Observer for Recorder {
    fn link(&mut self, at: Instant, point: Point, up: bool) {
        self.0.borrow_mut().links.push((at, point, up));
    }

    fn command(&mut self, record: &CommandRecord) {
        self.0.borrow_mut().commands.push(*record);
    }
}

/// A world that is watched.
pub fn watched(config: &Config) -> (World, Recorder) {
    let mut world = World::new(config).expect("a valid plan");
    let recorder = Recorder::default();
    world.observe(Box::new(recorder.clone()));
    (world, recorder)
}

/// Runs it to its end, watched.
pub fn recorded(config: &Config) -> (Report, Happened) {
    let (mut world, recorder) = watched(config);
    (world.run().expect("it ends"), recorder.0.take())
}

/// What holds in every plan.
pub fn check(report: &Report) {
    for host in &report.hosts {
        assert_eq!(host.mismatches, 0, "blocks that hold something else");
        assert_eq!(host.failures, 0, "failed commands");
        assert_eq!(host.breakdown.total(), host.total, "stages sum to the time");
        assert_eq!(host.root_port.count(), host.commands, "one head doorbell a command");
    }
    for link in &report.links {
        assert!(link.utilisation_ppm <= 1_000_000, "{link:?}");
    }
}
