//! The state of a node at one moment, for `farlane status` and metrics. [`DeviceNode::status`] and
//! [`HostNode::status`] make it.
//!
//! [`DeviceNode::status`]: crate::DeviceNode::status
//! [`HostNode::status`]: crate::host::HostNode::status

use crate::net::{Carrier, LineGate};
use credentials::Identity;
use nvme::Subsystem;
use nvme::times::{BOUNDS_US, CommandTimes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use switch::tunnel::Tunnel;
use wire::Instant;

/// Counters by name, since the start of the node.
pub type Counts = BTreeMap<String, u64>;

/// Lines of counters for the user.
pub type Report = Vec<String>;

/// The links, the drive and the endpoints of a node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct Status {
    /// The drive of a device node; null: the node has none.
    pub drive: Option<DriveStatus>,
    /// Endpoints that a host node offers.
    pub endpoints: Vec<EndpointStatus>,
    /// Links: of a device or switch node to its host, then of a host or switch node to its devices.
    pub links: Vec<LinkStatus>,
    /// Push of a host node; null: other nodes.
    pub push: Option<PushStatus>,
}

/// Whether a link carries TLPs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// The far side is not connected.
    #[default]
    Down,
    /// The link waits for another connection.
    Interrupted,
    /// The link carries TLPs.
    Up,
}

/// A link to another node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct LinkStatus {
    /// Times of I/O commands by kind, from the arrival of the submission queue entry until the
    /// completion queue entry is posted; empty unless the far side uses a drive of this node.
    pub commands: Vec<CommandStatus>,
    /// Free credits for posted TLPs; null: the link is down.
    pub credits: Option<CreditStatus>,
    /// Errors that the function behind the link counted, by their PCIe names.
    pub endpoint_errors: Counts,
    /// Errors that the port counted, by their PCIe names.
    pub errors: Counts,
    /// Group of hosts that may attach, 0: any; null: the far side is a device.
    pub group: Option<u16>,
    /// `uplink` to the host, `port N` to a device; `controller N` or `connection N` if there are
    /// several uplinks.
    pub name: String,
    /// The far side, as connected or configured; null: no host was attached so far.
    pub peer: Option<PeerStatus>,
    /// Reads answered from pushed bytes, and other counters of pushed bytes; empty on a host.
    pub push: Counts,
    /// Peers that were rejected, and requests to move the device; empty on a host.
    pub rejected: Counts,
    /// Smoothed round trip of the TCP connection, as the kernel measures it; null: unknown.
    pub round_trip_ns: Option<u64>,
    /// Time since the link came up; null: it is down.
    pub since_ns: Option<u64>,
    /// Whether the link carries TLPs.
    pub state: LinkState,
    /// Traffic of the link.
    pub traffic: Counts,
}

/// The far side of a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct PeerStatus {
    /// Address.
    pub address: String,
    /// Fingerprint of its key; null: without keys.
    pub fingerprint: Option<String>,
    /// Name in the file of peers; null: without keys.
    pub name: Option<String>,
}

/// Free credits for posted TLPs.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct CreditStatus {
    /// Data.
    pub data_bytes: u64,
    /// Headers: one per TLP.
    pub headers: u64,
    /// How often TLPs waited for credits since the link came up.
    pub stalls: u64,
}

/// Times of commands of one kind.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct CommandStatus {
    /// Number of commands by time. Upper bounds in microseconds: 10, 20, 50, and so on to 1000000;
    /// the last number is of longer times.
    pub bins: Vec<u64>,
    /// `read`, `write`, `flush` or `other`.
    pub kind: String,
    /// Sum of the times.
    pub sum_ns: u64,
}

/// A drive.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct DriveStatus {
    /// Lifetime counters of the SMART log. `units_…`: 512 bytes each.
    pub counters: Counts,
    /// Critical warning byte of the SMART log; 0: healthy.
    pub critical_warning: u8,
    /// Identifies the contents: it changes when data are lost.
    pub generation: String,
    /// Model number.
    pub model: String,
    /// Namespaces.
    pub namespaces: Vec<NamespaceStatus>,
    /// Serial number.
    pub serial: String,
}

/// A namespace.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct NamespaceStatus {
    /// Size of a block.
    pub block_bytes: u64,
    /// Namespace ID.
    pub nsid: u32,
    /// Size.
    pub size_bytes: u64,
    /// Whether it is write protected.
    pub write_protected: bool,
}

/// An endpoint that a host node offers to a VMM.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct EndpointStatus {
    /// PCI address, IDs, serial number and size.
    pub description: String,
    /// Accesses to memory that the VMM has not mapped.
    pub dma_faults: u64,
    /// Number of the endpoint.
    pub number: usize,
    /// Number of the downstream port.
    pub port: usize,
    /// Socket of the endpoint.
    pub socket: String,
    /// Whether a VMM is connected.
    pub used: bool,
}

/// Push of a host node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct PushStatus {
    /// Messages, submission queue entries with and without push, bytes.
    pub counters: Counts,
    /// Commands that were not pushed, or only in part, by reason.
    pub not_pushed: Counts,
}

/// Counters with these names.
pub(crate) fn counts(list: impl IntoIterator<Item = (impl ToString, u64)>) -> Counts {
    list.into_iter().map(|(name, count)| (name.to_string(), count)).collect()
}

/// The counters that are not zero, or `none`.
fn text(counts: &Counts) -> String {
    let counted = counts.iter().filter(|(_, count)| **count > 0);
    let counted: Vec<_> = counted.map(|(name, count)| format!("{name} {count}")).collect();
    if counted.is_empty() { "none".to_owned() } else { counted.join(", ") }
}

impl Status {
    /// One line per group of counters, with their names in this document, and per gate.
    pub(crate) fn report<'a>(&self, gates: impl IntoIterator<Item = &'a LineGate>) -> Report {
        let mut lines: Report = self.links.iter().flat_map(LinkStatus::report).collect();
        for endpoint in &self.endpoints {
            let faults = counts([("dma_faults", endpoint.dma_faults)]);
            lines.push(format!("endpoint {}: {}", endpoint.number, text(&faults)));
        }
        if let Some(push) = &self.push {
            lines.push(format!("push: counters: {}", text(&push.counters)));
            lines.push(format!("push: not_pushed: {}", text(&push.not_pushed)));
        }
        lines.extend(gates.into_iter().map(|gate| format!("gate: {}", gate.report())));
        lines
    }
}

impl LinkStatus {
    /// One line per group of counters that the link has.
    fn report(&self) -> Report {
        let Self { name, traffic, errors, endpoint_errors, push, rejected, .. } = self;
        let groups = [
            ("traffic", traffic),
            ("errors", errors),
            ("endpoint_errors", endpoint_errors),
            ("push", push),
            ("rejected", rejected),
        ];
        let groups = groups.into_iter().filter(|(_, counts)| !counts.is_empty());
        groups.map(|(group, counts)| format!("{name}: {group}: {}", text(counts))).collect()
    }

    /// The state of a link whose end is `tunnel`.
    pub(crate) fn new(now: Instant, name: String, tunnel: &Tunnel) -> Self {
        let up_since = tunnel.up_since();
        let free = tunnel.queue().posted_credits();
        let credits = CreditStatus {
            data_bytes: u64::from(free.data) * 16,
            headers: free.headers.into(),
            stalls: tunnel.queue().credit_stalls(),
        };
        Self {
            credits: up_since.map(|_| credits),
            name,
            since_ns: up_since.map(|since| (now - since).as_ns()),
            state: match up_since {
                None => LinkState::Down,
                Some(_) if tunnel.is_interrupted() => LinkState::Interrupted,
                Some(_) => LinkState::Up,
            },
            traffic: counts(tunnel.counters().list()),
            ..Self::default()
        }
    }

    /// Sets what the connection knows.
    pub(crate) fn connected_by(&mut self, carrier: &Carrier) {
        self.round_trip_ns = carrier.round_trip().map(|time| time.as_nanos() as u64);
    }
}

impl PeerStatus {
    /// The far side at `address`, with its identity under TLS.
    pub(crate) fn new(address: String, identity: Option<&Arc<Identity>>) -> Self {
        Self {
            address,
            fingerprint: identity.map(|identity| identity.fingerprint.to_string()),
            name: identity.map(|identity| identity.name.to_string()),
        }
    }
}

/// The times of commands by kind.
pub(crate) fn commands(times: &CommandTimes) -> Vec<CommandStatus> {
    let status = |(kind, times): (&str, nvme::times::Histogram)| CommandStatus {
        bins: times.bins.into(),
        kind: kind.to_owned(),
        sum_ns: times.sum_ns.try_into().unwrap_or(u64::MAX),
    };
    times.list().map(status).into()
}

impl CommandStatus {
    /// Number of commands.
    pub fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The least bound, in microseconds, that this share of the commands did not exceed; `None` without
    /// commands or beyond the last bound.
    pub fn quantile_us(&self, share: f64) -> Option<u64> {
        let (count, mut seen) = (self.count(), 0);
        let bins = self.bins.iter().zip(BOUNDS_US);
        let mut reached = bins.filter_map(|(bin, bound)| {
            seen += bin;
            (count > 0 && seen as f64 >= share * count as f64).then_some(bound)
        });
        reached.next()
    }
}

impl DriveStatus {
    pub(crate) fn new(subsystem: &Subsystem) -> Self {
        let (drive, history) = (subsystem.drive(), subsystem.history());
        let namespace = |(nsid, one): (u32, &nvme::state::Namespace)| NamespaceStatus {
            block_bytes: 1 << one.block_shift,
            nsid,
            size_bytes: one.blocks << one.block_shift,
            write_protected: one.write_protected,
        };
        let counters = [
            ("media_errors", history.media_errors),
            ("power_cycles", history.power_cycles),
            ("reads", history.reads),
            ("units_read", history.units_read),
            ("units_written", history.units_written),
            ("unsafe_shutdowns", history.unsafe_shutdowns),
            ("writes", history.writes),
        ];
        let counters = counters.map(|(name, count)| (name, count.min(u64::MAX.into()) as u64));
        let mut counters = counts(counters);
        counters.insert("error_log_entries".to_owned(), history.errors);
        Self {
            counters,
            critical_warning: subsystem.critical_warning(),
            generation: format!("{:016x}", drive.incarnation),
            model: drive.model.clone(),
            namespaces: subsystem.namespaces().map(namespace).collect(),
            serial: drive.serial.clone(),
        }
    }
}
