//! Ports of stations, whose flows take turns.

use super::Solver;
use crate::bound::ports::Classes;
use crate::bound::service::{Class, Higher, Load, Peer};
use sim::ethernet::frame::GAP;

impl Solver<'_> {
    /// The longest frame of a tunnel, and the frames of a ring.
    pub(super) fn turn(&self, flow: usize, classes: &Classes<'_>) -> (u64, u64) {
        let flow = &self.flows[flow];
        let longest = flow.on_line(self.network, flow.hops[0].port)[0];
        (classes.work(longest + GAP), self.network.stations[flow.from].tx_ring as u64)
    }

    /// The longest wait of flow `at` of a station, whose flows of the class are `flows`. Frames of
    /// the class wait up to `wait`.
    pub(super) fn at_station(
        &self,
        classes: &Classes<'_>,
        (machine, own): (&Class, &Load),
        (at, wait): (usize, u64),
        others: Vec<usize>,
    ) -> Result<u64, String> {
        let (flow, hop) = (&self.flows[others[at]], &self.flows[others[at]].hops[0]);
        let shortest = flow.on_line(self.network, hop.port)[1];
        let line = match flow.command {
            Some(_) => (0, 0),
            None => (classes.work(shortest + GAP), classes.counted(hop.class, shortest)),
        };
        let machine = self.alone(classes, (machine, own), (at, wait), others);
        let waits = machine.delays(&[line]).ok_or_else(|| self.unbounded(&machine))?;
        Ok(waits[0])
    }

    /// A class of a station with flow `at` of `flows` alone, and the other flows as interference.
    pub(super) fn alone(
        &self,
        classes: &Classes<'_>,
        (machine, own): (&Class, &Load),
        (at, wait): (usize, u64),
        mut flows: Vec<usize>,
    ) -> Class {
        let (mut machine, mut groups) = (machine.clone(), own.groups.clone());
        flows.remove(at);
        machine.own = Load { groups: vec![groups.remove(at)] };
        let weighted = machine.higher.iter().any(|class| class.weights.is_some());
        let are_peers = weighted
            || machine.credit.is_some()
            || machine.windows.is_some()
            || machine.cycle.is_some();
        for (group, flow) in groups.into_iter().zip(flows) {
            let tunnel = self.flows[flow].command.is_some();
            let turns = tunnel.then(|| self.turn(flow, classes));
            let load = Load { groups: vec![group] };
            if are_peers {
                machine.peers.push(Peer { load, before: 0, wait, turns });
                continue;
            }
            let (before, credit, cut) = (0, None, 0);
            let (open, weights) = (None, None);
            machine.higher.push(Higher { load, before, wait, credit, cut, open, weights, turns });
        }
        machine
    }
}
