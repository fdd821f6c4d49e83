//! How flows enter the queues of their ports.

use super::{Since, Solver};
use crate::bound::service::LIMIT;
use sim::ethernet::bridge::Mode;
use sim::ethernet::frame::{HEADER, PREAMBLE, TAG};
use sim::network::CableEnd;

impl Solver<'_> {
    /// How a flow enters the queue of a hop.
    pub(super) fn entry(&self, number: usize, at: usize) -> (Vec<Since>, (u64, Option<u64>)) {
        let flow = &self.flows[number];
        let hop = &flow.hops[at];
        let mut since: Vec<Since> = Vec::new();
        let mut entry = (u64::MAX, Some(0u64));
        if hop.before.is_empty() {
            let station = &self.network.stations[flow.from];
            let pipeline = station.tx_delay.as_ps();
            let steps = flow.arrivals.iter().flatten();
            since.extend(steps.map(|steps| Since { steps: *steps, delay: [0, 0] }));
            entry = (pipeline, Some(pipeline));
        }
        for (index, before) in hop.before.iter().enumerate() {
            let state = &self.states[number][*before];
            let (least, longest) = self.travel(number, *before, hop.port);
            let delay = state.delay.map(|delay| delay.saturating_add(longest));
            entry.0 = entry.0.min(state.entry.0.saturating_add(least));
            let end = state.entry.1.zip(delay).map(|(entry, delay)| entry.saturating_add(delay));
            entry.1 = entry.1.zip(end).map(|(one, other)| one.max(other));
            let moved = state.since.iter().filter_map(|one| {
                if flow.command.is_some() {
                    return Some(*one);
                }
                let [least_before, longest_before] = one.delay;
                let delay = [least_before + least, longest_before.saturating_add(delay?)];
                Some(Since { steps: one.steps, delay })
            });
            let moved: Vec<Since> = moved.collect();
            if index == 0 {
                since = moved;
                continue;
            }
            since.retain(|one| moved.iter().any(|other| other.steps == one.steps));
            for one in &mut since {
                let other = moved.iter().find(|other| other.steps == one.steps).expect("kept");
                one.delay[0] = one.delay[0].min(other.delay[0]);
                one.delay[1] = one.delay[1].max(other.delay[1]);
            }
        }
        if let Some(steps) = hop.meter {
            since.push(Since { steps, delay: self.bridge(hop.port) });
        }
        self.shape(number, at, &mut since, &mut entry);
        let most = entry.1.filter(|most| *most < LIMIT);
        (since, (entry.0, most))
    }

    /// The least and the longest time of a bridge.
    pub(super) fn bridge(&self, port: CableEnd) -> [u64; 2] {
        let CableEnd::Bridge(bridge, _) = port else { return [0, 0] };
        let bridge = &self.network.bridges[bridge];
        // Irwin-Hall: never beyond six standard deviations (`stats::random`).
        let spread = bridge.jitter.as_ps().saturating_mul(6);
        let delay = bridge.delay.as_ps();
        [delay.saturating_sub(spread), delay + spread]
    }

    /// The least time from a queue, and the longest time from the end of the transmission there, to
    /// the queue of the port `to` or, for a station, to the application.
    pub(super) fn travel(&self, number: usize, before: usize, to: CableEnd) -> (u64, u64) {
        let flow = &self.flows[number];
        let port = flow.hops[before].port;
        let rate = self.network.port(port).rate;
        let [longest, shortest] =
            flow.on_line(self.network, port).map(|bytes| rate.duration(bytes));
        let (cable, _) = self.wiring.across(port).expect("a cable of the path");
        let config = &self.network.cables[cable];
        let faults = &config.faults[usize::from(config.a != port)];
        let random = match faults.delay == Default::default() {
            true => 0,
            false => faults.delay_up_to.as_ps(),
        };
        let propagation = config.propagation.as_ps();
        let (node, head) = match to {
            CableEnd::Station(station, _) => {
                ([self.network.stations[station].rx_delay.as_ps(); 2], None)
            }
            CableEnd::Bridge(bridge, _) => (self.bridge(to), self.head(bridge, number, before, to)),
        };
        let least = shortest.as_ps().min(head.unwrap_or(u64::MAX)) + propagation + node[0];
        // A cut-through bridge forwards a frame before its end.
        let early = head.map_or(0, |head| longest.as_ps() - head);
        (least, (propagation + random + node[1]).saturating_sub(early))
    }

    /// The time after which a cut-through bridge forwards a frame; `None`: after its end.
    pub(super) fn head(
        &self,
        bridge: usize,
        number: usize,
        before: usize,
        to: CableEnd,
    ) -> Option<u64> {
        if self.network.bridges[bridge].mode != Mode::CutThrough {
            return None;
        }
        let hop = &self.flows[number].hops[before];
        let port = self.network.port(hop.port);
        let cut =
            port.preemption.is_some_and(|preemption| preemption.express >> hop.class & 1 == 0);
        let faster = self.network.port(to).rate > port.rate;
        let tag = if self.flows[number].tag.is_some() { TAG } else { 0 };
        (!cut && !faster).then(|| port.rate.duration(PREAMBLE + HEADER + tag).as_ps())
    }
}
