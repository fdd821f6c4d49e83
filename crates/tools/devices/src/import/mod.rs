//! Files of a running node as a part of a plan: `tc -j`, `ethtool --json --show-mm`, `bridge -j vlan
//! show` and YANG instance data.

mod linux;

pub(crate) use linux::credit_based;

use crate::json;
use crate::yang;
use serde_json::{Map, Value};
use sim::ethernet::Rate;
use sim::ethernet::port::{Config, Preemption};
use std::collections::BTreeMap;
use tsn::psfp::{self, GateConfig};
use tsn::{Clock, Cqf, taprio};

/// The table of a node in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `[bridges.NAME]`.
    Bridge,
    /// `[nodes.NAME]`.
    Station,
    /// `[hosts.NAME.link]`.
    Host,
}

/// The node from which files are.
#[derive(Clone, Debug)]
pub struct Target {
    /// The table of the node.
    pub kind: Kind,
    /// The name of the node in the plan.
    pub name: String,
    /// The neighbour at each interface. Empty: interfaces have the names of neighbours, and the
    /// bridge that of the node.
    pub peers: BTreeMap<String, String>,
}

/// A file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, for messages.
    pub name: String,
    /// The interface about which it is, if its text does not name it.
    pub interface: Option<String>,
    /// Its text.
    pub text: String,
}

/// A part of a plan.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The text, for `include`.
    pub text: String,
    /// What was read, but has no place in the text.
    pub warnings: Vec<String>,
}

/// Reads the files of a node.
///
/// # Errors
/// The file with the path of the mistake, and the mistake.
pub fn import(target: &Target, files: &[File]) -> Result<Imported, String> {
    let mut found = Found::new(target);
    for file in files {
        let mut own = Vec::new();
        found.read(file, &mut own).map_err(|message| format!("{}: {message}", file.name))?;
        found.warnings.extend(own.into_iter().map(|text| format!("{}: {text}", file.name)));
    }
    Ok(found.finish())
}

/// What is known of a node.
pub(crate) struct Found<'a> {
    target: &'a Target,
    pub(crate) ports: BTreeMap<String, Config>,
    /// Filters with the frames to which they apply.
    pub(crate) filters: Vec<(String, psfp::Config)>,
    /// Cyclic queues: the internal priorities of two cycles of equal length.
    cyclic: Vec<GateConfig>,
    warnings: Vec<String>,
}

impl<'a> Found<'a> {
    fn new(target: &'a Target) -> Self {
        let (ports, filters) = (BTreeMap::new(), Vec::new());
        Self { target, ports, filters, cyclic: Vec::new(), warnings: Vec::new() }
    }

    /// Returns the port of an interface. `None` if the interface is not one of the ports.
    pub(crate) fn port(&mut self, interface: &str) -> Option<&mut Config> {
        let peers = &self.target.peers;
        let peer = match peers.get(interface) {
            Some(peer) => peer.as_str(),
            None if peers.is_empty() && interface != self.target.name => interface,
            None => return None,
        };
        Some(self.ports.entry(peer.to_owned()).or_insert_with(|| Config::new(Rate::G1)))
    }

    /// Returns the preemption of a port, without express classes at first.
    pub(crate) fn preemption(port: &mut Config) -> &mut Preemption {
        port.preemption.get_or_insert(Preemption {
            express: 0,
            fragment: Default::default(),
            advance: Default::default(),
            verify: Default::default(),
        })
    }

    /// Adds a filter. A gate that only assigns two priorities in turn is that of cyclic queues.
    pub(crate) fn filter(&mut self, frames: String, filter: psfp::Config) {
        if let psfp::Config { max_sdu: None, gate: Some(gate), meter: None, .. } = &filter
            && let [first, second] = &gate.entries[..]
            && first.ipv.is_some()
            && second.ipv.is_some()
            && first.interval == second.interval
        {
            if !self.cyclic.contains(gate) {
                self.cyclic.push(gate.clone());
            }
            return;
        }
        if !self.filters.iter().any(|(own, _)| *own == frames) {
            self.filters.push((frames, filter));
        }
    }

    fn read(&mut self, file: &File, warnings: &mut Vec<String>) -> Result<(), String> {
        let value = json::parse(&file.text)?;
        let expected = || {
            let text = "expected the output of tc -j, ethtool --json --show-mm or bridge -j vlan \
                        show, or YANG instance data";
            Err(text.to_owned())
        };
        let Value::Array(all) = &value else {
            // Keys of YANG data begin with the name of a module (RFC 7951, 4).
            let of_module = |keys: &Map<String, Value>| keys.keys().any(|key| key.contains(':'));
            let is_yang = value.as_object().is_some_and(of_module);
            return if is_yang { yang::read(value, self, warnings) } else { expected() };
        };
        let has = |key| all.iter().any(|one| one.get(key).is_some());
        match () {
            () if has("vlans") => linux::vlans(value, self, warnings),
            () if has("pmac-enabled") => linux::merge_layer(value, self, warnings),
            () if has("pref") => linux::filters(file, self, warnings),
            () if has("kind") => linux::qdiscs(file, self, warnings),
            () if all.is_empty() => Ok(()),
            () => expected(),
        }
    }

    /// Finds the cyclic queues of each port, and writes the part of the plan.
    fn finish(mut self) -> Imported {
        for gate in std::mem::take(&mut self.cyclic) {
            let mut used = false;
            for port in self.ports.values_mut() {
                used |= set_cyclic(port, &gate);
            }
            if !used {
                self.warnings.push("cyclic queues: the gates of no port are theirs".to_owned());
            }
        }
        for (peer, port) in &mut self.ports {
            if port.preemption.is_some_and(|own| own.express == 0) {
                port.preemption = None;
                let text = "preemption without express classes, which a queueing discipline names";
                self.warnings.push(format!("port to {peer}: {text}"));
            }
        }
        let Target { kind, name, .. } = self.target;
        let ports = self.ports.iter().map(|(peer, port)| {
            let path = match kind {
                Kind::Bridge => vec!["bridges", name, "ports", peer],
                Kind::Station => vec!["nodes", name, "ports", peer],
                Kind::Host => vec!["hosts", name, "link", "ports", peer],
            };
            (path, port)
        });
        let filters = self.filters.iter().zip(1..);
        let filters = filters.map(|((_, own), number)| (format!("{name}-{number}"), own));
        let mut text = String::new();
        for ((frames, _), number) in self.filters.iter().zip(1..) {
            let frames = frames.replace(char::is_control, " ");
            text += &format!("# Filter {name}-{number}: {frames}\n");
        }
        let ports = ports.collect::<Vec<_>>();
        text += &plan::write_ports(&ports, &filters.collect::<Vec<_>>());
        Imported { text, warnings: self.warnings }
    }
}

/// Replaces the gates of a port by cyclic queues, if they are those of these priorities.
fn set_cyclic(port: &mut Config, gate: &GateConfig) -> bool {
    let Some(list) = port.gates.as_ref().and_then(tsn::Gates::merged) else { return false };
    let class = |at: usize| {
        let priority = usize::from(gate.entries[at].ipv.unwrap_or(0) & 7);
        port.queue_of_priority[priority]
    };
    let pair =
        Cqf { classes: [class(0), class(1)], cycle: gate.entries[0].interval, base: gate.base };
    if pair.check().is_err() {
        return false;
    }
    let cyclic = Config { gates: None, ..port.clone() }.with_cqf(pair, Clock::default());
    let own = cyclic.gates.as_ref().and_then(tsn::Gates::merged);
    let same = own.is_some_and(|own| taprio::words(&own) == taprio::words(&list));
    if same {
        *port = cyclic;
    }
    same
}
