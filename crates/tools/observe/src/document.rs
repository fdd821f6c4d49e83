//! The documents of `farlane status --json` and of a control socket.

use live::NodeSettings;
use live::status::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All nodes that answered.
#[derive(Deserialize, JsonSchema, Serialize)]
pub struct StatusDocument {
    /// The nodes, by their sockets.
    pub nodes: Vec<NodeDocument>,
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u32,
}

/// A node. `curl --unix-socket SOCKET http://node/status` prints it too, without `rates` and
/// `socket`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct NodeDocument {
    /// Fingerprint of its key; null: without `--key`.
    pub key: Option<String>,
    /// Limits in force.
    pub limits: Limits,
    /// Process ID.
    pub pid: u32,
    /// Rates over the last interval, one per link.
    #[serde(default)]
    pub rates: Vec<Rates>,
    /// `device`, `switch` or `host`.
    pub role: String,
    /// The control socket.
    #[serde(default)]
    pub socket: String,
    /// Whether the node serves.
    pub state: NodeState,
    /// Links, drive and endpoints.
    #[serde(flatten)]
    pub status: Status,
    /// Time since the start of the node.
    pub uptime_ns: u64,
    /// Version of farlane.
    pub version: String,
}

/// Whether a node serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// The node waits for its links.
    #[default]
    Starting,
    /// The node serves.
    Serving,
    /// A thread of the node did not answer within 2 s; its part is missing.
    Silent,
}

/// Limits of a node.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct Limits {
    /// Largest payload of a TLP (`--mps`).
    pub max_payload_bytes: u16,
    /// Limit for the frames of all links together (`--rate-limit`); null: none.
    pub rate_limit_bits_per_s: Option<u64>,
    /// How long a link waits for another connection (`--survive`).
    pub survive_ns: u64,
}

impl Limits {
    /// The limits of these settings.
    pub fn of(settings: &NodeSettings) -> Self {
        Self {
            max_payload_bytes: settings.max_payload,
            rate_limit_bits_per_s: settings.rate_limit.map(|rate| rate.bits_per_second),
            survive_ns: settings.survive.as_ns(),
        }
    }
}

/// Rates of a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct Rates {
    /// I/O commands.
    pub commands_per_s: f64,
    /// The interval.
    pub interval_ns: u64,
    /// Name of the link.
    pub link: String,
    /// Received bytes, headers included.
    pub received_bytes_per_s: f64,
    /// Sent bytes, headers included.
    pub sent_bytes_per_s: f64,
}

impl NodeDocument {
    /// The rates since an earlier state of the same process. A counter that has begun anew counts as
    /// 0.
    pub fn rates_since(&self, earlier: &Self) -> Vec<Rates> {
        let interval_ns = self.uptime_ns.saturating_sub(earlier.uptime_ns);
        if self.pid != earlier.pid || interval_ns == 0 {
            return Vec::new();
        }
        let mut rates = Vec::new();
        for link in &self.status.links {
            let before = earlier.status.links.iter().find(|before| before.name == link.name);
            let Some(before) = before else { continue };
            let rate = |now: u64, before: u64| {
                now.saturating_sub(before) as f64 * 1e9 / interval_ns as f64
            };
            let traffic = |name: &str| {
                let count = |link: &live::status::LinkStatus| link.traffic.get(name).copied();
                rate(count(link).unwrap_or(0), count(before).unwrap_or(0))
            };
            let commands = |link: &live::status::LinkStatus| {
                link.commands.iter().map(live::status::CommandStatus::count).sum()
            };
            rates.push(Rates {
                commands_per_s: rate(commands(link), commands(before)),
                interval_ns,
                link: link.name.clone(),
                received_bytes_per_s: traffic("bytes_received"),
                sent_bytes_per_s: traffic("bytes_sent"),
            });
        }
        rates
    }
}
