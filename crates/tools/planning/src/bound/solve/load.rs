//! The frames of the classes of a port.

use super::{Since, Solver, at_before};
use crate::bound::flows;
use crate::bound::ports;
use crate::bound::ports::Classes;
use crate::bound::premises;
use crate::bound::service::{Cap, Constraint, Entering, Group, Load};
use sim::ethernet::frame::{GAP, MINIMUM, PREAMBLE};
use sim::ethernet::port::{Algorithm, RateStep};
use sim::network::CableEnd;
use std::collections::BTreeMap;
use tsn::QUEUES;

impl<'a> Solver<'a> {
    /// The frames of all classes at a port.
    pub(super) fn classes(
        &self,
        port: CableEnd,
        all: &[(usize, usize)],
        preempts: bool,
    ) -> Classes<'a> {
        let config = self.network.port(port);
        let mut classes = Classes {
            config,
            loads: Default::default(),
            longest: [0; QUEUES],
            waits: [0; QUEUES],
            preempts,
            drift: self.drift,
            steps: self.rate_steps(port).to_vec(),
            spread: all.iter().any(|(flow, at)| self.flows[*flow].hops[*at].spread),
        };
        for (flow, at) in all {
            let class = self.flows[*flow].hops[*at].class;
            let line = self.flows[*flow].on_line(self.network, port)[0];
            classes.longest[class] = classes.longest[class].max(line);
        }
        for class in 0..QUEUES {
            classes.loads[class] = self.load(&classes, port, class, all);
        }
        premises::own_messages(self.network, port, &mut classes);
        classes
    }

    pub(super) fn rate_steps(&self, port: CableEnd) -> &[RateStep] {
        let cable = self.wiring.across(port).map(|(cable, _)| cable);
        cable.map_or(&[], |cable| &self.network.cables[cable].rate_steps)
    }

    pub(super) fn load(
        &self,
        classes: &Classes<'_>,
        port: CableEnd,
        class: usize,
        all: &[(usize, usize)],
    ) -> Load {
        // Flows by the reception ports; those that begin here each on their own.
        let mut groups: BTreeMap<Vec<CableEnd>, Vec<(usize, usize)>> = BTreeMap::new();
        let mut load = Load::default();
        for (flow, at) in all {
            let hop = &self.flows[*flow].hops[*at];
            if hop.class != class {
                continue;
            }
            let from: Vec<CableEnd> =
                hop.before.iter().map(|at| self.flows[*flow].hops[*at].port).collect();
            match from.is_empty() {
                true => load.groups.push(Group {
                    flows: vec![self.entering(classes, (*flow, *at))],
                    caps: Vec::new(),
                }),
                false => groups.entry(from).or_default().push((*flow, *at)),
            }
        }
        let ats = matches!(classes.config.classes[class].algorithm, Algorithm::Ats(_));
        for (from, flows) in groups {
            let caps = match from.as_slice() {
                [from] if !ats => self.caps(classes, *from, port, class, &flows),
                _ => Vec::new(),
            };
            let flows = flows.iter().map(|hop| self.entering(classes, *hop)).collect();
            load.groups.push(Group { flows, caps });
        }
        load
    }

    /// The limits of the line of a reception port, and of its shaper if it has one.
    pub(super) fn caps(
        &self,
        classes: &Classes<'_>,
        from: CableEnd,
        port: CableEnd,
        class: usize,
        flows: &[(usize, usize)],
    ) -> Vec<Cap> {
        let network = self.network;
        let line = network.port(from);
        // Frames pass at the fastest rate step.
        let before = ports::least_per_byte(line, self.rate_steps(from));
        let mut cap = Cap { largest: [0; 2], rate: [0; 2], per: 1, slack: 0 };
        // The largest ratio of the time here to the time on the line before, in parts per 2^20.
        cap.per = 1 << 20;
        for (flow, _) in flows {
            let ends = self.flows[*flow].on_line(network, port);
            let starts = self.flows[*flow].on_line(network, from);
            for at in [0, 1] {
                let there = before * (starts[at] + GAP) as u64;
                let here = [classes.work(ends[at] + GAP), classes.counted(class, ends[at])];
                for (measure, here) in here.into_iter().enumerate() {
                    let rate = (u128::from(here) << 20).div_ceil(u128::from(there));
                    cap.rate[measure] = cap.rate[measure].max(rate as u64);
                    cap.largest[measure] = cap.largest[measure].max(here);
                }
            }
        }
        let [least, longest] = self.bridge(port);
        let (flow, at) = flows[0];
        let first = self.flows[flow].hops[at].before[0];
        let (_, travel) = self.travel(flow, first, port);
        let (cable, _) = self.wiring.across(from).expect("a cable of the path");
        let propagation = network.cables[cable].propagation.as_ps();
        cap.slack = (longest - least).max(travel.saturating_sub(propagation + longest));
        cap.slack += longest - least;
        let credit = self.states[flow][at].shaped.filter(|_| {
            let class = self.flows[flow].hops[first].class;
            flows.iter().all(|(flow, at)| {
                let hops = &self.flows[*flow].hops;
                hops[at_before(hops, *at)].class == class
            })
        });
        let shaped = credit.map(|credit| {
            let (idle, rate) = credit.slope;
            let scaled = |by: u64, ratio: u64| {
                let product = u128::from(by) * u128::from(ratio);
                u64::try_from(product.div_ceil(u128::from(cap.per))).unwrap_or(u64::MAX)
            };
            // Idle slopes are shares of the rate of the line, without steps.
            let faster = |ratio: u64| u128::from(ratio) * u128::from(before);
            let share = |ratio: u64| {
                let per_byte = u128::from(line.rate.ps_per_byte());
                (faster(ratio) * u128::from(idle)).div_ceil(u128::from(rate) * per_byte) as u64
            };
            let largest =
                [0, 1].map(|at| scaled(credit.range, cap.rate[at]).saturating_add(cap.largest[at]));
            // Ends of frames are apart by as much as their begins and one frame.
            let slack = cap.slack + cap.largest[0];
            Cap { largest, rate: cap.rate.map(share), per: cap.per, slack }
        });
        [Some(cap), shaped].into_iter().flatten().collect()
    }

    pub(super) fn entering(&self, classes: &Classes<'_>, (flow, at): (usize, usize)) -> Entering {
        let hop = &self.flows[flow].hops[at];
        let longest = self.flows[flow].on_line(self.network, hop.port)[0];
        let since = self.states[flow][at].since.iter();
        let constraint =
            |one: &Since| Constraint { steps: one.steps, jitter: one.delay[1] - one.delay[0] };
        let (line, counted) = match self.flows[flow].command {
            Some(wire) => {
                let line = classes.work(wire.bytes as usize);
                // The part of a frame that does not count is the same for every frame.
                let rest = classes.work(longest + GAP) - classes.counted(hop.class, longest);
                (line, line - rest * wire.frames)
            }
            None => (classes.work(longest + GAP), classes.counted(hop.class, longest)),
        };
        let [line, counted] = [line, counted].map(|time| self.at_ring(flow, hop, longest, time));
        let steps = self.flows[flow].arrivals.iter().flatten().map(|steps| steps.first).min();
        let in_flight = self.flows[flow].command.and(steps).map(|first| first * hop.copies);
        let constraints = since.map(constraint).collect();
        let pieces = self.flows[flow].command.map_or(1, |wire| wire.frames);
        Entering { constraints, copies: hop.copies, line, counted, in_flight, pieces }
    }

    /// The time that frames of `longest` bytes occupy a port, if a station's ring lets few frames
    /// through its pipeline: it then takes `tx_delay` for `tx_ring` frames.
    pub(super) fn at_ring(&self, flow: usize, hop: &flows::Hop, longest: usize, time: u64) -> u64 {
        let CableEnd::Station(station, _) = hop.port else { return time };
        let station = &self.network.stations[station];
        let each = station.tx_delay.as_ps().div_ceil(station.tx_ring as u64);
        let rate = self.network.port(hop.port).rate;
        let frames = self.flows[flow].command.map_or(1, |wire| wire.frames);
        let shortest = match self.flows[flow].command {
            Some(_) => rate.duration(PREAMBLE + MINIMUM + GAP).as_ps(),
            None => rate.duration(longest + GAP).as_ps(),
        };
        time + frames * each.saturating_sub(shortest)
    }
}
