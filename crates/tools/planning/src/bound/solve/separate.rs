//! Streams as flows through networks of servers, for methods that bound several hops at once.
//!
//! A network consists of the hops between which frames keep their order and the time from one queue
//! to the next is constant, and of classes that [`Solver::stages`] knows. Where a path leaves it, by
//! a bridge with jitter for example, the path enters another one with the arrival curve that total
//! flow analysis found there.

use super::Solver;
use super::servers::{SECOND, Stages, seconds};
use crate::bound::service::whole;
use crate::bound::{Method as Chosen, Used};
use calculus::{Flow, Lines, Method, Multiplexing, Network, Outputs, Rational, bounds};
use sim::network::CableEnd;
use std::collections::BTreeMap;

/// By flow and last hop: the first hop, and the longest time from its queue to the end of the
/// transmission at the last, without the time between ports.
pub(super) type Spans = BTreeMap<(usize, usize), (usize, u64)>;

/// The hops of all flows up to which there are other methods than total flow analysis.
const MOST_HOPS: usize = 10_000;

/// The sum of [`Part::size`] up to which separated flow analysis takes about a second.
const LARGEST: usize = 2_000_000;

/// The sum of [`Part::size`] up to which linear programmes take some seconds.
const LARGEST_PROGRAMMES: usize = 5_000;

/// A connected network: its stages, and where flows enter it.
#[derive(Default)]
struct Part {
    stages: Vec<usize>,
    roots: Vec<(usize, usize)>,
}

impl Part {
    /// A measure of the time that methods take.
    fn size(&self) -> usize {
        self.stages.len() * self.stages.len() * self.roots.len()
    }
}

impl Solver<'_> {
    /// Bounds several hops at once by the methods besides total flow analysis.
    pub(super) fn separate(&mut self) {
        let methods = match self.method {
            Chosen::Tfa => return,
            Chosen::Sfa => vec![(Used::SFA, Method::Sfa)],
            Chosen::Plp => vec![(Used::PLP, Method::Plp)],
            Chosen::Best => vec![(Used::SFA, Method::Sfa), (Used::PLP, Method::Plp)],
        };
        if self.flows.iter().map(|flow| flow.hops.len()).sum::<usize>() > MOST_HOPS {
            return;
        }
        let stages = self.stages();
        let mut refused = BTreeMap::new();
        let spans = methods.into_iter();
        self.spans =
            spans.map(|(used, method)| (used, self.spans(&stages, method, &mut refused))).collect();
        self.refused = refused;
    }

    /// Bounds by a method of all parts of paths with two or more hops. Adds flows for which the
    /// method has none, and why.
    fn spans(
        &self,
        stages: &Stages,
        method: Method,
        refused: &mut BTreeMap<usize, String>,
    ) -> Spans {
        let mut spans = Spans::new();
        let mut parts = self.parts(stages);
        parts.sort_by_key(Part::size);
        let mut left = if method == Method::Plp { LARGEST_PROGRAMMES } else { LARGEST };
        for part in parts {
            let Some(rest) = left.checked_sub(part.size()) else { break };
            left = rest;
            if let Err(why) = self.add_spans(&mut spans, stages, &part, method) {
                let flows = part.roots.iter().map(|(number, _)| (*number, why.clone()));
                refused.extend(flows);
            }
        }
        spans
    }

    /// The previous hop, if a flow comes from it in order, after a constant time.
    fn joined(&self, stages: &Stages, (number, at): (usize, usize)) -> Option<usize> {
        let flow = &self.flows[number];
        let hop = &flow.hops[at];
        let [before] = *hop.before.as_slice() else { return None };
        let known = [before, at].iter().all(|at| stages.entries.contains_key(&(number, *at)));
        if !known || flow.command.is_some() || hop.filtered {
            return None;
        }
        let from = flow.hops[before].port;
        let shortest = self.network.port(from).rate.duration(flow.on_line(self.network, from)[1]);
        let (least, longest) = self.travel(number, before, hop.port);
        let constant = least == shortest.as_ps() + longest;
        let whole = match hop.port {
            CableEnd::Bridge(bridge, _) => self.head(bridge, number, before, hop.port).is_none(),
            CableEnd::Station(..) => false,
        };
        (constant && whole).then_some(before)
    }

    /// The connected networks in which flows pass two or more hops.
    fn parts(&self, stages: &Stages) -> Vec<Part> {
        let mut group: Vec<usize> = (0..stages.all.len()).collect();
        fn find(group: &mut [usize], stage: usize) -> usize {
            let mut at = stage;
            while group[at] != at {
                group[at] = group[group[at]];
                at = group[at];
            }
            at
        }
        let mut roots = Vec::new();
        for (hop, entry) in &stages.entries {
            match self.joined(stages, *hop) {
                Some(before) => {
                    let before = stages.entries[&(hop.0, before)].stage;
                    let (a, b) = (find(&mut group, before), find(&mut group, entry.stage));
                    group[a] = b;
                }
                None => roots.push((*hop, entry.stage)),
            }
        }
        let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
        for stage in 0..stages.all.len() {
            parts.entry(find(&mut group, stage)).or_default().stages.push(stage);
        }
        for (root, stage) in roots {
            parts.entry(find(&mut group, stage)).or_default().roots.push(root);
        }
        parts.into_values().filter(|part| part.stages.len() > 1).collect()
    }

    /// The hops after which a flow leaves a network, each with its way from the root.
    fn ways(&self, stages: &Stages, (number, root): (usize, usize)) -> Vec<Vec<usize>> {
        let flow = &self.flows[number];
        let mut ways: Vec<Vec<usize>> = vec![vec![root]];
        let mut done = Vec::new();
        while let Some(way) = ways.pop() {
            let last = way[way.len() - 1];
            let next =
                (last + 1..flow.hops.len()).filter(|at| flow.hops[*at].before.contains(&last));
            let (on, off): (Vec<usize>, Vec<usize>) =
                next.partition(|at| self.joined(stages, (number, *at)) == Some(last));
            ways.extend(on.iter().map(|at| way.iter().copied().chain([*at]).collect()));
            if !off.is_empty()
                || on.is_empty()
                || flow.ends.iter().any(|end| end.before.contains(&last))
            {
                done.push(way);
            }
        }
        done
    }

    fn add_spans(
        &self,
        spans: &mut Spans,
        stages: &Stages,
        part: &Part,
        method: Method,
    ) -> Result<(), String> {
        let place = |stage: usize| part.stages.binary_search(&stage).expect("of this part");
        let stage = |number: usize, at: &usize| stages.entries[&(number, *at)].stage;
        let ways: Vec<Vec<Vec<usize>>> =
            part.roots.iter().map(|root| self.ways(stages, *root)).collect();
        let flow = |(root, ways): (&(usize, usize), &Vec<Vec<usize>>)| {
            let entry = &stages.entries[root];
            let path = |way: &Vec<usize>| {
                way.iter().map(|at| place(stage(root.0, at))).collect::<Vec<_>>()
            };
            Flow {
                name: self.flows[root.0].name.clone(),
                arrival: entry.arrival.clone(),
                max_packet: Some(whole(self.bits(root.0))),
                min_packet: None,
                paths: ways.iter().map(path).collect(),
                inlet: entry.inlet.clone(),
            }
        };
        let flows: Vec<Flow> = part.roots.iter().zip(&ways).map(flow).collect();
        let servers = part.stages.iter().map(|stage| stages.all[*stage].server.clone()).collect();
        let lines = Lines { shaping: true, packetizer: true, last_packet: false };
        let network = Network::new(servers, &flows, Multiplexing::Fifo, lines);
        let network = network.map_err(|error| error.to_string())?;
        let found = bounds(&network, method, Outputs::Flow).map_err(|error| error.to_string())?;
        let paths = part.roots.iter().zip(&ways);
        let paths = paths.flat_map(|(root, ways)| ways.iter().map(move |way| (root.0, way)));
        for ((number, way), bound) in paths.zip(found.paths) {
            let (Some(delay), [first, .., last]) = (bound.delay, way.as_slice()) else { continue };
            let delay = self.until_sent(stages, (number, *last), delay);
            spans.insert((number, *last), (*first, delay));
        }
        Ok(())
    }

    /// A bound of the last hop's server, without what the next node stores: a frame has started when
    /// its first bit leaves, which is earlier than its last bit by its length at the highest rate of
    /// the service at least, and ends at the rate of the line.
    fn until_sent(&self, stages: &Stages, hop: (usize, usize), delay: Rational) -> u64 {
        let (number, at) = hop;
        let port = self.flows[number].hops[at].port;
        let stage = &stages.all[stages.entries[&hop].stage];
        let rate = stage.server.service.functions().iter().map(|function| &function.rate).max();
        let started = rate
            .map_or(delay.clone(), |rate| &delay - &stage.stored - whole(self.bits(number)) / rate);
        let longest = self.flows[number].on_line(self.network, port)[0];
        let sent =
            started.max(whole(0)) + seconds(self.network.port(port).rate.duration(longest).as_ps());
        let ps = (sent * whole(SECOND)).ceil().to_integer();
        u64::try_from(ps).unwrap_or(u64::MAX)
    }
}
