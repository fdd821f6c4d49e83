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
    /// Seconds since the start of the node.
    pub uptime_s: f64,
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
    /// Largest payload of a TLP in bytes (`--mps`).
    pub max_payload: u16,
    /// Bits per second for the frames of all links (`--rate-limit`); null: no limit.
    pub rate_limit: Option<u64>,
    /// Seconds for which a link waits for another connection (`--survive`).
    pub survive_s: f64,
}

impl Limits {
    /// The limits of these settings.
    pub fn of(settings: &NodeSettings) -> Self {
        Self {
            max_payload: settings.max_payload,
            rate_limit: settings.rate_limit.map(|rate| rate.bits_per_second),
            survive_s: settings.survive.as_ns() as f64 / 1e9,
        }
    }
}

/// Rates of a link.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct Rates {
    /// Bytes per second received, headers included.
    pub bytes_received: f64,
    /// Bytes per second sent, headers included.
    pub bytes_sent: f64,
    /// I/O commands per second.
    pub commands: f64,
    /// Name of the link.
    pub link: String,
    /// The interval in seconds.
    pub over_s: f64,
}

impl NodeDocument {
    /// The rates since an earlier state of the same process. A counter that has begun anew counts as
    /// 0.
    pub fn rates_since(&self, earlier: &Self) -> Vec<Rates> {
        let over_s = self.uptime_s - earlier.uptime_s;
        if self.pid != earlier.pid || over_s <= 0.0 {
            return Vec::new();
        }
        let mut rates = Vec::new();
        for link in &self.status.links {
            let before = earlier.status.links.iter().find(|before| before.name == link.name);
            let Some(before) = before else { continue };
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / over_s;
            let traffic = |name: &str| {
                let count = |link: &live::status::LinkStatus| link.traffic.get(name).copied();
                rate(count(link).unwrap_or(0), count(before).unwrap_or(0))
            };
            let commands = |link: &live::status::LinkStatus| {
                link.commands.iter().map(live::status::CommandStatus::count).sum()
            };
            rates.push(Rates {
                bytes_received: traffic("bytes_received"),
                bytes_sent: traffic("bytes_sent"),
                commands: rate(commands(link), commands(before)),
                link: link.name.clone(),
                over_s,
            });
        }
        rates
    }
}
