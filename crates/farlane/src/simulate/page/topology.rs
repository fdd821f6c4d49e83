//! The topology as a picture, from the hosts at the top to the drives at the
//! bottom.

use crate::report::escape;
use crate::simulate::places;
use sim::Config;
use sim::network::Place;
use sim::pcie::LinkConfig;
use sim::transport::TransportConfig;
use sim::world::Attached;
use std::collections::BTreeMap;
use std::fmt::Write;

const BOX: (f64, f64) = (136.0, 40.0);
const GAP: f64 = 20.0;
const LEVEL: f64 = 84.0;
const LEAST: f64 = 420.0;

/// A box of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Host(usize),
    Station(usize),
    Bridge(usize),
    Drive(usize, usize),
}

#[derive(Debug, Default)]
struct Picture {
    /// Boxes by level, each with its two lines.
    levels: [Vec<(Node, String, String)>; 5],
    /// Lines with their labels; what is no cable is drawn thin.
    edges: Vec<(Node, Node, String, bool)>,
}

/// The picture and its width.
pub(super) fn svg(config: &Config, named: &dyn Fn(&str) -> String) -> (String, f64) {
    let mut picture = Picture::new(config);
    for (node, name, _) in picture.levels.iter_mut().flatten() {
        if !matches!(node, Node::Drive(..)) {
            *name = named(name);
        }
    }
    picture.svg()
}

fn pcie(link: &LinkConfig) -> String {
    format!("PCIe {:?} ×{}", link.generation, link.width)
}

impl Picture {
    fn new(config: &Config) -> Self {
        let mut picture = Self::default();
        let network = &config.network;
        let mut level_of = vec![3; network.stations.len()];
        for (_, _, port) in places::ports(config) {
            if let Some(([host, _], _)) = port.transport.stations() {
                level_of[host] = 1;
            }
        }
        for (host, of) in config.hosts.iter().enumerate() {
            picture.levels[0].push((Node::Host(host), format!("host {host}"), pcie(&of.link)));
            if let Attached::Direct(drive) = &of.attached {
                picture.drive(host, 0, &drive.serial, drive.size);
                picture.edges.push((Node::Host(host), Node::Drive(host, 0), pcie(&of.link), true));
            }
        }
        for (number, (station, level)) in network.stations.iter().zip(level_of).enumerate() {
            let mut more = format!("{}b/s", station.rate);
            if let Some(tag) = station.tagging {
                more += &format!(", VLAN {}", tag.vid);
            }
            if station.gates.is_some() {
                more += ", gates";
            }
            let name = format!("station {number}");
            picture.levels[level].push((Node::Station(number), name, more));
        }
        for (number, bridge) in network.bridges.iter().enumerate() {
            let gates = bridge.ports.iter().any(|port| port.gates.is_some());
            let more =
                format!("{} ports{}", bridge.ports.len(), if gates { ", gates" } else { "" });
            picture.levels[2].push((Node::Bridge(number), format!("bridge {number}"), more));
        }
        picture.links(config);
        picture.cables(config);
        picture
    }

    fn drive(&mut self, host: usize, port: usize, serial: &str, size: u64) {
        let size = crate::trace::size(size);
        self.levels[4].push((Node::Drive(host, port), serial.to_owned(), format!("NVMe, {size}")));
    }

    fn links(&mut self, config: &Config) {
        for (link, (host, number, port)) in places::ports(config).enumerate() {
            self.drive(host, number, &port.drive.serial, port.drive.size);
            let (top, bottom) = (Node::Host(host), Node::Drive(host, number));
            let over = match &port.transport {
                TransportConfig::Tcp(_) => "TLPs over TCP",
                TransportConfig::Raw(_) => "TLPs over raw Ethernet",
                TransportConfig::Pipe(_) => "pipe",
            };
            match port.transport.stations() {
                Some((stations, _)) => {
                    let [above, below] = stations.map(Node::Station);
                    self.edge(top, above, over.to_owned());
                    self.edge(below, bottom, pcie(&port.link));
                }
                None => self.edge(top, bottom, format!("link {link}: {over}")),
            }
        }
    }

    /// Once, however many links there are.
    fn edge(&mut self, a: Node, b: Node, label: String) {
        if !self.edges.iter().any(|(x, y, ..)| (*x, *y) == (a, b)) {
            self.edges.push((a, b, label, false));
        }
    }

    fn cables(&mut self, config: &Config) {
        let node = |place| match place {
            Place::Station(station) => Node::Station(station),
            Place::Bridge(bridge, _) => Node::Bridge(bridge),
        };
        let wires = places::wires(&config.network);
        for (number, cable) in config.network.cables.iter().enumerate() {
            let label = format!("{}b/s", wires[2 * number].1);
            self.edges.push((node(cable.a), node(cable.b), label, true));
        }
    }

    fn svg(&self) -> (String, f64) {
        let levels: Vec<&Vec<_>> = self.levels.iter().filter(|level| !level.is_empty()).collect();
        let most = levels.iter().map(|level| level.len()).max().unwrap_or(1) as f64;
        let width = (most * (BOX.0 + GAP)).max(LEAST);
        let height = levels.len() as f64 * LEVEL - (LEVEL - BOX.1) + 12.0;
        let mut places = BTreeMap::new();
        for (row, level) in levels.iter().enumerate() {
            let room = width / level.len() as f64;
            for (column, (node, ..)) in level.iter().enumerate() {
                let x = room * (column as f64 + 0.5);
                places.insert(*node, (x, row as f64 * LEVEL + BOX.1 / 2.0 + 6.0));
            }
        }
        let mut out = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"topology\">"
        );
        self.edges.iter().for_each(|edge| line(&mut out, &places, edge));
        for (node, name, more) in self.levels.iter().flatten() {
            node_box(&mut out, places[node], *node, name, more);
        }
        self.edges.iter().for_each(|edge| label(&mut out, &places, edge));
        (out + "</svg>", width)
    }
}

type Places = BTreeMap<Node, (f64, f64)>;

fn line(out: &mut String, places: &Places, edge: &(Node, Node, String, bool)) {
    let (a, b, _, thick) = edge;
    let ((x1, y1), (x2, y2)) = (places[a], places[b]);
    let (stroke, wide) = if *thick { ("#1c2733", 2.0) } else { ("#8a97a3", 1.2) };
    let _ = write!(
        out,
        "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{stroke}\" stroke-width=\"{wide}\"/>"
    );
}

fn label(out: &mut String, places: &Places, edge: &(Node, Node, String, bool)) {
    let ((x1, y1), (x2, y2)) = (places[&edge.0], places[&edge.1]);
    // Nearer to the second end: several that begin at one box spread there.
    let (x, y) = (x1 + (x2 - x1) * 0.62, y1 + (y2 - y1) * 0.62);
    // Beside a line that falls, above one that lies.
    let y = if (y1 - y2).abs() < 1.0 { y - 5.0 } else { y + 4.0 };
    let _ = write!(
        out,
        "<text class=\"mark\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
        escape(&edge.2)
    );
}

fn node_box(out: &mut String, (x, y): (f64, f64), node: Node, name: &str, more: &str) {
    let fill = match node {
        Node::Host(_) => "#dcebf5",
        Node::Station(_) => "#f4f6f8",
        Node::Bridge(_) => "#e2f2ec",
        Node::Drive(..) => "#fbe9dd",
    };
    let (left, top, (width, height)) = (x - BOX.0 / 2.0, y - BOX.1 / 2.0, BOX);
    let (name, more) = (escape(name), escape(more));
    let _ = write!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width}\" height=\"{height}\" rx=\"5\" \
         fill=\"{fill}\" stroke=\"#5b6875\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"font-weight:600;fill:#1c2733\">\
         {name}</text><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{more}</text>",
        y - 3.0,
        y + 12.0
    );
}
