//! The topology as a picture, from the hosts at the top to the drives at the
//! bottom.

mod draw;
mod map;
mod place;
mod spread;
#[cfg(test)]
mod tests;

use crate::simulate::places;
use draw::Drawing;
use report::time;
use sim::Config;
use sim::ethernet::Rate;
use sim::network::{CableEnd, Place};
use sim::pcie::LinkConfig;
use sim::transport::TransportConfig;
use sim::world::{Attached, SharedDrive};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of boxes in a row. Larger networks are drawn in two dimensions.
const MOST_BOXES: usize = 24;

/// A box of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Host(usize),
    Station(usize),
    Bridge(usize),
    Drive(usize, usize),
}

/// A line of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    a: Node,
    b: Node,
    words: String,
    /// Whether the line is a cable, which is drawn thick.
    cable: bool,
    /// Number of the cable in the network.
    number: Option<usize>,
}

#[derive(Debug, Default)]
struct Picture {
    /// Boxes by level, each with its lines of text.
    levels: [Vec<(Node, Vec<String>)>; 5],
    edges: Vec<Edge>,
}

/// Draws the picture. Returns whether it is a map, which needs the page's script.
pub(super) fn svg(config: &Config, named: &dyn Fn(&str) -> String) -> (String, bool) {
    let picture = Picture::new(config, named);
    match picture.is_large() {
        true => (map::svg(&picture), true),
        false => (Drawing::new(&picture).svg(&picture), false),
    }
}

/// Returns the short name of a node for the page's script.
pub(super) fn mark(place: Place) -> String {
    match place {
        Place::Station(station) => format!("s{station}"),
        Place::Bridge(bridge) => format!("b{bridge}"),
    }
}

fn pcie(link: &LinkConfig) -> String {
    format!("PCIe {:?} ×{}", link.generation, link.width)
}

/// Formats a rate with its unit.
fn rate(rate: Rate) -> String {
    let name = rate.to_string();
    let (number, unit) = name.split_at(name.len() - 1);
    format!("{number} {unit}b/s")
}

impl Picture {
    fn is_large(&self) -> bool {
        self.levels.iter().any(|level| level.len() > MOST_BOXES)
    }

    fn new(config: &Config, named: &dyn Fn(&str) -> String) -> Self {
        let mut picture = Self::default();
        let network = &config.network;
        let mut level_of = vec![3; network.stations.len()];
        let mut switches = BTreeSet::new();
        for (_, link) in places::links(config) {
            let Some(([near, far], _)) = link.transport.stations() else { continue };
            if link.above.is_none() {
                level_of[near] = 1;
            }
            if link.drive.is_none() {
                switches.insert(far);
            }
        }
        for (host, host_config) in config.hosts.iter().enumerate() {
            let words = vec![named(&format!("host {host}")), pcie(&host_config.link)];
            picture.levels[0].push((Node::Host(host), words));
            if let Attached::Direct(drive) = &host_config.attached {
                picture.drive(host, 0, &drive.serial, drive.size);
                let (a, b) = (Node::Host(host), Node::Drive(host, 0));
                picture.edges.push(Edge {
                    a,
                    b,
                    words: pcie(&host_config.link),
                    cable: true,
                    number: None,
                });
            }
        }
        for (number, (station, level)) in network.stations.iter().zip(level_of).enumerate() {
            let mut more = rate(station.ports[0].rate);
            if let Some(tag) = station.tagging {
                more += &format!(", VLAN {}", tag.vid);
            }
            if station.ports[0].gates.is_some() {
                more += ", gates";
            }
            let name = named(&format!("station {number}"));
            // A host and its interface have one name in the plan.
            let name = match level {
                1 => format!("{name}: Ethernet"),
                _ if switches.contains(&number) => format!("{name}: switch node"),
                _ => name,
            };
            picture.levels[level].push((Node::Station(number), vec![name, more]));
        }
        for (number, bridge) in network.bridges.iter().enumerate() {
            let gates = bridge.ports.iter().any(|port| port.gates.is_some());
            let more =
                format!("{} ports{}", bridge.ports.len(), if gates { ", gates" } else { "" });
            let name = named(&format!("bridge {number}"));
            picture.levels[2].push((Node::Bridge(number), vec![name, more]));
        }
        picture.links(config, named);
        picture.moves(config, named);
        picture.cables(config);
        picture.tell_apart();
        picture.untangle();
        picture
    }

    fn drive(&mut self, host: usize, port: usize, name: &str, size: u64) {
        let size = report::span::size(size);
        let words = vec![name.to_owned(), format!("NVMe, {size}")];
        self.levels[4].push((Node::Drive(host, port), words));
    }

    fn links(&mut self, config: &Config, named: &dyn Fn(&str) -> String) {
        for (number, (host, link)) in places::links(config).enumerate() {
            let over = match link.transport {
                TransportConfig::Tcp(_) => "TLPs over TCP",
                TransportConfig::Raw(_) => "TLPs over raw Ethernet",
                TransportConfig::Pipe(_) => "pipe",
            };
            let stations = link.transport.stations().map(|(stations, _)| stations);
            let (top, stations) = (Node::Host(host), stations.map(|both| both.map(Node::Station)));
            match (link.above, stations) {
                (None, Some([near, _])) => self.edge(top, near, over.to_owned()),
                (Some(_), Some([near, far])) => self.edge(near, far, over.to_owned()),
                _ => {}
            }
            let Some((drive, config_of_drive)) = link.drive else { continue };
            let plain = format!("link {number}");
            let of_plan = Some(named(&plain)).filter(|name| *name != plain);
            let mut name = of_plan.unwrap_or_else(|| config_of_drive.serial.clone());
            let shared = shared_at(config, [host, drive]);
            if let (Some(_), Some((drive, _))) = (shared, name.split_once('@')) {
                name = drive.to_owned();
            }
            let [owner, first] = first_port(config, [host, drive]);
            let bottom = Node::Drive(owner, first);
            if (owner, first) == (host, drive) {
                self.drive(host, drive, &name, config_of_drive.size);
            }
            match stations {
                Some([_, far]) => self.edge(far, bottom, pcie(link.link)),
                None => self.edge(top, bottom, format!("{plain}: {over}")),
            }
        }
    }

    fn moves(&mut self, config: &Config, named: &dyn Fn(&str) -> String) {
        for planned in &config.moves {
            let [host, port] = first_port(config, planned.from);
            let at = time(planned.at.as_ns() as f64);
            let goes = format!("goes to {} at {at}", named(&format!("host {}", planned.to[0])));
            let drive = |(node, _): &&mut (Node, _)| *node == Node::Drive(host, port);
            if let Some((_, words)) = self.levels[4].iter_mut().find(drive) {
                words.push(goes);
            }
        }
    }

    /// Adds a line between two boxes, once for any number of links.
    fn edge(&mut self, a: Node, b: Node, words: String) {
        if !self.edges.iter().any(|edge| (edge.a, edge.b) == (a, b)) {
            self.edges.push(Edge { a, b, words, cable: false, number: None });
        }
    }

    fn cables(&mut self, config: &Config) {
        let node = |place| match place {
            CableEnd::Station(station, _) => Node::Station(station),
            CableEnd::Bridge(bridge, _) => Node::Bridge(bridge),
        };
        let wires = places::wires(&config.network);
        for (number, cable) in config.network.cables.iter().enumerate() {
            let (a, b, words) = (node(cable.a), node(cable.b), rate(wires[2 * number].1));
            self.edges.push(Edge { a, b, words, cable: true, number: Some(number) });
        }
    }

    /// Adds the kind to every name that boxes of different kinds share in the plan.
    fn tell_apart(&mut self) {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let all = || self.levels.iter().flatten();
        all().for_each(|(_, words)| *times.entry(words[0].clone()).or_default() += 1);
        for (node, words) in self.levels.iter_mut().flatten() {
            if times[&words[0]] > 1 {
                words[0] = format!("{} {}", node.kind(), words[0]);
            }
        }
    }

    /// Sorts stations and drives by the boxes to which they are connected, so that fewer lines
    /// cross. Hosts and bridges keep the plan's order.
    fn untangle(&mut self) {
        let mut places: BTreeMap<Node, f64> = BTreeMap::new();
        for (level, nodes) in self.levels.iter_mut().enumerate() {
            let count = nodes.len() as f64;
            let place = |at: usize| (at as f64 + 0.5) / count;
            if ![0, 2].contains(&level) {
                let mut keys = BTreeMap::new();
                for (at, (node, _)) in nodes.iter().enumerate() {
                    let others = self.edges.iter().filter_map(|edge| edge.other(*node));
                    let above: Vec<f64> =
                        others.filter_map(|other| places.get(&other).copied()).collect();
                    let mean = above.iter().sum::<f64>() / above.len() as f64;
                    keys.insert(*node, if above.is_empty() { place(at) } else { mean });
                }
                nodes.sort_by(|(a, _), (b, _)| keys[a].total_cmp(&keys[b]));
            }
            places.extend(nodes.iter().enumerate().map(|(at, (node, _))| (*node, place(at))));
        }
    }
}

impl Node {
    /// Returns the attribute by which the page's script finds the node.
    fn mark(self) -> String {
        let place = match self {
            Self::Station(station) => Place::Station(station),
            Self::Bridge(bridge) => Place::Bridge(bridge),
            Self::Host(_) | Self::Drive(..) => return String::new(),
        };
        format!(" data-n=\"{}\"", mark(place))
    }

    fn fill(self) -> &'static str {
        match self {
            Self::Host(_) => "#dcebf5",
            Self::Station(_) => "#f4f6f8",
            Self::Bridge(_) => "#e2f2ec",
            Self::Drive(..) => "#fbe9dd",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Host(_) => "host",
            Self::Station(_) => "node",
            Self::Bridge(_) => "bridge",
            Self::Drive(..) => "drive",
        }
    }
}

impl Edge {
    /// Returns the attribute by which the page's script finds the cable.
    fn mark(&self) -> String {
        self.number.map_or_else(String::new, |number| format!(" data-c=\"{number}\""))
    }

    fn other(&self, node: Node) -> Option<Node> {
        match (self.a == node, self.b == node) {
            (true, _) => Some(self.b),
            (_, true) => Some(self.a),
            _ => None,
        }
    }
}

/// Returns the shared drive behind a port.
fn shared_at(config: &Config, port: [usize; 2]) -> Option<&SharedDrive> {
    let leads = |drive: &&SharedDrive| drive.controllers.iter().any(|own| own.port == port);
    config.shared.iter().find(leads)
}

/// Returns the port of the drive behind `port`: the first one of a shared drive, or the one at which
/// a drive is at the start, if it moves.
fn first_port(config: &Config, mut port: [usize; 2]) -> [usize; 2] {
    if let Some(drive) = shared_at(config, port) {
        return drive.controllers[0].port;
    }
    for _ in &config.moves {
        match config.moves.iter().find(|planned| planned.to == port) {
            Some(planned) => port = planned.from,
            None => break,
        }
    }
    port
}
