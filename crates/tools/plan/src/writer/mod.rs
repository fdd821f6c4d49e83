//! Plans of configurations: the reverse of [`Plan::build`].

mod network;
mod ports;

pub use ports::write_ports;

use crate::Plan;
use crate::simulate::places;
use node::push::Mode;
use sim::Config;
use sim::drive::{DriveConfig, Timing};
use sim::ethernet::cable::Faults;
use sim::ethernet::port::Algorithm;
use sim::ethernet::traffic::StreamId;
use sim::network::CableEnd;
use sim::pcie::{Generation, LinkConfig};
use sim::transport::TransportConfig;
use sim::workload::{CompletionMode, Fio, Workload};
use sim::world::{Attached, HostConfig, SwitchConfig};
use stats::random::Probability;
use std::collections::BTreeSet;
use tsn::Clock;
use wire::Duration;

/// The keys of a plan: table, key, value in TOML. An empty key stands for an empty table.
#[derive(Clone, Default)]
pub(crate) struct Keys(Vec<(String, &'static str, String)>);

/// Returns the text of a plan that builds this configuration. Keys with their default are left out.
///
/// # Errors
/// What a plan cannot express, or what this function does not write: several hosts, and everything
/// on the network of a host other than the tunnel of one drive over one cable. Without hosts, this
/// function writes the keys that published experiments require.
pub fn write(config: &Config) -> Result<String, String> {
    let mut keys = Keys::default();
    if config.hosts.is_empty() { keys.network(config) } else { keys.all(config) }?;
    let wanted = comparable(config, config);
    let built = |keys: &Keys| {
        let built = Plan::parse("plan", &keys.text()).and_then(|plan| plan.build());
        built.map(|planned| comparable(&planned.config, config)).map_err(|error| error.to_string())
    };
    let found = built(&keys)?;
    if found != wanted {
        let differs = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
        let (wanted, _) = differs.unwrap_or((&wanted, ""));
        return Err(format!("a plan has no key for '{}'", wanted.trim()));
    }
    // A key is left out in all tables of its kind, or in none.
    let kind = |(table, key, _): &(String, &'static str, String)| {
        (table.split('.').next().unwrap_or_default().to_owned(), *key)
    };
    let kinds: BTreeSet<_> = keys.0.iter().map(kind).collect();
    for unneeded in kinds {
        let mut fewer = keys.clone();
        fewer.0.retain(|key| kind(key) != unneeded);
        if built(&fewer).as_ref() == Ok(&wanted) {
            keys = fewer;
        }
    }
    Ok(keys.text())
}

/// Returns everything in a configuration that affects its simulation, with the serial numbers of
/// `names`.
fn comparable(config: &Config, names: &Config) -> String {
    let mut config = config.clone();
    for (host, named) in config.hosts.iter_mut().zip(&names.hosts) {
        for (drive, named) in
            drives_mut(&mut host.attached).into_iter().zip(drives(&named.attached))
        {
            drive.serial.clone_from(&named.serial);
        }
    }
    // The seed of a cable has no effect without random faults.
    for faults in config.network.cables.iter_mut().flat_map(|cable| &mut cable.faults) {
        let Faults { loss, corruption, delay, reordering, duplication, .. } = *faults;
        if [loss, corruption, delay, reordering, duplication] == [Probability::default(); 5] {
            faults.seed = 0;
        }
    }
    for stream in config.network.stations.iter_mut().flat_map(|station| &mut station.traffic) {
        if !stream.pattern.is_random() {
            stream.seed = 0;
        }
    }
    normalise_ports(&mut config);
    format!("{config:#?}")
}

/// Removes from ports the clocks that `[clocks]` replaces, and streams of which no frame arrives.
fn normalise_ports(config: &mut Config) {
    let before = config.network.clone();
    let wiring = before.wiring();
    let passes = |place: CableEnd, class: usize, stream: StreamId| {
        let mut way = places::stream_routes(&wiring, stream).into_iter();
        way.any(|egress| egress.place == place && egress.queue == class)
    };
    let stations = config.network.stations.iter_mut().enumerate();
    let stations = stations.flat_map(|(at, station)| {
        let ports = station.ports.iter_mut().enumerate();
        ports.map(move |(number, port)| (CableEnd::Station(at, number), port))
    });
    let bridges = config.network.bridges.iter_mut().enumerate().flat_map(|(at, bridge)| {
        let ports = bridge.ports.iter_mut().enumerate();
        ports.map(move |(number, port)| (CableEnd::Bridge(at, number), port))
    });
    for (place, port) in stations.chain(bridges) {
        if before.time.is_some() {
            port.clock = Clock::default();
            port.gates.iter_mut().for_each(|gates| gates.set_clock(Clock::default()));
        }
        for (class, shaped) in port.classes.iter_mut().enumerate() {
            if let Algorithm::Ats(shaper) = &mut shaped.algorithm {
                shaper.streams.retain(|(stream, _)| passes(place, class, *stream));
            }
        }
    }
}

fn drives_mut(attached: &mut Attached) -> Vec<&mut DriveConfig> {
    match attached {
        Attached::Direct(drive) => vec![drive],
        Attached::Switch(switch) => switch.ports.iter_mut().map(|port| &mut port.drive).collect(),
    }
}

fn drives(attached: &Attached) -> Vec<&DriveConfig> {
    match attached {
        Attached::Direct(drive) => vec![drive],
        Attached::Switch(switch) => switch.ports.iter().map(|port| &port.drive).collect(),
    }
}

fn is_raw(switch: &SwitchConfig) -> bool {
    let mut transports = switch.ports.iter().map(|port| &port.transport);
    transports.any(|transport| matches!(transport, TransportConfig::Raw(_)))
}

impl Keys {
    pub(crate) fn add(&mut self, table: &str, key: &'static str, value: impl ToString) {
        self.0.push((table.to_owned(), key, value.to_string()));
    }

    /// Adds a table, which may have no keys.
    pub(crate) fn table(&mut self, table: &str) {
        self.add(table, "", "");
    }

    pub(crate) fn quoted(&mut self, table: &str, key: &'static str, value: impl ToString) {
        self.add(table, key, format!("\"{}\"", value.to_string()));
    }

    fn time(&mut self, table: &str, key: &'static str, value: Duration) {
        self.quoted(table, key, time(value));
    }

    fn size(&mut self, table: &str, key: &'static str, value: u64) {
        self.quoted(table, key, size(value));
    }

    pub(crate) fn text(&self) -> String {
        let mut tables: Vec<(&str, String)> = Vec::new();
        for (table, key, value) in &self.0 {
            let at = tables.iter().position(|(name, _)| name == table).unwrap_or_else(|| {
                let head = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
                tables.push((table, head));
                tables.len() - 1
            });
            if !key.is_empty() {
                tables[at].1 += &format!("{key} = {value}\n");
            }
        }
        // Keys outside of tables come first in the file.
        tables.sort_by_key(|(name, _)| !name.is_empty());
        let texts: Vec<String> = tables.into_iter().map(|(_, text)| text).collect();
        texts.join("\n")
    }

    fn all(&mut self, config: &Config) -> Result<(), String> {
        let [host] = &config.hosts[..] else { return Err("a plan with one host".into()) };
        let transport = match &host.attached {
            Attached::Direct(_) => "direct",
            Attached::Switch(switch) if is_raw(switch) => "raw",
            Attached::Switch(_) if config.network.stations.iter().all(|s| s.tagging.is_some()) => {
                "tsn"
            }
            Attached::Switch(_) => "tcp",
        };
        self.quoted("", "transport", transport);
        self.add("", "seed", config.seed);
        if let Attached::Switch(switch) = &host.attached {
            self.quoted("", "aggregation", switch.aggregation);
            self.link(config, switch)?;
        }
        self.host(host);
        self.pcie(host);
        let [drive] = drives(&host.attached)[..] else {
            return Err("a plan with one drive".into());
        };
        self.drive(drive);
        self.workload(&host.workload)
    }

    fn link(&mut self, config: &Config, switch: &SwitchConfig) -> Result<(), String> {
        const LINK: &str = "link";
        let ([station, ..], [cable]) = (&config.network.stations[..], &config.network.cables[..])
        else {
            return Err("a plan with one cable".into());
        };
        self.quoted(LINK, "rate", station.ports[0].rate.name());
        self.time(LINK, "propagation", cable.propagation);
        self.time(LINK, "tx_delay", station.tx_delay);
        self.time(LINK, "rx_delay", station.rx_delay);
        self.add(LINK, "tx_ring", station.tx_ring);
        self.time(LINK, "keepalive", switch.keepalive);
        self.time(LINK, "loss_limit", switch.loss_limit);
        self.time(LINK, "survive", switch.survive);
        self.size(LINK, "max_frame", switch.max_frame as u64);
        match switch.ports.first().map(|port| &port.transport) {
            Some(TransportConfig::Tcp(tcp)) => {
                self.add(LINK, "priority", tcp.priority);
                self.size(LINK, "burst", tcp.burst as u64);
                Ok(())
            }
            Some(TransportConfig::Raw(raw)) => {
                self.quoted("", "congestion", raw.settings.congestion);
                self.add(LINK, "priority", raw.priority);
                self.size(LINK, "mtu", (raw.settings.segment + wire::raw::HEADER) as u64);
                self.time(LINK, "ack_time", raw.settings.ack_delay);
                self.add(LINK, "ack_frames", raw.settings.ack_after);
                if switch.encapsulation.frame > 0 {
                    self.size(LINK, "frame_extra", switch.encapsulation.frame as u64);
                    self.size(LINK, "tlp_extra", switch.encapsulation.tlp as u64);
                }
                Ok(())
            }
            _ => Err("a plan over TCP or raw Ethernet".into()),
        }
    }

    fn host(&mut self, host: &HostConfig) {
        const HOST: &str = "host";
        let HostConfig { root, software, .. } = host;
        self.time(HOST, "mmio", root.mmio);
        self.time(HOST, "memory_read", root.memory_read);
        self.size(HOST, "memory", root.memory as u64);
        self.quoted(HOST, "memory_at", if root.memory_at < 1 << 32 { "low" } else { "high" });
        self.time(HOST, "completion_timeout", root.completion_timeout);
        self.quoted(HOST, "push", Mode::name(root.push));
        self.time(HOST, "submit", software.submit);
        self.time(HOST, "complete", software.complete);
        match software.completions {
            CompletionMode::Interrupt { latency } => self.time(HOST, "interrupt", latency),
            CompletionMode::Polling { interval } => self.time(HOST, "polling", interval),
        }
    }

    fn pcie(&mut self, host: &HostConfig) {
        const PCIE: &str = "pcie";
        let (link, drive_port) = match &host.attached {
            Attached::Direct(_) => (&host.link, host.link.upstream_port),
            Attached::Switch(switch) => {
                let below = switch.ports.first().map_or(&host.link, |port| &port.link);
                self.time(PCIE, "switch_port", host.link.upstream_port.transmit);
                (&host.link, below.upstream_port)
            }
        };
        let LinkConfig { generation, width, propagation, downstream_port, .. } = link;
        let number = match generation {
            Generation::Gen1 => 1,
            Generation::Gen2 => 2,
            Generation::Gen3 => 3,
            Generation::Gen4 => 4,
            Generation::Gen5 => 5,
        };
        self.add(PCIE, "generation", number);
        self.add(PCIE, "width", width);
        self.time(PCIE, "propagation", *propagation);
        self.add(PCIE, "mps", host.root.max_payload);
        self.add(PCIE, "mrrs", host.software.max_read_request);
        self.add(PCIE, "rcb", host.root.completion_size);
        self.time(PCIE, "root_port", downstream_port.transmit);
        self.time(PCIE, "drive_port", drive_port.transmit);
    }

    fn drive(&mut self, drive: &DriveConfig) {
        const DRIVE: &str = "drive";
        // A RAID0 differs from its preset in channels and rate.
        let Timing { channels, stream_rate, .. } = drive.timing;
        let preset = |name: &&&str| {
            let preset = Timing::preset(name);
            preset.is_some_and(|one| Timing { channels, stream_rate, ..one } == drive.timing)
        };
        if let Some(preset) = Timing::PRESETS.iter().find(preset) {
            self.quoted(DRIVE, "preset", preset);
        }
        self.size(DRIVE, "size", drive.size);
        self.add(DRIVE, "mps", drive.max_payload);
        self.add(DRIVE, "dma_read", drive.read_request);
        self.add(DRIVE, "reads_in_flight", drive.reads_in_flight);
        self.add(DRIVE, "channels", channels);
        self.quoted(DRIVE, "stream_rate", format!("{stream_rate}B/s"));
        let Timing { read_lsb, read_msb, variation, .. } = drive.timing;
        self.time(DRIVE, "read_lsb", read_lsb);
        self.time(DRIVE, "read_msb", read_msb);
        self.time(DRIVE, "variation", variation);
    }

    fn workload(&mut self, workload: &Workload) -> Result<(), String> {
        const WORKLOAD: &str = "workload";
        match workload {
            Workload::ConfigReads { count, gap } => {
                self.add(WORKLOAD, "configreads", count);
                self.time(WORKLOAD, "gap", *gap);
            }
            Workload::Dd { write, bs, count } => {
                self.quoted(WORKLOAD, "dd", if *write { "write" } else { "read" });
                self.size(WORKLOAD, "bs", *bs as u64);
                self.add(WORKLOAD, "count", count);
            }
            Workload::Fio(fio) => {
                let Fio { rw, bs, iodepth, numjobs, size, runtime, time_based, rate, .. } = fio;
                self.quoted(WORKLOAD, "rw", rw.name());
                self.size(WORKLOAD, "bs", *bs as u64);
                self.add(WORKLOAD, "iodepth", iodepth);
                self.add(WORKLOAD, "numjobs", numjobs);
                self.size(WORKLOAD, "size", *size);
                if let Some(runtime) = runtime {
                    self.time(WORKLOAD, "runtime", *runtime);
                }
                if *time_based {
                    self.quoted(WORKLOAD, "time_based", "on");
                }
                if let Some(rate) = rate {
                    self.quoted(WORKLOAD, "rate", format!("{rate}B/s"));
                }
            }
            Workload::Replay(_) | Workload::Idle => return Err("a workload of a job".into()),
        }
        Ok(())
    }
}

/// Formats a time exactly, in the largest unit without decimals.
fn time(time: Duration) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
    let ps = time.as_ps();
    let unit = UNITS.into_iter().find(|(unit, _)| ps > 0 && ps.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ps"));
    format!("{}{name}", ps / unit)
}

/// Formats a number of bytes exactly, in the largest unit without decimals.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "B"));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::ethernet::Rate;

    fn read() -> Workload {
        Workload::Dd { write: false, bs: 4096, count: 10 }
    }

    #[test]
    fn only_keys_that_differ_from_their_defaults_are_written() {
        let direct =
            Config::nvme_tsn_direct(Workload::ConfigReads { count: 5, gap: Duration::ZERO });
        let wanted = "transport = \"direct\"\n\n[host]\npush = \"off\"\n\n[workload]\n\
                      configreads = 5\ngap = \"0ps\"\n";
        assert_eq!(write(&direct).unwrap(), wanted);
        let mut tunnel = Config::nvme_tsn_tsn(read(), Rate::G10);
        tunnel.hosts[0].root.mmio = Duration::from_ps(1_500);
        let wanted = "transport = \"tsn\"\n\n[link]\nrate = \"10G\"\n\n[host]\nmmio = \"1500ps\"\n\
                      push = \"off\"\n\n[workload]\ndd = \"read\"\ncount = 10\n";
        assert_eq!(write(&tunnel).unwrap(), wanted);
        let fio = Fio { size: 1 << 20, ..Fio::new(sim::workload::Rw::RandWrite, 4096, 8) };
        assert!(write(&Config::nvme_tsn_tcp(Workload::Fio(fio), Rate::G1)).is_ok());
    }

    #[test]
    fn setting_without_a_key_is_an_error_that_names_it() {
        let mut config = Config::nvme_tsn_tcp(read(), Rate::G1);
        let Attached::Switch(switch) = &mut config.hosts[0].attached else { panic!("a tunnel") };
        switch.encapsulation.frame = 12;
        assert_eq!(write(&config).unwrap_err(), "a plan has no key for 'frame: 12,'");
    }
}
