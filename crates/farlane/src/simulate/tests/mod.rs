//! Outputs of the brief's worlds.

mod captures;
mod connections;
mod limits;
mod pages;
mod traces;

use sim::ethernet::Rate;
use sim::measure::{CommandRecord, Observer};
use sim::network::{BridgeConfig, CableConfig, NetworkConfig, Place};
use sim::workload::{Fio, Rw, Workload};
use sim::world::{Attached, Report};
use sim::{Config, World};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// A folder that goes with the value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("farlane-simulate-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Random reads and writes.
pub fn mixed(iodepth: usize) -> Workload {
    Workload::Fio(Fio { size: 256 << 10, ..Fio::new(Rw::RandRw, 4096, iodepth) })
}

pub fn tcp(iodepth: usize) -> Config {
    Config::brief_tcp(mixed(iodepth), Rate::G1)
}

/// The brief over TSN with a bridge in the middle, the gates of which, as those
/// of the stations, are open for the tunnel `open` of every `cycle`.
pub fn gated(work: Workload, open: Duration, cycle: Duration) -> Config {
    let mut config = Config::brief_tsn(work, Rate::G1);
    let gates = gates(open, cycle);
    let stations = config.network.stations.iter().cloned();
    let stations =
        stations.map(|one| sim::network::StationConfig { gates: Some(gates.clone()), ..one });
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
        CableConfig::new(Place::Station(station), Place::Bridge(0, port), Duration::from_ns(50))
    };
    let cables = vec![cable(0, 0), cable(1, 1)];
    config.network = NetworkConfig { stations: stations.collect(), bridges: vec![bridge], cables };
    if let Attached::Switch(switch) = &mut config.hosts[0].attached
        && let sim::transport::TransportConfig::Tcp(tcp) = &mut switch.ports[0].transport
    {
        tcp.priority = PRIORITY;
    }
    config
}

/// The tunnel's priority where there are gates.
pub const PRIORITY: u8 = 3;

fn gates(open: Duration, cycle: Duration) -> Gates {
    let ours = GateStates(1 << PRIORITY);
    let entries = [
        Entry { states: ours, interval: open },
        Entry { states: GateStates(!ours.0), interval: cycle - open },
    ];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    Gates::new(list, Clock::default())
}

pub fn run(config: &Config, observer: Box<dyn Observer>) -> Report {
    let mut world = World::new(config).unwrap();
    world.observe(observer);
    world.run().unwrap()
}

/// Keeps the records of commands.
#[derive(Debug, Default)]
pub struct Records(pub Vec<CommandRecord>);

impl Observer for Records {
    fn command(&mut self, record: &CommandRecord) {
        self.0.push(*record);
    }
}
