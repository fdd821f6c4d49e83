//! The configuration of a world.

use crate::drive::DriveConfig;
use crate::kernel::Limits;
use crate::network::NetworkConfig;
use crate::node::RootConfig;
use crate::pcie::LinkConfig;
use crate::transport::{Encapsulation, TransportConfig};
use crate::workload::{SoftwareConfig, Workload};
use std::collections::BTreeMap;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use wire::frame::Paths;
use wire::{Duration, Instant};

/// The configuration of a simulation. Equal configurations give identical runs.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Seed of all random numbers, except those that have their own seeds.
    pub seed: u64,
    /// Limits of events and virtual time.
    pub limits: Limits,
    /// The hosts. A network with streams needs no host.
    pub hosts: Vec<HostConfig>,
    /// The network between hosts and device nodes. Empty if no transport needs a network.
    pub network: NetworkConfig,
    /// Power losses of device nodes.
    pub outages: Vec<Outage>,
    /// Times between the kill of a device node's process and the start of the next one, which goes
    /// on with the session. The drive has records, and its queues and media keep their state.
    pub kills: Vec<Outage>,
    /// Device nodes that move from one host to another.
    pub moves: Vec<Move>,
    /// Drives that several hosts use at the same time.
    pub shared: Vec<SharedDrive>,
    /// Other events that disturb a node or a drive.
    pub disturbances: Vec<Disturbance>,
    /// The minimum run time, above zero. Required without hosts. With hosts, the simulation also
    /// runs until all workloads are complete. Events exactly at the end are not included.
    pub runtime: Option<Duration>,
}

/// An event that disturbs a node or the drives of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// When the event happens.
    pub at: Instant,
    /// What happens.
    pub kind: DisturbanceKind,
}

/// The kind of a [`Disturbance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisturbanceKind {
    /// The processor of a station does other work for this time. The station has a processor.
    Stall(usize, Duration),
    /// The interface of a station loses its connections and all frames. Its nodes keep their state;
    /// the other ends of the connections do not notice.
    ConnectionReset(usize),
    /// The driver of a host resets all its drives. Outstanding commands fail.
    DriveReset(usize),
}

/// The move of a device node and its drive from one host to another. Both hosts need a port for
/// this drive, with transports to the same station. The device node rejects the second host before
/// the move, and the first host after the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// From this time on the first host starts no more commands. The node moves when the commands
    /// under way have ended.
    pub at: Instant,
    /// The first host (index) and its port.
    pub from: [usize; 2],
    /// The second host (index) and its port. This host boots when all its links are up.
    pub to: [usize; 2],
}

/// A drive with several controllers. Each controller has a device node, a PCIe link and a tunnel of
/// its own; all device nodes are at one station. Media, firmware, namespaces and reservations are
/// common. Every namespace is attached to every controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDrive {
    /// The controllers in the order of their CNTLID, which is also the order of hosts. The drive has
    /// the configuration at the first one's port.
    pub controllers: Vec<ControllerPort>,
}

/// The port of a host that leads to a controller of a shared drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerPort {
    /// The host (index) and its port.
    pub port: [usize; 2],
    /// Host Identifier that the drive binds to the controller, not all zeroes.
    pub host_identifier: [u8; 16],
}

/// A time during which a device node, with all its stations, and its drive are off. Without power,
/// only media that are not volatile keep their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// A station of the device node.
    pub station: usize,
    /// Start of the outage.
    pub from: Instant,
    /// End of the outage; `None`: never.
    pub until: Option<Instant>,
}

/// A host and the components below its root port.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Root complex and memory.
    pub root: RootConfig,
    /// CPU times and limits of the software.
    pub software: SoftwareConfig,
    /// The workload of the host.
    pub workload: Workload,
    /// The link below the root port.
    pub link: LinkConfig,
    /// The drive or switch below the root port.
    pub attached: Attached,
}

impl HostConfig {
    /// How long the links of the host may be interrupted without being down.
    pub fn outage(&self) -> Duration {
        match &self.attached {
            Attached::Direct(_) => Duration::ZERO,
            Attached::Switch(switch) => switch.survive,
        }
    }
}

impl HostConfig {
    /// The drives of the host.
    pub fn drives(&self) -> Vec<&DriveConfig> {
        match &self.attached {
            Attached::Direct(drive) => vec![drive],
            Attached::Switch(switch) => switch.drives(),
        }
    }

    /// The tunnel links of the host, in the order of the simulation's numbers.
    pub fn links(&self) -> Vec<TunnelLink<'_>> {
        let (mut links, mut drives) = (Vec::new(), 0);
        if let Attached::Switch(switch) = &self.attached {
            switch.add_links(None, &mut links, &mut drives);
        }
        links
    }

    /// The switches of the host.
    pub(super) fn switches(&self) -> Vec<&SwitchConfig> {
        match &self.attached {
            Attached::Direct(_) => Vec::new(),
            Attached::Switch(switch) => switch.all(),
        }
    }
}

/// A tunnel link of a host.
#[derive(Clone, Copy, Debug)]
pub struct TunnelLink<'a> {
    /// The link above the switch of this link, by number at the host; `None`: the host's own
    /// switch.
    pub above: Option<usize>,
    /// The switch above.
    pub switch: &'a SwitchConfig,
    /// The downstream port of this switch.
    pub port: usize,
    /// The transport of its first path.
    pub transport: &'a TransportConfig,
    /// The transport of the second path, if there is one.
    pub second: Option<&'a TransportConfig>,
    /// The PCIe link at the far end.
    pub link: &'a LinkConfig,
    /// The drive at the far end, with its number at the host; `None`: a switch.
    pub drive: Option<(usize, &'a DriveConfig)>,
}

impl<'a> TunnelLink<'a> {
    /// The transports of its paths, one or two.
    pub fn transports(&self) -> impl Iterator<Item = &'a TransportConfig> + use<'a> {
        [self.transport].into_iter().chain(self.second)
    }
}

/// The component below a root port.
#[derive(Clone, Debug)]
pub enum Attached {
    /// A directly attached drive, without a tunnel.
    Direct(DriveConfig),
    /// The distributed switch.
    Switch(SwitchConfig),
}

/// The distributed switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Max_Payload_Size supported, in bytes.
    pub max_payload: usize,
    /// Interval between keepalives on idle links.
    pub keepalive: Duration,
    /// A link that has received nothing for this time is lost.
    pub loss_limit: Duration,
    /// How long a tunnel stays up without a connection; 0: not at all.
    pub survive: Duration,
    /// How tunnels with a second path use both.
    pub paths: Paths,
    /// The most bytes of sent frames that each end of a tunnel keeps until they are acknowledged.
    pub keep: usize,
    /// The most bytes of TLPs in a tunnel frame.
    pub max_frame: usize,
    /// Aggregation policy of both ends.
    pub aggregation: Policy,
    /// Additional bytes in frames of raw Ethernet.
    pub encapsulation: Encapsulation,
    /// Limit of the bits of tunnel frames per second, without transport headers. Applies to all
    /// links of the host's end together, and to each device node.
    pub rate_limit: Option<Rate>,
    /// The downstream ports with drives.
    pub ports: Vec<PortConfig>,
    /// The downstream ports with cascaded switches, numbered after the ports with drives. Together
    /// there are 1 to 32 ports.
    pub switches: Vec<LowerConfig>,
}

impl SwitchConfig {
    /// The drives behind the switch, in the order in which enumeration finds them.
    pub fn drives(&self) -> Vec<&DriveConfig> {
        let ports = self.all().into_iter().flat_map(|switch| &switch.ports);
        ports.map(|port| &port.drive).collect()
    }

    /// This switch and the switches below.
    pub(super) fn all(&self) -> Vec<&Self> {
        let below = self.switches.iter().flat_map(|lower| lower.switch.all());
        [self].into_iter().chain(below).collect()
    }

    /// Adds the links of this switch and the switches below, as the world numbers them.
    fn add_links<'a>(
        &'a self,
        above: Option<usize>,
        links: &mut Vec<TunnelLink<'a>>,
        drives: &mut usize,
    ) {
        let first = links.len();
        let of = |port, (transport, second), link, drive| TunnelLink {
            above,
            switch: self,
            port,
            transport,
            second,
            link,
            drive,
        };
        for (number, port) in self.ports.iter().enumerate() {
            let transports = (&port.transport, port.second.as_ref());
            links.push(of(number, transports, &port.link, Some((*drives, &port.drive))));
            *drives += 1;
        }
        let own = self.ports.len();
        for (number, lower) in self.switches.iter().enumerate() {
            let transports = (&lower.transport, lower.second.as_ref());
            links.push(of(own + number, transports, &lower.link, None));
        }
        for (number, lower) in self.switches.iter().enumerate() {
            lower.switch.add_links(Some(first + own + number), links, drives);
        }
    }

    /// The transports of the switch's links, by port and path.
    pub(super) fn transports(&self) -> impl Iterator<Item = Vec<&TransportConfig>> {
        let ports = self.ports.iter().map(|port| (&port.transport, &port.second));
        let lower = self.switches.iter().map(|lower| (&lower.transport, &lower.second));
        ports.chain(lower).map(|(first, second)| [first].into_iter().chain(second).collect())
    }
}

/// A downstream port on a switch node, and the switch of this node.
#[derive(Clone, Debug)]
pub struct LowerConfig {
    /// The transport between the upper switch and the node of this port.
    pub transport: TransportConfig,
    /// A second path, through the network.
    pub second: Option<TransportConfig>,
    /// The link between the port and the switch.
    pub link: LinkConfig,
    /// The switch, which has no host of its own.
    pub switch: SwitchConfig,
}

/// A downstream port on a device node, and its drive.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// The transport between the two halves of the switch.
    pub transport: TransportConfig,
    /// A second path, through the network.
    pub second: Option<TransportConfig>,
    /// The link below the port.
    pub link: LinkConfig,
    /// The drive below the port.
    pub drive: DriveConfig,
}

impl Config {
    /// All drives, host by host in the order of ports.
    pub fn drives(&self) -> impl Iterator<Item = &DriveConfig> {
        self.hosts.iter().flat_map(HostConfig::drives)
    }

    /// Hosts that compare no data, because another host writes the same blocks of a shared drive;
    /// each with the first such host.
    pub fn uncompared(&self) -> BTreeMap<usize, usize> {
        let workload = |host: usize| self.hosts[host].workload.fio();
        let writes_of = |host, other| {
            let (Some(own), Some(writer)) = (workload(host), workload(other)) else { return false };
            let meets = own.range().start.max(writer.range().start)
                < own.range().end.min(writer.range().end);
            host != other && writer.rw.writes() && writer.nsid == own.nsid && meets
        };
        let mut found = BTreeMap::new();
        for SharedDrive { controllers } in &self.shared {
            let hosts = controllers.iter().map(|controller| controller.port[0]);
            for host in hosts.clone() {
                if let Some(other) = hosts.clone().find(|other| writes_of(host, *other)) {
                    found.entry(host).or_insert(other);
                }
            }
        }
        found
    }
}
