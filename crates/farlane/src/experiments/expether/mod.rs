//! J. Suzuki et al. (NEC), "End-to-End Adaptive Packet Aggregation for
//! High-Throughput I/O Bus Network Using Ethernet", Hot Interconnects 2014
//! ("the slides"): a host and a RAID0 of SATA SSDs over 10 Gb/s Ethernet, TLPs
//! one a frame or aggregated; three evaluations.

use sim::Config;
use sim::drive::{DriveConfig, Timing};
use sim::node::RootConfig;
use sim::pcie::{Buffer, Generation, LinkConfig, PortLatency};
use sim::transport::{PipeConfig, TransportConfig};
use sim::workload::{Fio, Notice, Rw, SoftwareConfig, Workload};
use sim::world::{Attached, HostConfig, PortConfig, SwitchConfig};
use switch::aggregate::Policy;
use wire::Duration;

/// Bits per second of the prototype's Ethernet.
pub const LINE: u64 = 10_000_000_000;
/// Payload of a TLP: "Size of TLP payload: 128B".
pub const MPS: usize = 128;
/// Preamble and SFD, header, FCS, gap (IEEE 802.3).
const ETHERNET: usize = 8 + 14 + 4 + 12;
/// Payload of an Ethernet frame at most.
const ETHERNET_PAYLOAD: usize = 1500;
/// What the encapsulation adds to a frame beside our own headers: calibrated.
pub const FRAME_EXTRA: usize = 13;
/// And to each TLP: calibrated.
pub const TLP_EXTRA: usize = 11;

/// What the prototype's runs differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Aggregation: adaptive is "with", a frame a TLP is "without".
    pub policy: Policy,
    /// SSDs in the RAID0.
    pub ssds: u16,
    /// Bits per second that the congestion control lets go.
    pub limit: u64,
}

impl Setup {
    /// The simulated prototype.
    pub fn config(&self, workload: Workload) -> Config {
        let port = PortConfig {
            transport: TransportConfig::Pipe(self.wire()),
            link: link(BRIDGE, ENDPOINT),
            drive: DriveConfig {
                size: 64 << 20,
                read_request: 512,
                reads_in_flight: 32,
                max_payload: MPS,
                ..DriveConfig::new("RAID0", Timing::SATA_SSD.raid0(self.ssds))
            },
        };
        let switch =
            SwitchConfig { aggregation: self.policy, ..SwitchConfig::new(MPS, vec![port]) };
        let host = HostConfig {
            root: RootConfig {
                max_payload: MPS,
                completion_size: MPS,
                memory: 96 << 20,
                memory_at: RootConfig::HIGH_MEMORY,
                ..RootConfig::BRIEF
            },
            software: SoftwareConfig {
                submit: Duration::from_ns(1_500),
                notice: Notice::Interrupt { latency: Duration::from_us(5) },
                complete: Duration::from_ns(1_500),
                max_payload: MPS,
                max_read_request: 512,
            },
            workload: workload.clone(),
            link: link(ROOT_PORT, BRIDGE),
            attached: Attached::Switch(switch),
        };
        Config { hosts: vec![host], ..Config::brief_direct(workload) }
    }

    fn wire(&self) -> PipeConfig {
        let overhead = ETHERNET + wire::frame::HEADER + FRAME_EXTRA;
        let largest = 16 + MPS;
        let room = ETHERNET_PAYLOAD - wire::frame::HEADER - FRAME_EXTRA;
        let tlps = (room - wire::frame::HEADER) / (largest + TLP_EXTRA);
        PipeConfig {
            byte: Duration::from_ps(8_000_000_000_000u64.div_ceil(self.limit)),
            latency: Duration::from_ns(1000),
            segment: room - tlps * TLP_EXTRA,
            overhead,
            tlp_overhead: TLP_EXTRA,
            bounds: [84, ETHERNET + ETHERNET_PAYLOAD],
        }
    }
}

const ROOT_PORT: PortLatency =
    PortLatency { transmit: Duration::from_ns(50), receive: Duration::from_ns(50) };
const BRIDGE: PortLatency =
    PortLatency { transmit: Duration::from_ns(134), receive: Duration::from_ns(134) };
const ENDPOINT: PortLatency =
    PortLatency { transmit: Duration::from_ns(130), receive: Duration::from_ns(130) };

const fn link(top: PortLatency, bottom: PortLatency) -> LinkConfig {
    LinkConfig {
        generation: Generation::Gen2,
        width: 8,
        propagation: Duration::from_ns(1),
        top,
        bottom,
        buffer: Buffer { headers: [64; 3], data: [1024, 64, 1024] },
    }
}

/// One sequential transfer of so many bytes.
pub fn block(write: bool, bytes: usize) -> Workload {
    let rw = if write { Rw::Write } else { Rw::Read };
    Workload::Fio(Fio { size: bytes as u64, ..Fio::new(rw, bytes, 1) })
}
