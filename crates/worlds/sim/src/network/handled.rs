//! Counters of the handling of streams in each node.

use super::Network;
use super::tree::Place;
use crate::ethernet::streams::Counters;
use wire::Instant;

/// The handling of a stream in a node, since the start of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The number of the stream in the configuration of the network.
    pub stream: usize,
    /// The node.
    pub place: Place,
    /// The counters.
    pub counters: Counters,
}

impl Network {
    /// The handling of streams until `now`, in the order of streams, then stations, then bridges.
    pub(crate) fn handled(&self, now: Instant) -> Vec<Handled> {
        let handled_at = move |place: Place| {
            move |(stream, counters): (usize, Counters)| Handled { stream, place, counters }
        };
        let stations = self.stations.iter().enumerate();
        let stations = stations
            .flat_map(|(at, node)| node.nic.streams(now).map(handled_at(Place::Station(at))));
        let bridges = self.bridges.iter().enumerate();
        let bridges = bridges
            .flat_map(|(at, node)| node.bridge.streams(now).map(handled_at(Place::Bridge(at))));
        let mut all: Vec<Handled> = stations.chain(bridges).collect();
        all.sort_by_key(|handled| (handled.stream, handled.place));
        all
    }
}
