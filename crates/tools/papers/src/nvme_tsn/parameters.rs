//! The table of parameters, read from the simulated configurations.

use super::{RATE, Topology};
use crate::Section;
use report::Align::{Left, Right};
use report::Column;
use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use sim::drive::DriveConfig;
use sim::network::StationConfig;
use sim::transport::TransportConfig;
use sim::workload::{CompletionMode, Workload};
use sim::world::Attached;
use wire::Duration;

/// A parameter in the three topologies.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NvmeTsnParameter {
    /// Name of the parameter, with the unit.
    pub parameter: &'static str,
    /// Value of the directly attached drive; null if it has none.
    pub direct: Option<String>,
    /// Value over TCP; null if it has none.
    pub tcp: Option<String>,
    /// Value over TSN; null if it has none.
    pub tsn: Option<String>,
    /// Source of the values.
    pub from: &'static str,
}

type Read = fn(&Config) -> Option<String>;

const PAPER: &str = "the paper";
const NVMEVIRT: &str = "NVMeVirt, ssd_config.h";
const ASSUMED: &str = "assumed";

const TABLE: &[(&str, &str, Read)] = &[
    ("PCIe links", "the paper, 3; width of the drive", |c| {
        let link = &c.hosts[0].link;
        Some(format!("{:?} x{}", link.generation, link.width))
    }),
    ("MPS, bytes", "the paper, 2.1", |c| text(c.hosts[0].software.max_payload)),
    ("MRRS, bytes", "the paper, 2.2", |c| text(c.hosts[0].software.max_read_request)),
    ("completions of host memory, bytes", "the paper, 2.2", |c| {
        text(c.hosts[0].root.completion_size)
    }),
    ("DMA reads of the drive, bytes", "the paper, 2.2", |c| text(drive(c).read_request)),
    ("DMA reads in flight", "chosen: the drive's one free property", |c| {
        text(drive(c).reads_in_flight)
    }),
    ("drive: firmware of a 4 KiB read, us", NVMEVIRT, |c| us(drive(c).timing.firmware_read)),
    ("drive: sensing a page, first bits, us", NVMEVIRT, |c| us(drive(c).timing.read_lsb)),
    ("drive: sensing a page, last bits, us", NVMEVIRT, |c| us(drive(c).timing.read_msb)),
    ("drive: channels x dies", NVMEVIRT, |c| {
        let timing = drive(c).timing;
        Some(format!("{} x {}", timing.channels, timing.luns))
    }),
    ("drive: channel, MB/s", NVMEVIRT, |c| text(drive(c).timing.channel_rate / 1_000_000)),
    ("drive: 4 KiB into the write buffer, us", NVMEVIRT, |c| {
        us(drive(c).timing.write_base + drive(c).timing.write_4k)
    }),
    ("root port, transmit, receive, ns", ASSUMED, |c| pair(c.hosts[0].link.downstream_port)),
    ("drive's port, transmit, receive, ns", "calibrated: 280 ns", |c| pair(lower(c).upstream_port)),
    ("switch ports, transmit, receive, ns", "assumed like the drive's", |c| {
        port(c).and_then(|_| pair(lower(c).downstream_port))
    }),
    ("propagation on PCIe, ns", ASSUMED, |c| ns(c.hosts[0].link.propagation)),
    ("host memory read, ns", "assumed; pcie-bench", |c| ns(c.hosts[0].root.memory_read)),
    ("submission, us", ASSUMED, |c| us(c.hosts[0].software.submit)),
    ("completion, us", ASSUMED, |c| us(c.hosts[0].software.complete)),
    ("interrupt to handler, us", "calibrated: 51.71 us", |c| {
        match c.hosts[0].software.completions {
            CompletionMode::Interrupt { latency } => us(latency),
            CompletionMode::Polling { .. } => None,
        }
    }),
    ("Ethernet", PAPER, |c| station(c).map(|s| format!("{}b/s", s.ports[0].rate))),
    ("nodes, transmit, ns", "calibrated: 6020 and 7091 ns", |c| {
        station(c).and_then(|s| ns(s.tx_delay))
    }),
    ("nodes, receive, ns", "calibrated, the same", |c| station(c).and_then(|s| ns(s.rx_delay))),
    ("802.1Q tags", "TSN needs them", |c| {
        station(c).map(|s| if s.tagging.is_some() { "yes" } else { "no" }.to_owned())
    }),
    ("gates that close", "the paper mentions none", |c| {
        station(c).map(|s| if s.ports[0].gates.is_some() { "yes" } else { "no" }.to_owned())
    }),
    ("frames ahead of the wire", ASSUMED, |c| station(c).map(|s| s.tx_ring.to_string())),
    ("delay of TCP acknowledgements, us", ASSUMED, |c| {
        station(c).and_then(|s| us(s.ack_delay.unwrap_or(Duration::ZERO)))
    }),
    ("frame of TLPs at most, bytes", "a TCP segment", |c| match port(c)? {
        TransportConfig::Tcp(tcp) => text(tcp.burst),
        TransportConfig::Raw(_) | TransportConfig::Pipe(_) => None,
    }),
    ("cable, ns", "assumed: 2 m", |c| c.network.cables.first().and_then(|c| ns(c.propagation))),
];

fn text(value: impl std::fmt::Display) -> Option<String> {
    Some(value.to_string())
}

fn us(time: Duration) -> Option<String> {
    text(time.as_ns() as f64 / 1e3)
}

fn ns(time: Duration) -> Option<String> {
    text(time.as_ns())
}

fn pair(port: sim::pcie::PortLatency) -> Option<String> {
    Some(format!("{}, {}", port.transmit.as_ns(), port.receive.as_ns()))
}

fn drive(config: &Config) -> &DriveConfig {
    config.drives().next().expect("the paper has a drive")
}

fn station(config: &Config) -> Option<&StationConfig> {
    config.network.stations.first()
}

fn port(config: &Config) -> Option<&TransportConfig> {
    match &config.hosts[0].attached {
        Attached::Direct(_) => None,
        Attached::Switch(switch) => switch.ports.first().map(|port| &port.transport),
    }
}

fn lower(config: &Config) -> &sim::pcie::LinkConfig {
    match &config.hosts[0].attached {
        Attached::Direct(_) => &config.hosts[0].link,
        Attached::Switch(switch) => &switch.ports[0].link,
    }
}

/// Returns every parameter of the three topologies.
pub fn parameters() -> Vec<NvmeTsnParameter> {
    let reads = Workload::ConfigReads { count: 1, gap: Duration::ZERO };
    let configs = Topology::ALL.map(|topology| topology.config(reads.clone(), RATE));
    let row = |(parameter, from, read): &(&'static str, &'static str, Read)| {
        let [direct, tcp, tsn] = configs.each_ref().map(read);
        NvmeTsnParameter { parameter, direct, tcp, tsn, from }
    };
    TABLE.iter().map(row).collect()
}

/// Returns the parameters as a table.
pub fn section() -> Section {
    fn cell(value: &Option<String>) -> String {
        value.clone().unwrap_or_else(|| "-".into())
    }
    let columns: [Column<NvmeTsnParameter>; 5] = [
        ("parameter", Left, |one| one.parameter.to_owned()),
        ("direct", Right, |one| cell(&one.direct)),
        ("TCP", Right, |one| cell(&one.tcp)),
        ("TSN", Right, |one| cell(&one.tsn)),
        ("from", Left, |one| one.from.to_owned()),
    ];
    let title = "Parameters: one table, the topologies differ in the transport alone";
    Section::from_rows(title, &columns, &parameters(), &[])
}
