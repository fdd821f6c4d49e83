//! The parameters of the NVMe/TSN paper (MLE, "Latency Analysis for NVMe/TSN", section 3). The
//! topologies differ only in the transport. `docs/model.md` has the source of each number.

use super::config::{Attached, Config, HostConfig, PortConfig, SwitchConfig};
use crate::drive::{DriveConfig, Timing};
use crate::ethernet::Rate;
use crate::ethernet::nic::Tagging;
use crate::network::{CableConfig, CableEnd, NetworkConfig, StationConfig};
use crate::node::RootConfig;
use crate::pcie::{Buffer, Generation, LinkConfig, PortLatency};
use crate::transport::{Encapsulation, TcpConfig, TransportConfig};
use crate::workload::{CompletionMode, SoftwareConfig, Workload};
use node::push::Mode;
use switch::aggregate::Policy;
use wire::Duration;
use wire::frame::Paths;

/// DMA reads in flight of the drive in the NVMe/TSN paper. This is the only free parameter of the
/// drive.
pub const READS_IN_FLIGHT: usize = 2;

/// Delays of the root port's pipelines.
const ROOT_PORT: PortLatency =
    PortLatency { transmit: Duration::from_ns(50), receive: Duration::from_ns(50) };
/// Delays of the drive's pipelines, calibrated to a configuration read of 280 ns.
const ENDPOINT: PortLatency =
    PortLatency { transmit: Duration::from_ns(130), receive: Duration::from_ns(130) };
/// Delays of the switch's ports: PCIe block and encapsulation in the FPGA.
const SWITCH_PORT: PortLatency =
    PortLatency { transmit: Duration::from_ns(134), receive: Duration::from_ns(134) };
/// The TCP connection of a link. A tunnel frame has at most the bytes of a TCP segment.
const TCP: TcpConfig = TcpConfig { stations: [0, 1], priority: 0, burst: 1460 };
/// Bytes of the longest Ethernet frame on the wire, preamble to gap.
const LONGEST_FRAME: usize = 1538;
/// Propagation delay of a cable of two metres.
const CABLE: Duration = Duration::from_ns(10);

/// Delay of each pipeline of an FPGA with a TCP engine, calibrated to a configuration read over TCP
/// of 6020 ns.
const TCP_PIPELINE: Duration = Duration::from_ns(894);
/// Delay of each pipeline of an FPGA with a TCP engine and a TSN core, calibrated to a
/// configuration read over TSN of 7091 ns.
const TSN_PIPELINE: Duration = Duration::from_ns(1_146);

/// A node of the NVMe/TSN paper. The transmit ring has room for the frames in the pipeline and two
/// more, which keeps the wire busy. Further TLPs wait and are aggregated.
fn station(rate: Rate, pipeline: Duration, tagging: Option<Tagging>) -> StationConfig {
    let frame = rate.duration(LONGEST_FRAME).as_ps();
    let tx_ring = 2 + (pipeline.as_ps() / frame) as usize;
    StationConfig { tagging, ..StationConfig::new(rate, pipeline, tx_ring) }
}

/// Two stations and a cable.
fn point_to_point(station: StationConfig) -> NetworkConfig {
    let cable = CableConfig::new(CableEnd::station(0), CableEnd::station(1), CABLE);
    NetworkConfig {
        stations: vec![station; 2],
        bridges: Vec::new(),
        cables: vec![cable],
        ..NetworkConfig::default()
    }
}

/// Propagation delay of ten centimetres of trace and connector.
const PROPAGATION: Duration = Duration::from_ns(1);

impl RootConfig {
    /// AMD Ryzen 3200G in the NVMe/TSN paper: completions of 128 bytes.
    pub const NVME_TSN: Self = Self {
        max_payload: 256,
        completion_size: 128,
        completion_timeout: Duration::from_ms(50),
        ecrc: false,
        // The switch of the paper does not push.
        push: Mode::Off,
        mmio: Duration::from_ns(100),
        memory_read: Duration::from_ns(200),
        memory: 64 << 20,
        memory_at: Self::LOW_MEMORY,
    };
}

impl SoftwareConfig {
    /// Linux with an otherwise idle CPU.
    pub const NVME_TSN: Self = Self {
        start_delay: Duration::ZERO,
        submit: Duration::from_ns(1_500),
        completions: CompletionMode::Interrupt { latency: Duration::from_ns(40_130) },
        complete: Duration::from_ns(1_500),
        max_payload: 256,
        max_read_request: 512,
        registration: None,
    };
}

/// PCIe Gen2 with 4 lanes between `downstream_port` and `upstream_port`.
const fn gen2(downstream_port: PortLatency, upstream_port: PortLatency) -> LinkConfig {
    LinkConfig {
        generation: Generation::Gen2,
        width: 4,
        propagation: PROPAGATION,
        downstream_port,
        upstream_port,
        buffer: Buffer { headers: [64; 3], data: [1024, 64, 1024] },
    }
}

impl Config {
    /// The drive of the NVMe/TSN paper, directly attached.
    pub fn nvme_tsn_direct(workload: Workload) -> Self {
        Self::nvme_tsn(workload, gen2(ROOT_PORT, ENDPOINT), Attached::Direct(drive("970PRO-0")))
    }

    /// The drive of the NVMe/TSN paper behind a tunnel over `transport`.
    pub fn nvme_tsn_tunnel(workload: Workload, transport: TransportConfig) -> Self {
        let port = PortConfig {
            transport,
            second: None,
            link: gen2(SWITCH_PORT, ENDPOINT),
            drive: drive("970PRO-0"),
        };
        let switch = SwitchConfig::new(256, vec![port]);
        Self::nvme_tsn(workload, gen2(ROOT_PORT, SWITCH_PORT), Attached::Switch(switch))
    }

    /// The drive of the NVMe/TSN paper behind a tunnel over TCP and one cable.
    pub fn nvme_tsn_tcp(workload: Workload, rate: Rate) -> Self {
        Self::nvme_tsn_between(workload, station(rate, TCP_PIPELINE, None))
    }

    /// The drive of the NVMe/TSN paper behind a tunnel over TSN: TSN cores in both nodes, VLAN
    /// tags, one cable, and gates that never close.
    pub fn nvme_tsn_tsn(workload: Workload, rate: Rate) -> Self {
        Self::nvme_tsn_between(workload, station(rate, TSN_PIPELINE, Some(Tagging::vlan(1))))
    }

    fn nvme_tsn_between(workload: Workload, station: StationConfig) -> Self {
        let network = point_to_point(station);
        Self { network, ..Self::nvme_tsn_tunnel(workload, TransportConfig::Tcp(TCP)) }
    }

    fn nvme_tsn(workload: Workload, link: LinkConfig, attached: Attached) -> Self {
        let host = HostConfig {
            root: RootConfig::NVME_TSN,
            software: SoftwareConfig::NVME_TSN,
            workload,
            link,
            attached,
        };
        Self { seed: 1, hosts: vec![host], ..Self::default() }
    }
}

impl SwitchConfig {
    /// A switch with the timers of live nodes.
    pub fn new(max_payload: usize, ports: Vec<PortConfig>) -> Self {
        Self {
            max_payload,
            keepalive: Duration::from_ms(100),
            loss_limit: Duration::from_ms(800),
            survive: Duration::from_ms(10_000),
            paths: Paths::Active,
            keep: 4 << 20,
            max_frame: 32 << 10,
            aggregation: Policy::Adaptive,
            encapsulation: Encapsulation::default(),
            rate_limit: None,
            ports,
            switches: Vec::new(),
        }
    }
}

fn drive(serial: &str) -> DriveConfig {
    DriveConfig::new(serial, Timing::SAMSUNG_970_PRO).as_in_nvme_tsn(READS_IN_FLIGHT)
}
