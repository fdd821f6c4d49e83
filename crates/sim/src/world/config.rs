//! A world in plain data.

use crate::drive::DriveConfig;
use crate::kernel::Limits;
use crate::network::NetworkConfig;
use crate::node::RootConfig;
use crate::pcie::LinkConfig;
use crate::transport::{Encapsulation, TransportConfig};
use crate::workload::{SoftwareConfig, Workload};
use switch::aggregate::Policy;
use switch::congestion::Rate;
use wire::{Duration, Instant};

/// Everything that makes a simulation: the same value gives the same run, bit
/// for bit.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of all randomness.
    pub seed: u64,
    /// How far it may go.
    pub limits: Limits,
    /// The hosts.
    pub hosts: Vec<HostConfig>,
    /// The network between them and the device nodes; empty if no transport
    /// needs it.
    pub network: NetworkConfig,
    /// When device nodes are without power.
    pub outages: Vec<Outage>,
    /// Device nodes that go from one host to another while they run.
    pub moves: Vec<Move>,
}

/// A device node goes from one host to another, with its drive. Both hosts have
/// a port for it, over transports to the same station; the drive named there is
/// the same. It turns the second host away until then, and the first after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When the first host is told to let go: it begins no more commands, and
    /// the device goes when those under way have ended.
    pub at: Instant,
    /// The first host, and its port.
    pub from: [usize; 2],
    /// The second. It boots when all its links are up, so not before this one.
    pub to: [usize; 2],
}

/// A device node loses its power, and with it everything but what is on the
/// media of its drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its station of the network.
    pub station: usize,
    /// When.
    pub from: Instant,
    /// When it is back; `None`: never.
    pub until: Option<Instant>,
}

/// A host with what hangs off its root port.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Root complex and memory.
    pub root: RootConfig,
    /// The software's costs.
    pub software: SoftwareConfig,
    /// What it does.
    pub workload: Workload,
    /// The link below the root port.
    pub link: LinkConfig,
    /// What is there.
    pub attached: Attached,
}

impl HostConfig {
    /// Its drives.
    pub fn drives(&self) -> Vec<&DriveConfig> {
        match &self.attached {
            Attached::Direct(drive) => vec![drive],
            Attached::Switch(switch) => switch.drives(),
        }
    }
}

/// What is below a root port.
#[derive(Clone, Debug)]
pub enum Attached {
    /// A drive: the tunnel left out, nothing else.
    Direct(DriveConfig),
    /// The distributed switch.
    Switch(SwitchConfig),
}

/// The distributed switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Largest payload supported in bytes.
    pub max_payload: usize,
    /// Keepalive of idle links.
    pub keepalive: Duration,
    /// A link on which nothing was heard is lost after this.
    pub loss_limit: Duration,
    /// Bytes of TLPs in a tunnel frame at most.
    pub max_frame: usize,
    /// When TLPs leave, on both sides.
    pub aggregation: Policy,
    /// What frames of the transport carry beside ours; over raw Ethernet.
    pub encapsulation: Encapsulation,
    /// What the host's side may send over all links together, and each device
    /// node over its own: bits of frames a second, without the headers of what
    /// carries them.
    pub rate_limit: Option<Rate>,
    /// Its downstream ports with drives.
    pub ports: Vec<PortConfig>,
    /// Those with further switches, behind the others: a cascade. Together they
    /// are 1 to 32.
    pub switches: Vec<LowerConfig>,
}

impl SwitchConfig {
    /// The drives behind it, in the order in which enumeration finds them.
    pub fn drives(&self) -> Vec<&DriveConfig> {
        let own = self.ports.iter().map(|port| &port.drive);
        own.chain(self.switches.iter().flat_map(|lower| lower.switch.drives())).collect()
    }

    /// It and those below.
    pub(super) fn all(&self) -> Vec<&Self> {
        let below = self.switches.iter().flat_map(|lower| lower.switch.all());
        [self].into_iter().chain(below).collect()
    }

    /// What carries its links, port by port.
    pub(super) fn transports(&self) -> impl Iterator<Item = &TransportConfig> {
        let lower = self.switches.iter().map(|lower| &lower.transport);
        self.ports.iter().map(|port| &port.transport).chain(lower)
    }
}

/// A downstream port on a switch node, and the switch there.
#[derive(Clone, Debug)]
pub struct LowerConfig {
    /// How the port and the switch node reach each other.
    pub transport: TransportConfig,
    /// The link between the port and the switch.
    pub link: LinkConfig,
    /// The switch, without a host of its own.
    pub switch: SwitchConfig,
}

/// A downstream port on a device node, and its drive.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// How the two halves of the switch reach each other.
    pub transport: TransportConfig,
    /// The link below the port.
    pub link: LinkConfig,
    /// The drive there.
    pub drive: DriveConfig,
}

impl Config {
    /// All drives, host by host in the order of ports.
    pub fn drives(&self) -> impl Iterator<Item = &DriveConfig> {
        self.hosts.iter().flat_map(HostConfig::drives)
    }
}
