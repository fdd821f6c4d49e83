//! The simulated prototype: one set of parameters for every evaluation.

use node::push::Mode;
use sim::Config;
use sim::drive::{DriveConfig, Timing};
use sim::ethernet::{Rate, bridge, port};
use sim::network::{BridgeConfig, CableConfig, CableEnd, NetworkConfig, StationConfig};
use sim::node::RootConfig;
use sim::pcie::{Buffer, Generation, LinkConfig, PortLatency};
use sim::transport::{Encapsulation, RawConfig, TransportConfig};
use sim::workload::{CompletionMode, Fio, Rw, SoftwareConfig, Workload};
use sim::world::{Attached, HostConfig, PortConfig, Report, SwitchConfig};
use switch::aggregate::Policy;
use switch::{congestion, raw};
use wire::{Duration, Instant};

/// Rate of the prototype's Ethernet in bits per second.
pub const LINE: u64 = 10_000_000_000;
/// Max_Payload_Size in bytes ("Size of TLP payload: 128B").
pub const MPS: usize = 128;
/// Bytes that ExpEther's encapsulation adds to a frame beyond the headers of farlane; calibrated by
/// the two 64 MB reads.
pub const FRAME_EXTRA: usize = 12;
/// Bytes that ExpEther's encapsulation adds to each TLP; calibrated by the two 64 MB reads.
pub const TLP_EXTRA: usize = 10;
/// Number of DMA reads of the storage controller in flight: all tags of the 5 bits that are enabled
/// by default (PCIe Base 4.0, section 2.2.6.2).
pub const READS_IN_FLIGHT: usize = 32;
/// Bytes of each DMA read: one completion of MPS bytes.
pub const READ_REQUEST: usize = MPS;

/// The settings in which the runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Aggregation policy: adaptive ("with aggregation"), or one TLP per frame ("without").
    pub policy: Policy,
    /// Number of SSDs in the RAID0.
    pub ssds: u16,
    /// Rate limit in bits per second.
    pub limit: u64,
    /// The network between the two nodes.
    pub interconnect: Interconnect,
}

/// The network between host and drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interconnect {
    /// A cable, as in the paper. The nodes' congestion control applies the limit.
    Cable,
    /// A bridge whose ports apply the limit. The nodes' congestion control uses the same rate.
    Bridge,
    /// A bridge that also merges the frames that wait at its ports. The nodes send at the line's
    /// rate.
    Hop,
}

/// The two policies that the paper compares: with and without aggregation.
pub const POLICIES: [Policy; 2] = [Policy::Adaptive, Policy::PerTlp];

impl Setup {
    /// Creates a setup without a limit below the rate of the line.
    pub const fn new(policy: Policy, ssds: u16) -> Self {
        Self { policy, ssds, limit: LINE, interconnect: Interconnect::Cable }
    }

    /// Builds the simulator's configuration.
    pub fn config(&self, workload: Workload) -> Config {
        let port = PortConfig {
            second: None,
            transport: TransportConfig::Raw(self.carrier()),
            link: link(BRIDGE, ENDPOINT),
            drive: DriveConfig {
                size: 64 << 20,
                read_request: READ_REQUEST,
                reads_in_flight: READS_IN_FLIGHT,
                max_payload: MPS,
                ..DriveConfig::new("RAID0", Timing::SATA_SSD.raid0(self.ssds))
            },
        };
        let switch = SwitchConfig {
            aggregation: self.policy,
            encapsulation: Encapsulation { frame: FRAME_EXTRA, tlp: TLP_EXTRA },
            ..SwitchConfig::new(MPS, vec![port])
        };
        let host = HostConfig {
            root: ROOT,
            software: SOFTWARE,
            workload: workload.clone(),
            link: link(ROOT_PORT, BRIDGE),
            attached: Attached::Switch(switch),
        };
        Config { hosts: vec![host], network: self.network(), ..Config::nvme_tsn_direct(workload) }
    }

    /// Returns the name of the run for messages.
    pub fn name(&self, load: &str) -> String {
        let gigabits = self.limit as f64 / 1e9;
        format!("{load}, {}, {} SSDs at {gigabits} Gb/s", self.policy, self.ssds)
    }

    fn carrier(&self) -> RawConfig {
        let limit = if self.interconnect == Interconnect::Hop { LINE } else { self.limit };
        let rate = congestion::Rate { bits_per_second: limit, burst: 1 };
        let congestion = congestion::Config::Rate(rate);
        // Acknowledgements travel with data, or alone after the time of two frames at the lowest
        // rate.
        let ack_delay = Duration::from_us(25);
        let patience = raw::Settings { ack_delay, ack_after: 64, ..raw::Settings::new(0) };
        let settings = raw::Settings { congestion, ..patience };
        RawConfig { stations: [0, 1], priority: 0, settings }
    }

    fn network(&self) -> NetworkConfig {
        // The rate limit holds frames back, not the interface.
        let station = StationConfig::new(Rate::G10, PIPELINE, 8);
        let [host, drives] = [0, 1].map(CableEnd::station);
        let cable = |a, b| CableConfig::new(a, b, CABLE);
        let (bridges, cables) = match self.interconnect {
            Interconnect::Cable => (Vec::new(), vec![cable(host, drives)]),
            Interconnect::Bridge | Interconnect::Hop => {
                let port = |number| CableEnd::Bridge(0, number);
                (vec![self.bridge()], vec![cable(host, port(0)), cable(port(1), drives)])
            }
        };
        NetworkConfig {
            stations: vec![station.clone(), station],
            bridges,
            cables,
            ..NetworkConfig::default()
        }
    }

    fn bridge(&self) -> BridgeConfig {
        let limit = port::RateStep { at: Instant::ZERO, bits_per_second: self.limit };
        let merge = if self.interconnect == Interconnect::Hop { ETHERNET_PAYLOAD } else { 0 };
        let port = port::Config { rate_steps: vec![limit], merge, ..port::Config::new(Rate::G10) };
        BridgeConfig {
            ports: vec![port; 2],
            mode: bridge::Mode::StoreAndForward,
            delay: BRIDGE_DELAY,
            jitter: Duration::ZERO,
        }
    }
}

/// Maximum payload of an Ethernet frame in bytes (IEEE 802.3-2022, 4.2.7.1).
const ETHERNET_PAYLOAD: usize = 1500;
/// Delay of the Ethernet bridge, if there is one: assumed.
const BRIDGE_DELAY: Duration = Duration::from_ns(500);
/// Time of encapsulation and Ethernet in an FPGA, in each direction of each bridge: assumed.
const PIPELINE: Duration = Duration::from_ns(245);
/// Propagation time of two metres of cable.
const CABLE: Duration = Duration::from_ns(10);
const ROOT_PORT: PortLatency =
    PortLatency { transmit: Duration::from_ns(50), receive: Duration::from_ns(50) };
const BRIDGE: PortLatency =
    PortLatency { transmit: Duration::from_ns(134), receive: Duration::from_ns(134) };
const ENDPOINT: PortLatency =
    PortLatency { transmit: Duration::from_ns(130), receive: Duration::from_ns(130) };

/// Returns the FPGA's PCIe link: Gen2 with 8 lanes.
const fn link(downstream_port: PortLatency, upstream_port: PortLatency) -> LinkConfig {
    LinkConfig {
        generation: Generation::Gen2,
        width: 8,
        propagation: Duration::from_ns(1),
        downstream_port,
        upstream_port,
        buffer: Buffer { headers: [64; 3], data: [1024, 64, 1024] },
    }
}

/// A host with more than 4 GiB of memory, and buffers above 4 GiB.
const ROOT: RootConfig = RootConfig {
    max_payload: MPS,
    completion_size: MPS,
    memory: 96 << 20,
    memory_at: RootConfig::HIGH_MEMORY,
    // ExpEther carries plain TLPs.
    push: Mode::Off,
    ..RootConfig::NVME_TSN
};

const SOFTWARE: SoftwareConfig = SoftwareConfig {
    start_delay: Duration::ZERO,
    submit: Duration::from_ns(1_500),
    completions: CompletionMode::Interrupt { latency: Duration::from_us(5) },
    complete: Duration::from_ns(1_500),
    max_payload: MPS,
    max_read_request: 512,
    registration: None,
};

/// Returns one sequential transfer of `bytes`, as with `fio --bs`. The block layer splits the
/// transfer.
pub fn transfer(write: bool, bytes: usize) -> Workload {
    let rw = if write { Rw::Write } else { Rw::Read };
    Workload::Fio(Fio { size: bytes as u64, ..Fio::new(rw, bytes, 1) })
}

/// Returns consecutive transfers of 4 KiB: so many that the first ones do not affect the mean.
pub fn small(write: bool) -> Workload {
    let rw = if write { Rw::Write } else { Rw::Read };
    Workload::Fio(Fio { size: 50 * 4096, ..Fio::new(rw, 4096, 1) })
}

/// Returns the mean time of a transfer in microseconds, two decimals.
pub fn latency(report: &Report) -> f64 {
    let latency = &report.hosts[0].latency;
    let ps = latency.sum_ps() / u128::from(latency.count().max(1));
    ((ps + 5_000) / 10_000) as f64 / 100.0
}

/// Returns the throughput in 10^6 bytes per second, one decimal.
pub fn throughput(report: &Report) -> f64 {
    (report.hosts[0].throughput() as f64 / 1e5).round() / 10.0
}

/// Returns TLPs per frame in the direction of the data, two decimals.
pub fn tlps_per_frame(report: &Report, write: bool) -> f64 {
    let tunnel = &report.tunnels[usize::from(!write)];
    (tunnel.tlps as f64 / tunnel.frames.max(1) as f64 * 100.0).round() / 100.0
}

/// Returns the increase from `off` to `on` in per cent, one decimal.
pub fn gain(on: f64, off: f64) -> f64 {
    ((on / off - 1.0) * 1000.0).round() / 10.0
}
