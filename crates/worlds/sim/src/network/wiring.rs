//! An index of the cables of a network: what is at the other end of each, and the way between two
//! stations.

use super::config::{CableEnd, NetworkConfig, ip, mac};
use super::paths::StreamConfig;
use super::tree::Place;
use crate::ethernet::Tag;
use crate::ethernet::streams::Header;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// A cable at one of its ends: its number, and the other end.
type Across = Option<(usize, CableEnd)>;

/// A network with an index of its cables and streams. Queries take no longer in a large network.
#[derive(Clone, Debug)]
pub struct Wiring<'a> {
    /// The network.
    pub network: &'a NetworkConfig,
    stations: Vec<Across>,
    /// By bridge and port.
    bridges: Vec<Vec<Across>>,
    /// The first cable between two nodes, and its ends.
    between: BTreeMap<(Place, Place), (usize, [CableEnd; 2])>,
    /// By cable.
    spanning: Vec<bool>,
    /// By node, stations first: its distance from the root of its tree, and the cable towards it,
    /// its own end first.
    up: Vec<(usize, Option<[CableEnd; 2]>)>,
    /// By station: its streams with a treatment of their own.
    streams: Vec<Vec<usize>>,
}

impl CableEnd {
    /// The node whose end it is.
    pub fn node(self) -> Place {
        match self {
            Self::Station(station) => Place::Station(station),
            Self::Bridge(bridge, _) => Place::Bridge(bridge),
        }
    }
}

impl NetworkConfig {
    /// The index of this network, whose cables have the ends that it has.
    pub fn wiring(&self) -> Wiring<'_> {
        let mut wiring = Wiring {
            network: self,
            stations: vec![None; self.stations.len()],
            bridges: self.bridges.iter().map(|bridge| vec![None; bridge.ports.len()]).collect(),
            between: BTreeMap::new(),
            spanning: Vec::new(),
            up: Vec::new(),
            streams: vec![Vec::new(); self.stations.len()],
        };
        for (number, cable) in self.cables.iter().enumerate() {
            for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let here = match from {
                    CableEnd::Station(station) => &mut wiring.stations[station],
                    CableEnd::Bridge(bridge, port) => &mut wiring.bridges[bridge][port],
                };
                here.get_or_insert((number, to));
                let ends = wiring.between.entry((from.node(), to.node()));
                ends.or_insert((number, [from, to]));
            }
        }
        for (number, stream) in self.streams.iter().enumerate() {
            // A stream of a station that is not there is refused by its check.
            wiring.streams.get_mut(stream.from).into_iter().for_each(|all| all.push(number));
        }
        wiring.span();
        wiring
    }
}

impl<'a> Wiring<'a> {
    fn number(&self, node: Place) -> usize {
        match node {
            Place::Station(station) => station,
            Place::Bridge(bridge) => self.stations.len() + bridge,
        }
    }

    /// Finds the tree.
    fn span(&mut self) {
        let nodes = self.stations.len() + self.bridges.len();
        let mut groups = Groups::new(nodes);
        let mut ways: Vec<Vec<[CableEnd; 2]>> = vec![Vec::new(); nodes];
        for cable in &self.network.cables {
            let [a, b] = [cable.a, cable.b].map(|end| self.number(end.node()));
            let joins = groups.join(a, b);
            self.spanning.push(joins);
            if joins {
                // Seen from the node that is farther from the root.
                ways[a].push([cable.b, cable.a]);
                ways[b].push([cable.a, cable.b]);
            }
        }
        self.up = vec![(usize::MAX, None); nodes];
        for root in 0..nodes {
            if self.up[root].0 != usize::MAX {
                continue;
            }
            self.up[root].0 = 0;
            let mut next = VecDeque::from([root]);
            while let Some(node) = next.pop_front() {
                for way in &ways[node] {
                    let below = self.number(way[0].node());
                    if self.up[below].0 == usize::MAX {
                        self.up[below] = (self.up[node].0 + 1, Some(*way));
                        next.push_back(below);
                    }
                }
            }
        }
    }

    /// By cable: whether it is part of the tree that frames without a path of their own use, as the
    /// spanning tree protocol would have it (IEEE 802.1Q-2022, 13), known from the beginning. A
    /// cable that would close a loop with those before it is not; without loops all are.
    pub fn spanning(&self) -> &[bool] {
        &self.spanning
    }

    /// The cable at a place, and its other end.
    pub fn across(&self, place: CableEnd) -> Option<(usize, CableEnd)> {
        match place {
            CableEnd::Station(station) => self.stations[station],
            CableEnd::Bridge(bridge, port) => self.bridges[bridge][port],
        }
    }

    /// The cable between two nodes, and its ends at the first and at the second; the first one, if
    /// there are several.
    pub fn between(&self, from: Place, to: Place) -> Option<(usize, [CableEnd; 2])> {
        self.between.get(&(from, to)).copied()
    }

    /// The ports that frames leave through on their way over the tree from one station to another,
    /// in their order; none if no way leads there.
    pub fn way(&self, from: usize, to: usize) -> Vec<CableEnd> {
        let (mut here, mut there) = (from, to);
        let (mut way, mut back) = (Vec::new(), Vec::new());
        while here != there {
            if self.up[here].0 >= self.up[there].0 {
                let (_, Some([own, above])) = self.up[here] else { return Vec::new() };
                way.push(own);
                here = self.number(above.node());
            } else {
                let (_, Some([_, above])) = self.up[there] else { return Vec::new() };
                back.push(above);
                there = self.number(above.node());
            }
        }
        way.extend(back.into_iter().rev());
        way
    }

    /// The stations to which the tree leads through a port of a bridge.
    pub(super) fn beyond(&self, bridge: usize, port: usize) -> Vec<usize> {
        let mut stations = Vec::new();
        let mut open = vec![(bridge, port)];
        while let Some((bridge, port)) = open.pop() {
            let other = self.bridges[bridge][port].filter(|(cable, _)| self.spanning[*cable]);
            match other {
                Some((_, CableEnd::Station(station))) => stations.push(station),
                Some((_, CableEnd::Bridge(bridge, entry))) => {
                    let others = (0..self.bridges[bridge].len()).filter(|port| *port != entry);
                    open.extend(others.map(|port| (bridge, port)));
                }
                None => {}
            }
        }
        stations
    }

    /// The stream with paths of its own whose frames go from one station to another with a priority
    /// of the sender. It is not asked whether they carry TCP, which alone has IP addresses here.
    pub fn stream_of(&self, from: usize, to: usize, priority: u8) -> Option<&'a StreamConfig> {
        let tag = self.network.stations[from].tagging.map(|tagging| Tag {
            pcp: tagging.pcp_of_priority[usize::from(priority)],
            vid: tagging.vid,
        });
        let header =
            Header { destination: mac(to), source: mac(from), tag, ip: Some([ip(from), ip(to)]) };
        let mut own = self.streams[from].iter().map(|stream| &self.network.streams[*stream]);
        own.find(|stream| stream.identification.matches(&header))
            .filter(|stream| !stream.paths.is_empty())
    }
}

/// Groups of nodes that cables join: each node leads to one of its group, in the end to the first.
pub struct Groups(Vec<usize>);

impl Groups {
    /// Each node alone.
    pub fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    /// The node that stands for the group of a node.
    pub fn representative(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    /// Joins the groups of two nodes; whether they were two.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        self.0[b] = a;
        a != b
    }
}
