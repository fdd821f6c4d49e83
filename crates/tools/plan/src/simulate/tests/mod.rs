//! Outputs of the NVMe/TSN paper's worlds.

mod captures;
mod connections;
mod limits;
mod pages;
mod streams;
mod timelines;
mod traces;

use super::limits::{Assumptions, Row};
use super::{OutputFiles, Outputs};
use sim::ethernet::Rate;
use sim::measure::{CommandRecord, Observer};
use sim::network::{BridgeConfig, CableConfig, CableEnd, NetworkConfig};
use sim::workload::{Fio, Rw, Workload};
use sim::world::{Attached, Report};
use sim::{Config, World};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// Random reads and writes.
pub fn mixed(iodepth: usize) -> Workload {
    Workload::Fio(Fio { size: 256 << 10, ..Fio::new(Rw::RandRw, 4096, iodepth) })
}

pub fn tcp(iodepth: usize) -> Config {
    Config::nvme_tsn_tcp(mixed(iodepth), Rate::G1)
}

/// The NVMe/TSN paper's TSN topology with a bridge in the middle. The gates of bridge and stations
/// are open for the tunnel for `open` of every `cycle`.
pub fn gated(work: Workload, open: Duration, cycle: Duration) -> Config {
    let mut config = Config::nvme_tsn_tsn(work, Rate::G1);
    let gates = gates(open, cycle);
    let port = sim::ethernet::port::Config {
        gates: Some(gates.clone()),
        ..sim::ethernet::port::Config::new(Rate::G1)
    };
    let bridge = BridgeConfig {
        ports: vec![port.clone(), port],
        mode: sim::ethernet::bridge::Mode::StoreAndForward,
        delay: Duration::from_ns(1_500),
        jitter: Duration::ZERO,
    };
    let cable = |station, port| {
        CableConfig::new(
            CableEnd::station(station),
            CableEnd::Bridge(0, port),
            Duration::from_ns(50),
        )
    };
    let cables = vec![cable(0, 0), cable(1, 1)];
    let mut stations = config.network.stations.clone();
    stations.iter_mut().for_each(|station| station.ports[0].gates = Some(gates.clone()));
    config.network =
        NetworkConfig { stations, bridges: vec![bridge], cables, ..NetworkConfig::default() };
    if let Attached::Switch(switch) = &mut config.hosts[0].attached
        && let sim::transport::TransportConfig::Tcp(tcp) = &mut switch.ports[0].transport
    {
        tcp.priority = PRIORITY;
    }
    config
}

/// The tunnel's priority if there are gates.
pub const PRIORITY: u8 = 3;

fn gates(open: Duration, cycle: Duration) -> Gates {
    let open_gate = GateStates(1 << PRIORITY);
    let entries = [Entry::set(open_gate, open), Entry::set(GateStates(!open_gate.0), cycle - open)];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    Gates::new(list, Clock::default())
}

pub fn run(config: &Config, observer: Box<dyn Observer>) -> Report {
    let mut world = World::new(config).unwrap();
    world.observe(observer);
    world.run().unwrap()
}

/// Runs a simulation with the outputs `files`. Returns the report, if it ended by itself, and every
/// limit.
pub fn observed(
    config: &Config,
    files: &OutputFiles,
    named: &dyn Fn(&str) -> String,
) -> (Option<Report>, Vec<Row>, Outputs) {
    let mut outputs = Outputs::begin(config, files, Assumptions::default(), named).unwrap();
    let mut world = World::new(config).unwrap();
    world.observe(outputs.observer());
    let report = world.run().ok();
    let rows = outputs.close(config, world.now(), report.is_some()).unwrap();
    (report, rows, outputs)
}

/// Returns whether the simulation ended by itself, and every limit.
pub fn rows(config: &Config) -> (bool, Vec<Row>) {
    let (report, rows, _) = observed(config, &OutputFiles::default(), &str::to_owned);
    (report.is_some(), rows)
}

/// Keeps the records of commands.
#[derive(Debug, Default)]
pub struct Records(pub Vec<CommandRecord>);

impl Observer for Records {
    fn command(&mut self, record: &CommandRecord) {
        self.0.push(*record);
    }
}
