//! Classes of ports as servers of a network.

use super::Solver;
use crate::bound::ports::{self, Classes};
use crate::bound::service::{Class, fraction, whole};
use calculus::{ArrivalCurve, RateLatency, Rational, Server, ServiceCurve, TokenBucket};
use sim::ethernet::frame::GAP;
use sim::ethernet::port::Algorithm;
use sim::network::CableEnd;
use std::collections::BTreeMap;

/// A class of a port as a FIFO server, in bits and seconds. A bit is one of the longest form that
/// the frame has at any port, with preamble and gap ([`Solver::bits`]).
pub(super) struct Stage {
    /// The server, from queue to queue: the next node receives whole frames, so the latency includes
    /// the time of the longest frame (J.-Y. Le Boudec and P. Thiran, "Network Calculus", 1.7.2: a
    /// packetiser).
    pub server: Server,
    /// The time of the longest frame.
    pub stored: Rational,
}

/// How a flow enters the queue of a hop.
pub(super) struct Entry {
    /// The stage.
    pub stage: usize,
    /// What it brings at most.
    pub arrival: ArrivalCurve,
    /// The line, and what all streams of the line bring together.
    pub inlet: Option<(usize, TokenBucket)>,
}

/// The stages, and the entries of flows and hops.
#[derive(Default)]
pub(super) struct Stages {
    pub all: Vec<Stage>,
    pub entries: BTreeMap<(usize, usize), Entry>,
}

/// Picoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000_000;

/// Picoseconds in seconds.
pub(super) fn seconds(time: u64) -> Rational {
    fraction(time, SECOND)
}

/// A number rounded up to a multiple of 1/1024, so that sums have few digits.
fn rounded_up(number: Rational) -> Rational {
    (number * whole(1024)).ceil() / whole(1024)
}

impl Solver<'_> {
    /// The bits of a frame, or of a command.
    pub(super) fn bits(&self, number: usize) -> u64 {
        let flow = &self.flows[number];
        let longest = flow.hops.iter().map(|hop| flow.on_line(self.network, hop.port)[0] + GAP);
        8 * flow.command.map_or_else(|| longest.max().unwrap_or(0) as u64, |wire| wire.bytes)
    }

    /// The classes of bridges that certainly serve a rate, in order of arrival. Frames of a station's
    /// streams wait in no fixed order.
    pub(super) fn stages(&self) -> Stages {
        let mut stages = Stages::default();
        for port in self.ports.keys().filter(|port| matches!(port, CableEnd::Bridge(..))) {
            let (classes, found) = self.analyse(*port);
            for (class, hops, delays) in found {
                if delays.is_err() || !self.keeps_order(*port, &classes, class, &hops) {
                    continue;
                }
                let machine = classes.class(class).ok();
                if let Some(stage) =
                    machine.and_then(|machine| self.stage(&classes, &machine, &hops))
                {
                    self.add_entries(&mut stages, &classes, &hops);
                    stages.all.push(stage);
                }
            }
        }
        stages
    }

    /// Whether the class is a queue whose frames begin without interruption, and all its flows have
    /// arrival curves.
    fn keeps_order(
        &self,
        port: CableEnd,
        classes: &Classes<'_>,
        class: usize,
        hops: &[(usize, usize)],
    ) -> bool {
        let groups = classes.loads[class].groups.iter();
        let others = groups.map(|group| group.flows.len()).sum::<usize>() - hops.len();
        let shaped = matches!(classes.config.classes[class].algorithm, Algorithm::Ats(_));
        let known = |(flow, at): &(usize, usize)| {
            let state = &self.states[*flow][*at];
            !state.since.is_empty() && state.entry.1.is_some()
        };
        others == 0 && !shaped && !self.starts_early(port, classes, hops) && hops.iter().all(known)
    }

    fn add_entries(&self, stages: &mut Stages, classes: &Classes<'_>, hops: &[(usize, usize)]) {
        for (number, at) in hops {
            let bits = self.bits(*number);
            let frames = self.entering(classes, (*number, *at));
            let bucket = |bucket: TokenBucket| TokenBucket {
                burst: rounded_up(bucket.burst),
                rate: (bucket.rate * whole(SECOND)).ceil(),
            };
            let arrival = ArrivalCurve::new(frames.buckets(bits).map(bucket));
            let entry = Entry { stage: stages.all.len(), arrival, inlet: None };
            stages.entries.insert((*number, *at), entry);
        }
        for (line, (from, hops)) in self.lines(hops).into_iter().enumerate() {
            let (flow, at) = hops[0];
            let hop = &self.flows[flow].hops[at];
            let cap = self.caps(classes, from, hop.port, hop.class, &hops)[0].bucket();
            let size = |hop: &(usize, usize)| {
                fraction(self.bits(hop.0), self.entering(classes, *hop).line)
            };
            let Some(size) = hops.iter().map(size).max() else { continue };
            let shape = TokenBucket {
                burst: rounded_up(cap.burst * &size),
                rate: (cap.rate * size * whole(SECOND)).ceil(),
            };
            for hop in &hops {
                let entry = stages.entries.get_mut(hop).expect("just entered");
                entry.inlet = Some((line, shape.clone()));
            }
        }
    }

    /// The streams of hops by the line over which they come.
    fn lines(&self, hops: &[(usize, usize)]) -> BTreeMap<CableEnd, Vec<(usize, usize)>> {
        let mut lines: BTreeMap<CableEnd, Vec<(usize, usize)>> = BTreeMap::new();
        for (number, at) in hops {
            let flow = &self.flows[*number];
            if let (None, [before]) = (flow.command, flow.hops[*at].before.as_slice()) {
                lines.entry(flow.hops[*before].port).or_default().push((*number, *at));
            }
        }
        lines
    }

    fn stage(
        &self,
        classes: &Classes<'_>,
        machine: &Class,
        hops: &[(usize, usize)],
    ) -> Option<Stage> {
        let (flow, at) = hops[0];
        let hop = &self.flows[flow].hops[at];
        // The longest work of a bit.
        let work = hops.iter().map(|hop| {
            let frame = self.entering(classes, *hop);
            let work = if machine.credit.is_some() { frame.counted } else { frame.line };
            fraction(work, self.bits(hop.0))
        });
        let work = work.max().filter(|work| *work > whole(0))?;
        let bytes = |number: usize| self.flows[number].on_line(self.network, hop.port);
        let longest = hops.iter().map(|(number, _)| bytes(*number)[0]).max()?;
        let stored = seconds(classes.config.rate.duration(longest).as_ps());
        let of_bits = |of_work: RateLatency| RateLatency {
            rate: (of_work.rate * whole(SECOND) / &work).floor(),
            latency: of_work.latency.ceil() / whole(SECOND) + &stored,
        };
        let functions: Vec<RateLatency> = machine.guarantees().into_iter().map(of_bits).collect();
        // The most bits of a stream in a time of the line.
        let fastest = ports::least_per_byte(classes.config, self.rate_steps(hop.port));
        let streams = hops.iter().filter(|(number, _)| self.flows[*number].command.is_none());
        let capacity = streams.map(|(number, _)| {
            let time = (bytes(*number)[1] + GAP) as u64 * fastest;
            (whole(self.bits(*number)) * whole(SECOND) / whole(time)).ceil()
        });
        let capacity = capacity.max();
        let name = format!("class {} at {}", hop.class, self.planned.port_name(hop.port));
        let server = Server { name, service: ServiceCurve::new(functions), capacity };
        (!server.service.functions().is_empty()).then_some(Stage { server, stored })
    }
}
