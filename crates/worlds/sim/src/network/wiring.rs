//! An index of the cables of a network: the other end of each cable, and the path between two
//! stations.

use super::config::{CableEnd, NetworkConfig, ip};
use super::paths::StreamConfig;
use super::tree::Place;
use crate::ethernet::streams::Header;
use crate::ethernet::{Mac, Tag};
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// A cable at one of its ends: its number, and the other end.
type Across = Option<(usize, CableEnd)>;

/// A network with an index of its cables and streams, so that queries do not search all cables.
#[derive(Clone, Debug)]
pub struct Wiring<'a> {
    /// The network.
    pub network: &'a NetworkConfig,
    /// The cable at each port of each station.
    stations: Vec<Vec<Across>>,
    /// The cable at each port of each bridge.
    bridges: Vec<Vec<Across>>,
    /// The first cable between two nodes, and its ends.
    between: BTreeMap<(Place, Place), (usize, [CableEnd; 2])>,
    /// For each node, stations first, its cables in order and the node at the other end.
    ways: Vec<Vec<(usize, usize)>>,
    /// Whether each cable is part of the tree.
    spanning: Vec<bool>,
    /// For each node, stations first: the distance from the root of its tree in cables, and the
    /// cable towards the root, with the node's own end first.
    up: Vec<(usize, Option<[CableEnd; 2]>)>,
    /// For each station, the indices of its streams in [`NetworkConfig::streams`].
    streams: Vec<Vec<usize>>,
}

impl CableEnd {
    /// The node of this cable end.
    pub fn node(self) -> Place {
        match self {
            Self::Station(station, _) => Place::Station(station),
            Self::Bridge(bridge, _) => Place::Bridge(bridge),
        }
    }
}

impl NetworkConfig {
    /// Builds the index of the network.
    ///
    /// # Panics
    /// If the station, bridge or port of a cable end does not exist.
    pub fn wiring(&self) -> Wiring<'_> {
        let mut wiring = Wiring {
            network: self,
            stations: self.stations.iter().map(|one| vec![None; one.ports.len()]).collect(),
            bridges: self.bridges.iter().map(|bridge| vec![None; bridge.ports.len()]).collect(),
            between: BTreeMap::new(),
            ways: vec![Vec::new(); self.stations.len() + self.bridges.len()],
            spanning: Vec::new(),
            up: Vec::new(),
            streams: vec![Vec::new(); self.stations.len()],
        };
        for (number, cable) in self.cables.iter().enumerate() {
            for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let here = match from {
                    CableEnd::Station(station, port) => &mut wiring.stations[station][port],
                    CableEnd::Bridge(bridge, port) => &mut wiring.bridges[bridge][port],
                };
                here.get_or_insert((number, to));
                let [node, other] = [from, to].map(|end| wiring.number(end.node()));
                wiring.ways[node].push((number, other));
                let ends = wiring.between.entry((from.node(), to.node()));
                ends.or_insert((number, [from, to]));
            }
        }
        for (number, stream) in self.streams.iter().enumerate() {
            // `StreamConfig::check` reports a station that does not exist.
            wiring.streams.get_mut(stream.from).into_iter().for_each(|all| all.push(number));
        }
        wiring.span();
        wiring
    }
}

impl<'a> Wiring<'a> {
    /// The number of a node in [`Self::ways`].
    pub(super) fn number(&self, node: Place) -> usize {
        match node {
            Place::Station(station) => station,
            Place::Bridge(bridge) => self.stations.len() + bridge,
        }
    }

    /// For each node, stations first, its cables in order and the node at the other end.
    pub(super) fn ways(&self) -> &[Vec<(usize, usize)>] {
        &self.ways
    }

    /// Whether the node with this number in [`Self::ways`] is a station.
    pub(super) fn is_station(&self, node: usize) -> bool {
        node < self.stations.len()
    }

    /// Determines the cables of the tree, and the cable of each node towards the root.
    fn span(&mut self) {
        let nodes = self.stations.len() + self.bridges.len();
        let mut groups = Groups::new(nodes);
        let mut ways: Vec<Vec<[CableEnd; 2]>> = vec![Vec::new(); nodes];
        for cable in &self.network.cables {
            let [a, b] = [cable.a, cable.b].map(|end| self.number(end.node()));
            // Stations forward nothing, so the tree has only their first port.
            let is_leaf = |end| matches!(end, CableEnd::Station(_, 1..));
            let joins = !is_leaf(cable.a) && !is_leaf(cable.b) && groups.join(a, b);
            self.spanning.push(joins);
            if joins {
                // The end at the node that is farther from the root comes first.
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

    /// For each cable, whether it is part of the tree for frames without their own path. The tree
    /// never changes. It replaces the spanning tree protocol (IEEE 802.1Q-2022, 13). A cable that
    /// closes a loop with earlier cables is not part of the tree, nor is one at a further port of a
    /// station.
    pub fn spanning(&self) -> &[bool] {
        &self.spanning
    }

    /// The number of the cable at `place`, and the other end of the cable. `None` without a cable.
    pub fn across(&self, place: CableEnd) -> Option<(usize, CableEnd)> {
        match place {
            CableEnd::Station(station, port) => self.stations[station][port],
            CableEnd::Bridge(bridge, port) => self.bridges[bridge][port],
        }
    }

    /// The number of the first cable between two nodes, with its ends at `from` and at `to`. `None`
    /// without a cable.
    pub fn between(&self, from: Place, to: Place) -> Option<(usize, [CableEnd; 2])> {
        self.between.get(&(from, to)).copied()
    }

    /// The output ports, in order, of frames on the tree from one station to another. Empty if
    /// there is no path.
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
                Some((_, CableEnd::Station(station, _))) => stations.push(station),
                Some((_, CableEnd::Bridge(bridge, entry))) => {
                    let others = (0..self.bridges[bridge].len()).filter(|port| *port != entry);
                    open.extend(others.map(|port| (bridge, port)));
                }
                None => {}
            }
        }
        stations
    }

    /// The first stream that matches frames with this tag from a station to an address. `None` if no stream matches, or if the stream has no paths. Treats all frames to
    /// the station `to` as TCP, the only simulated protocol with IP addresses.
    pub fn stream_of(
        &self,
        from: usize,
        destination: Mac,
        to: usize,
        tag: Option<Tag>,
    ) -> Option<&'a StreamConfig> {
        let (source, ip) = (self.network.mac(from), Some([ip(from), ip(to)]));
        let header = Header { destination, source, tag, ip };
        let mut own = self.streams[from].iter().map(|stream| &self.network.streams[*stream]);
        own.find(|stream| stream.identification.matches(&header))
            .filter(|stream| !stream.paths.is_empty())
    }
}

/// Groups of connected nodes. Each node points to another node of its group; the pointers end at
/// the representative.
pub struct Groups(Vec<usize>);

impl Groups {
    /// Each node in its own group.
    pub fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    /// The node that represents the group of a node.
    pub fn representative(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    /// Joins the groups of two nodes. Returns whether the groups were separate.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.representative(a), self.representative(b));
        self.0[b] = a;
        a != b
    }
}
