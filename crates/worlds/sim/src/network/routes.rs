//! Paths of streams: given by their nodes, shortest, or disjoint.

mod disjoint;

use super::config::{CableEnd, Listener, TrafficConfig};
use super::tree::Place;
use super::wiring::Wiring;
use crate::ensure;
use crate::ethernet::Mac;
use crate::ethernet::traffic::StreamId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The cables from one station to another, in order.
pub type Path = Vec<usize>;

/// The output ports of each group address at a node.
pub(super) type GroupPorts = BTreeMap<Mac, BTreeSet<usize>>;

/// The shortest paths from a station to all nodes.
#[derive(Clone, Debug)]
pub struct ShortestPaths {
    /// For each node, the cable towards the station and the next node.
    back: Vec<Option<(usize, usize)>>,
}

impl ShortestPaths {
    /// The path to a station; `None` if there is none.
    pub fn to(&self, station: usize) -> Option<Path> {
        let steps = std::iter::successors(self.back[station], |(_, node)| self.back[*node]);
        let mut path: Path = steps.map(|(cable, _)| cable).collect();
        path.reverse();
        (!path.is_empty()).then_some(path)
    }
}

impl Wiring<'_> {
    /// The cables between successive nodes. Of several cables between two nodes, this is the first.
    ///
    /// # Errors
    /// Two successive nodes without a cable between them.
    pub fn path(&self, nodes: &[Place]) -> Result<Path, String> {
        let cable = |pair: &[Place]| {
            let found = self.between(pair[0], pair[1]).map(|(cable, _)| cable);
            found.ok_or_else(|| format!("no cable leads from {} to {}", pair[0], pair[1]))
        };
        nodes.windows(2).map(cable).collect()
    }

    /// The cables of a path from a station, each with its sending and its receiving end.
    ///
    /// # Errors
    /// A cable that does not continue the path, or a station on the way.
    pub fn hops(&self, from: usize, path: &[usize]) -> Result<Vec<[CableEnd; 2]>, String> {
        let mut here = Place::Station(from);
        let hop = |(at, number): (usize, &usize)| {
            let through = at == 0 || matches!(here, Place::Bridge(_));
            ensure(through, "a path passes a station; only bridges are allowed".to_owned())?;
            let cable = self.network.cables.get(*number);
            let ends = cable.map(|cable| [[cable.a, cable.b], [cable.b, cable.a]]);
            let ends = ends.into_iter().flatten().find(|ends| ends[0].node() == here);
            let ends = ends.ok_or_else(|| format!("cable {number} does not begin at {here}"))?;
            here = ends[1].node();
            Ok(ends)
        };
        path.iter().enumerate().map(hop).collect()
    }

    /// The shortest paths from a station, by number of cables; of equal ones, those that begin with
    /// the earlier cables. No path passes another station.
    pub fn shortest(&self, from: usize) -> ShortestPaths {
        let mut back = vec![None; self.ways().len()];
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            if node != from && self.is_station(node) {
                continue;
            }
            for (cable, other) in &self.ways()[node] {
                if *other != from && back[*other].is_none() {
                    back[*other] = Some((*cable, node));
                    next.push_back(*other);
                }
            }
        }
        ShortestPaths { back }
    }

    /// The output ports of group addresses at each node, stations first.
    ///
    /// # Errors
    /// A stream whose paths are no tree, or do not lead to its listeners.
    pub(super) fn groups(&self) -> Result<Vec<GroupPorts>, String> {
        let mut all = vec![GroupPorts::new(); self.ways().len()];
        for (station, config) in self.network.stations.iter().enumerate() {
            for (number, traffic) in config.traffic.iter().enumerate() {
                let failed = |reason| format!("stream {number} of station {station}: {reason}");
                let id = StreamId::new(station, number);
                let ports = self.tree_of(station, traffic).map_err(failed)?;
                let Some(group) = traffic.group(id).filter(|group| *group != Mac::BROADCAST) else {
                    continue;
                };
                for end in ports {
                    let (CableEnd::Station(_, port) | CableEnd::Bridge(_, port)) = end;
                    all[self.number(end.node())].entry(group).or_default().insert(port);
                }
            }
        }
        Ok(all)
    }

    /// The hops of a stream of a station to a listener: for each cable the sending and the receiving
    /// end. Empty if the tree of the network does not reach the listener.
    ///
    /// # Errors
    /// A cable that does not continue the path.
    pub fn route(&self, station: usize, listener: &Listener) -> Result<Vec<[CableEnd; 2]>, String> {
        match &listener.path {
            Some(path) => self.hops(station, path),
            None => {
                let way = self.way(station, listener.station).into_iter();
                Ok(way.filter_map(|end| Some([end, self.across(end)?.1])).collect())
            }
        }
    }

    /// The output ports of a stream of a station, each once.
    ///
    /// # Errors
    /// Paths that are no tree or do not lead to the listeners, or a listener that the tree of the
    /// network does not reach.
    pub fn tree_of(
        &self,
        station: usize,
        traffic: &TrafficConfig,
    ) -> Result<BTreeSet<CableEnd>, String> {
        let mut ports = BTreeSet::new();
        let mut entries = BTreeMap::from([(Place::Station(station), None)]);
        for listener in &traffic.listeners {
            let to = Place::Station(listener.station);
            let hops = self.route(station, listener)?;
            let ends = hops.last().is_some_and(|[_, end]| end.node() == to);
            ensure(ends, format!("no path leads to {to}"))?;
            let mut seen = BTreeSet::from([Place::Station(station)]);
            for [sent, received] in hops {
                let node = received.node();
                ensure(seen.insert(node), format!("its path passes {node} twice"))?;
                let before = entries.insert(node, Some(received));
                let one = before.is_none_or(|before| before == Some(received));
                ensure(one, format!("its paths reach {node} over two cables; a tree has one"))?;
                ports.insert(sent);
            }
        }
        Ok(ports)
    }
}
