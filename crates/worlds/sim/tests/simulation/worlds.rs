//! Topologies for the tests, and the types that most of them use.

pub use sim::drive::{DriveConfig, Timing};
pub use sim::ethernet::cable::Faults;
pub use sim::ethernet::{Rate, bridge};
pub use sim::measure::{CommandRecord, LinkChange, Observer, Op, Point, Stage};
pub use sim::network::NetworkConfig;
pub use sim::workload::{Fio, Rw, Workload};
pub use sim::world::{Attached, Error, Outage, Report, SwitchConfig};
pub use sim::{Config, World};
pub use stats::random::Probability;
pub use std::cell::{Cell, RefCell};
pub use std::rc::Rc;
pub use switch::aggregate::Policy;
pub use wire::{Bdf, Duration, Instant};

use crate::gates_of;
use pcie::Bus;
use sim::ethernet::nic::Tagging;
use sim::ethernet::port;
use sim::network::{BridgeConfig, CableConfig, CableEnd, StationConfig};
use sim::transport::{PipeConfig, RawConfig, TcpConfig, TransportConfig};
use sim::world::{HostConfig, HostReport, PortConfig};
use tsn::Gates;

/// The priority of tunnel traffic, if it has a priority.
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

/// A host as in the NVMe/TSN paper, behind a switch with these ports.
pub fn host(workload: Workload, ports: Vec<(TransportConfig, DriveConfig)>) -> HostConfig {
    let mut like = Config::nvme_tsn_tunnel(workload, pipe());
    let link = switch(&mut like).ports[0].link;
    let port = |(transport, drive)| PortConfig { transport, second: None, link, drive };
    switch(&mut like).ports = ports.into_iter().map(port).collect();
    like.hosts.remove(0)
}

pub fn config(hosts: Vec<HostConfig>, network: NetworkConfig) -> Config {
    Config { seed: 1, hosts, network, ..Config::default() }
}

/// Gates that open the tunnel's queue for `open` in every `cycle`, and the other queues for the
/// remaining time.
pub fn gates(open: Duration, cycle: Duration) -> Gates {
    let ours = 1 << PRIORITY;
    gates_of(&[(ours, open), (!ours, cycle - open)])
}

/// A row of bridges. The first station is at bridge 0, all others are at the last bridge.
pub fn bridged(
    stations: Vec<StationConfig>,
    bridges: usize,
    mode: bridge::Mode,
    gates: Option<Gates>,
) -> NetworkConfig {
    let rate = stations[0].ports[0].rate;
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
            if number == 0 { CableEnd::station(0) } else { CableEnd::Bridge(number - 1, 1) };
        cables.push(cable(before, CableEnd::Bridge(number, 0)));
    }
    for station in 1..=far {
        cables.push(cable(CableEnd::Bridge(bridges - 1, station), CableEnd::station(station)));
    }
    NetworkConfig { stations, bridges: made, cables, ..NetworkConfig::default() }
}

/// Sets the same faults on every cable, with another seed for each direction.
pub fn spoil(network: &mut NetworkConfig, faults: Faults) {
    for (seed, cable) in (1..).zip(&mut network.cables) {
        cable.faults = [0, 1].map(|way| Faults { seed: seed * 2 + way, ..faults.clone() });
    }
}

/// Bytes of the largest frame on the wire, with a tag and the gap.
const LARGEST: u64 = 1_542;

/// 1 %.
pub const PERCENT: Probability = match Probability::from_ppm(10_000) {
    Some(percent) => percent,
    None => unreachable!(),
};

pub const fn ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// The switch of the first host.
pub fn switch(config: &mut Config) -> &mut SwitchConfig {
    let Attached::Switch(switch) = &mut config.hosts[0].attached else { panic!("a switch") };
    switch
}

/// The jobs of the first host.
pub fn jobs(config: &mut Config) -> &mut Fio {
    let Workload::Fio(fio) = &mut config.hosts[0].workload else { panic!("jobs of fio") };
    fio
}

pub fn run(config: &Config) -> Report {
    World::new(config).expect("a valid plan").run().expect("it ends")
}

/// Runs `config` twice. The results must be equal and pass [`check`].
pub fn twice(config: &Config) -> (Report, World) {
    let mut world = World::new(config).expect("a valid plan");
    let report = world.run().expect("it ends");
    check(&report);
    assert_eq!(run(config).digest, report.digest, "the same plan, the same digest");
    (report, world)
}

/// Runs a world until `holds` is true for its first host.
pub fn run_to(world: &mut World, holds: fn(&HostReport) -> bool) {
    while !holds(&world.report().hosts[0]) {
        assert!(!world.run_instant().expect("it boots"));
    }
}

/// Runs a program on the first host, and the world until its end. Returns the result of the program
/// and the report.
pub fn run_program<T: 'static, F: Future<Output = T> + 'static>(
    world: &mut World,
    program: impl FnOnce(Bus) -> F + 'static,
) -> (T, Report) {
    let result = Rc::new(Cell::new(None));
    let set = result.clone();
    world.run_program(0, move |bus| async move { set.set(Some(program(bus).await)) });
    let report = world.run().expect("it ends");
    (result.take().expect("the program ends"), report)
}

/// No node counted an error.
pub fn check_errors(world: &World) {
    assert!(world.errors().iter().all(|errors| *errors == pcie::Errors::default()));
}

/// Links that came up or went down, and commands that ended.
#[derive(Debug, Default)]
pub struct Happened {
    /// Links that came up or went down.
    pub links: Vec<(Instant, Point, bool)>,
    /// Links that were interrupted (`false`) or went on (`true`).
    pub interruptions: Vec<(Instant, Point, bool)>,
    pub commands: Vec<CommandRecord>,
}

#[derive(Clone, Default)]
pub struct Recorder(pub Rc<RefCell<Happened>>);

impl Observer for Recorder {
    fn link(&mut self, at: Instant, point: Point, change: LinkChange) {
        let happened = &mut *self.0.borrow_mut();
        let (list, good) = match change {
            LinkChange::Up => (&mut happened.links, true),
            LinkChange::Down => (&mut happened.links, false),
            LinkChange::Interrupted => (&mut happened.interruptions, false),
            LinkChange::Resumed => (&mut happened.interruptions, true),
        };
        list.push((at, point, good));
    }

    fn command(&mut self, record: &CommandRecord) {
        self.0.borrow_mut().commands.push(*record);
    }
}

/// A world with a recorder as observer.
pub fn watched(config: &Config) -> (World, Recorder) {
    let mut world = World::new(config).expect("a valid plan");
    let recorder = Recorder::default();
    world.observe(Box::new(recorder.clone()));
    (world, recorder)
}

/// Runs `config` to its end. Returns the report and the recorded events.
pub fn recorded(config: &Config) -> (Report, Happened) {
    let (mut world, recorder) = watched(config);
    (world.run().expect("it ends"), recorder.0.take())
}

/// Checks the requirements that every simulation meets.
pub fn check(report: &Report) {
    for host in &report.hosts {
        assert_eq!(host.mismatches, 0, "blocks that hold something else");
        assert_eq!(host.failures, 0, "failed commands");
        assert_eq!(host.breakdown.total(), host.total, "stages sum to the time");
        assert_eq!(host.root_port.count(), host.commands, "one head doorbell a command");
    }
    for link in &report.links {
        // A frame counts completely when it begins, and the last frame may end after the time.
        let beyond = link.utilisation_ppm.saturating_sub(1_000_000);
        assert!(link.load.bytes * beyond <= LARGEST * link.utilisation_ppm, "{link:?}");
    }
}
