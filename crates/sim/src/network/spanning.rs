//! The cables that frames without a path of their own use: in a network with loops a tree, as the
//! spanning tree protocol would have it (IEEE 802.1Q-2022, 13), known from the beginning.

use super::config::{CableEnd, NetworkConfig};
use super::tree::Place;

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
    /// By cable: whether it is part of the tree. A cable that would close a loop with those before
    /// it is not; without loops all are.
    pub fn spanning(&self) -> Vec<bool> {
        let stations = self.stations.len();
        let number = |end: CableEnd| match end.node() {
            Place::Station(station) => station,
            Place::Bridge(bridge) => stations + bridge,
        };
        let mut group: Vec<usize> = (0..stations + self.bridges.len()).collect();
        let joins = |(a, b): (usize, usize)| {
            let (a, b) = (group[a], group[b]);
            group.iter_mut().filter(|of| **of == b).for_each(|of| *of = a);
            a != b
        };
        self.cables.iter().map(|cable| (number(cable.a), number(cable.b))).map(joins).collect()
    }

    /// The cable between two nodes, and its ends at the first and at the second; the first one, if
    /// there are several.
    pub fn between(&self, from: Place, to: Place) -> Option<(usize, [CableEnd; 2])> {
        self.cables.iter().enumerate().find_map(|(number, cable)| {
            let ends = match (cable.a.node(), cable.b.node()) {
                (a, b) if (a, b) == (from, to) => [cable.a, cable.b],
                (a, b) if (a, b) == (to, from) => [cable.b, cable.a],
                _ => return None,
            };
            Some((number, ends))
        })
    }
}
