//! Delays of all ports and flows.

use super::flows::{self, Flow};
use super::ports::{self, Classes};
use super::service::{Cap, Class, Constraint, Credit, Entering, Group, Higher, LIMIT, Load};
use super::{arrivals::Steps, premises};
use super::tunnels::{CommandBound, Tunnels};
use crate::commands::HostCommands;
use crate::commands::probe::Wire;
use plan::Planned;
use sim::ethernet::bridge::Mode;
use sim::ethernet::frame::{GAP, HEADER, MINIMUM, PREAMBLE, TAG};
use sim::ethernet::port::{Algorithm, Ats, Counted, RateStep};
use sim::ethernet::traffic::StreamId;
use sim::network::{CableEnd, NetworkConfig, Wiring};
use std::collections::BTreeMap;
use tsn::QUEUES;
use wire::Duration;

/// The most rounds until delays no longer change.
const ROUNDS: usize = 2_000;

/// The guaranteed latencies of a plan.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The streams, in the order of the plan.
    pub streams: Vec<StreamBound>,
    /// The kinds of commands of each host.
    pub commands: Vec<CommandBound>,
    /// What the bounds presume.
    pub premises: Vec<String>,
}

/// The guaranteed latency of a stream.
#[derive(Clone, Debug)]
pub struct StreamBound {
    /// Name of the stream.
    pub name: String,
    /// Its listeners, in the order of the plan.
    pub listeners: Vec<ListenerBound>,
}

/// The guaranteed latency of a stream at a listener.
#[derive(Clone, Debug)]
pub struct ListenerBound {
    /// Name of the station.
    pub name: String,
    /// The longest latency; `Err`: why there is none.
    pub bound: Result<Duration, String>,
    /// The hops.
    pub hops: Vec<HopBound>,
}

/// A hop of a stream.
#[derive(Clone, Debug)]
pub struct HopBound {
    /// The port and the far end of its cable.
    pub port: String,
    /// The longest time from the arrival in the queue to the end of the transmission.
    pub bound: Option<Duration>,
    /// The most bytes of the class in the queue, header to FCS.
    pub backlog: Option<u64>,
}

/// A staircase of a flow, and the least and the longest delay since its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    steps: Steps,
    delay: [u64; 2],
}

/// What is known of a flow at a hop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// The arrivals satisfy all of these; none: any number of frames.
    since: Vec<Since>,
    /// The least and the longest time from the source to the queue. The longest is `None` if it is
    /// unbounded.
    entry: (u64, Option<u64>),
    /// The longest time from the queue to the end of the transmission.
    delay: Option<u64>,
    /// The most bytes of the class in the queue.
    backlog: Option<u64>,
    /// Of commands: the longest time for which other frames and gates keep them waiting here.
    interference: Option<u64>,
    /// The credit-based shaper of the class, with the range of its credit.
    credit: Option<Credit>,
    /// That of the previous port.
    shaped: Option<Credit>,
}

fn at_before(hops: &[flows::Hop], at: usize) -> usize {
    hops[at].before[0]
}

/// How much longer the frames of a command take than through a quiet network, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    /// Because of all other frames.
    pub sum: u64,
    /// Because of the frames of other flows.
    pub others: u64,
}

pub(super) struct Solver<'a> {
    pub network: &'a NetworkConfig,
    wiring: &'a Wiring<'a>,
    pub flows: &'a [Flow],
    /// For each flow and hop.
    states: Vec<Vec<State>>,
    /// The flows and hops of each port.
    ports: BTreeMap<CableEnd, Vec<(usize, usize)>>,
    /// Why a class of a port is unbounded.
    why: BTreeMap<(CableEnd, usize), String>,
    /// By how much clocks run fast or slow, in parts per million.
    drift: u64,
    planned: &'a Planned,
}

/// The guaranteed latencies of a plan.
pub fn bound(planned: &Planned) -> Bounds {
    bound_with(planned, &known_commands(planned))
}

/// The commands of each host of a plan, found by simulations; they do not depend on gates.
pub fn known_commands(planned: &Planned) -> Vec<Result<HostCommands, String>> {
    (0..planned.config.hosts.len()).map(|host| HostCommands::new(planned, host)).collect()
}

/// [`bound`], with the commands of each host.
pub fn bound_with(planned: &Planned, commands: &[Result<HostCommands, String>]) -> Bounds {
    let network = &planned.config.network;
    let wiring = network.wiring();
    let drift = premises::drift(network);
    let stream = |(name, id): &(String, StreamId)| flows::of_stream(&wiring, name, *id, drift);
    let streams: Vec<Result<Flow, String>> = planned.streams.iter().map(stream).collect();
    let mut known: Vec<Flow> = streams.iter().filter_map(|flow| flow.clone().ok()).collect();
    let tunnels = Tunnels::new(planned, &wiring, commands, &mut known);
    let mut solver = Solver::new(planned, &wiring, &known, drift);
    let settled = solver.run();
    let mut next = 0..known.len();
    let result = |((name, id), flow): (&(String, StreamId), Result<Flow, String>)| {
        let listeners = match flow {
            Ok(_) => {
                let flow = next.next().expect("one for each known flow");
                solver.listeners(flow, &settled)
            }
            Err(why) => {
                let to = network.stream(*id).listeners.iter();
                let listener = |station: usize| ListenerBound {
                    name: planned.stations[station].clone(),
                    bound: Err(why.clone()),
                    hops: Vec::new(),
                };
                to.map(|to| listener(to.station)).collect()
            }
        };
        StreamBound { name: name.clone(), listeners }
    };
    let streams = planned.streams.iter().zip(streams).map(result).collect();
    let commands = tunnels.commands(planned, &solver, &settled);
    Bounds { streams, commands, premises: premises::of(planned) }
}

impl<'a> Solver<'a> {
    fn new(
        planned: &'a Planned,
        wiring: &'a Wiring<'a>,
        flows: &'a [Flow],
        drift: u64,
    ) -> Self {
        let mut ports: BTreeMap<CableEnd, Vec<(usize, usize)>> = BTreeMap::new();
        for (number, flow) in flows.iter().enumerate() {
            for (at, hop) in flow.hops.iter().enumerate() {
                ports.entry(hop.port).or_default().push((number, at));
            }
        }
        let network = wiring.network;
        // Delays grow from here to their least fixed point.
        let least = |flow: &Flow, hop: &flows::Hop| {
            let longest = flow.on_line(network, hop.port)[0];
            let delay = Some(network.port(hop.port).rate.duration(longest).as_ps());
            State { delay, ..State::default() }
        };
        let states = flows.iter().map(|flow| flow.hops.iter().map(|hop| least(flow, hop)).collect());
        let (states, why) = (states.collect(), BTreeMap::new());
        let mut solver = Self { network, wiring, flows, states, ports, why, drift, planned };
        solver.enter_all();
        solver
    }

    /// Repeats until no delay changes. The error is a circle that does not settle.
    fn run(&mut self) -> Result<(), String> {
        let ports: Vec<CableEnd> = self.ports.keys().copied().collect();
        let mut open: Vec<CableEnd> = ports;
        for _ in 0..ROUNDS {
            for port in &open {
                self.port(*port);
            }
            open = self.enter_all();
            if open.is_empty() {
                return Ok(());
            }
        }
        let names: Vec<String> =
            open.iter().take(8).map(|port| self.planned.port_name(*port)).collect();
        Err(format!("the delays of a circle of ports do not settle: {}", names.join(", ")))
    }

    /// Updates the arrivals at all hops. Returns the ports at which something changed.
    fn enter_all(&mut self) -> Vec<CableEnd> {
        let mut changed = Vec::new();
        for number in 0..self.flows.len() {
            for at in 0..self.flows[number].hops.len() {
                let (since, entry) = self.entry(number, at);
                let before = self.flows[number].hops[at].before.first();
                let shaped = before.and_then(|before| self.states[number][*before].credit);
                let state = &mut self.states[number][at];
                if (&state.since, state.entry, state.shaped) != (&since, entry, shaped) {
                    (state.since, state.entry, state.shaped) = (since, entry, shaped);
                    changed.push(self.flows[number].hops[at].port);
                }
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// How a flow enters the queue of a hop.
    fn entry(&self, number: usize, at: usize) -> (Vec<Since>, (u64, Option<u64>)) {
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

    /// The asynchronous shaper before the queue of a hop.
    fn shape(
        &self,
        number: usize,
        at: usize,
        since: &mut Vec<Since>,
        entry: &mut (u64, Option<u64>),
    ) {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return;
        };
        let steps = self.committed(ats, number, hop.port);
        let extra = self.regulated(number, at);
        *entry = (entry.0, entry.1.zip(extra).map(|(entry, extra)| entry + extra));
        for one in since.iter_mut() {
            one.delay[1] = one.delay[1].saturating_add(extra.unwrap_or(LIMIT));
        }
        since.push(Since { steps, delay: [0, 0] });
    }

    /// What the shaper of a flow lets pass.
    fn committed(&self, ats: &Ats, number: usize, port: CableEnd) -> Steps {
        let (rate, burst, bits) = self.bucket(ats, number, port);
        let time = |bits: u128| {
            let rate = rate * u128::from(1_000_000 + self.drift) / 1_000_000;
            u64::try_from(bits * 1_000_000_000_000 / rate.max(1)).unwrap_or(u64::MAX)
        };
        Steps {
            first: u64::try_from((burst / bits).max(1)).unwrap_or(u64::MAX),
            each: 1,
            interval: time(bits).max(1),
            late: time(burst % bits) + 1,
        }
    }

    /// Rate and burst of the shaper of a flow, and the bits of its shortest frame.
    fn bucket(&self, ats: &Ats, number: usize, port: CableEnd) -> (u128, u128, u128) {
        let flow = &self.flows[number];
        let own = ats.streams.iter().find(|(id, _)| flow.stream == Some(*id));
        let committed = own.map_or(ats.committed, |(_, committed)| *committed);
        let (bytes, frames) = match flow.command {
            Some(wire) => (wire.bytes, wire.frames),
            None => ((flow.on_line(self.network, port)[1] + GAP) as u64, 1),
        };
        let bytes = match ats.counted {
            Counted::WithGap => bytes,
            Counted::FrameOnly => bytes - frames * (PREAMBLE + GAP) as u64,
        };
        (committed.rate.into(), committed.burst.into(), u128::from(bytes) * 8)
    }

    /// How long the shaper before a hop delays a flow at most, beyond the longest delay of the
    /// previous port. `None`: unbounded.
    ///
    /// A regulator after a system that keeps the order adds nothing to the longest delay of the
    /// system, if the frames satisfied the regulator before (J.-Y. Le Boudec, "A Theory of Traffic
    /// Regulators for Deterministic Networks", 2018, theorem 5).
    fn regulated(&self, number: usize, at: usize) -> Option<u64> {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return Some(0);
        };
        let delay_before = |flow: usize, at: usize| -> Option<u64> {
            let before = &self.flows[flow].hops[at].before;
            let delays = before.iter().map(|before| self.states[flow][*before].delay);
            delays.fold(Some(0), |longest, delay| Some(longest?.max(delay?)))
        };
        let group = self.scheduler_group(number, at);
        let own = delay_before(number, at)?;
        let mut longest = 0;
        for (flow, at) in &group {
            let excess = self.excess(*flow, *at);
            match excess {
                Some(0) => longest = longest.max(delay_before(*flow, *at)?.saturating_sub(own)),
                Some(excess) if group.len() == 1 => longest = excess,
                _ => return ats.max_residence.map(Duration::as_ps),
            }
        }
        Some(longest)
    }

    /// The hops whose frames share a scheduler group (IEEE 802.1Q-2022, 8.6.5.6): of one reception
    /// port and one upstream class, to any port of the bridge.
    fn scheduler_group(&self, number: usize, at: usize) -> Vec<(usize, usize)> {
        let before = |flow: usize, at: usize| {
            let hops = &self.flows[flow].hops;
            let before = hops[at].before.iter().map(|before| &hops[*before]);
            before.map(|hop| (hop.port, hop.class)).collect::<Vec<_>>()
        };
        let own = before(number, at);
        if own.is_empty() {
            return vec![(number, at)];
        }
        let node = self.flows[number].hops[at].port.node();
        let here = self.ports.iter().filter(|(port, _)| port.node() == node);
        let same = |(flow, at): &&(usize, usize)| {
            let hop = &self.flows[*flow].hops[*at];
            let algorithm = &self.network.port(hop.port).classes[hop.class].algorithm;
            matches!(algorithm, Algorithm::Ats(_)) && before(*flow, *at) == own
        };
        here.flat_map(|(_, hops)| hops.iter().filter(same).copied()).collect()
    }

    /// How long the frames of a flow, as they entered the previous port, would wait for their
    /// shaper. `None`: unbounded.
    fn excess(&self, number: usize, at: usize) -> Option<u64> {
        let hop = &self.flows[number].hops[at];
        let Algorithm::Ats(ats) = &self.network.port(hop.port).classes[hop.class].algorithm else {
            return Some(0);
        };
        let (rate, burst, bits) = self.bucket(ats, number, hop.port);
        let rate = rate * 1_000_000 / u128::from(1_000_000 + self.drift);
        let wait = |frames: u64, t: u64| {
            let over = (u128::from(frames) * bits).saturating_sub(burst) * 1_000_000_000_000;
            u64::try_from(over.div_ceil(rate.max(1))).unwrap_or(u64::MAX).saturating_sub(t)
        };
        let longest = |one: &Since| {
            let jitter = one.delay[1] - one.delay[0];
            let steady = u128::from(one.steps.each) * bits * 1_000_000_000_000;
            let keeps = steady <= rate * u128::from(one.steps.interval);
            let first = one.steps.rises(jitter, u64::MAX).next()?;
            let later = wait(one.steps.frames(first + jitter), first);
            keeps.then(|| wait(one.steps.frames(jitter), 0).max(later))
        };
        let since: Vec<Since> = match hop.before.as_slice() {
            [] => {
                let steps = self.flows[number].arrivals.iter().flatten();
                steps.map(|steps| Since { steps: *steps, delay: [0, 0] }).collect()
            }
            [before] => self.states[number][*before].since.clone(),
            _ => return None,
        };
        since.iter().filter_map(longest).min()
    }

    /// The least and the longest time of a bridge.
    fn bridge(&self, port: CableEnd) -> [u64; 2] {
        let CableEnd::Bridge(bridge, _) = port else { return [0, 0] };
        let bridge = &self.network.bridges[bridge];
        // Irwin-Hall: never beyond six standard deviations (`stats::random`).
        let spread = bridge.jitter.as_ps().saturating_mul(6);
        let delay = bridge.delay.as_ps();
        [delay.saturating_sub(spread), delay + spread]
    }

    /// The least time from a queue, and the longest time from the end of the transmission there, to
    /// the queue of the port `to` or, for a station, to the application.
    fn travel(&self, number: usize, before: usize, to: CableEnd) -> (u64, u64) {
        let flow = &self.flows[number];
        let port = flow.hops[before].port;
        let rate = self.network.port(port).rate;
        let [longest, shortest] = flow.on_line(self.network, port).map(|bytes| rate.duration(bytes));
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
    fn head(&self, bridge: usize, number: usize, before: usize, to: CableEnd) -> Option<u64> {
        if self.network.bridges[bridge].mode != Mode::CutThrough {
            return None;
        }
        let hop = &self.flows[number].hops[before];
        let port = self.network.port(hop.port);
        let cut = port.preemption.is_some_and(|preemption| preemption.express >> hop.class & 1 == 0);
        let faster = self.network.port(to).rate > port.rate;
        let tag = if self.flows[number].tag.is_some() { TAG } else { 0 };
        (!cut && !faster).then(|| port.rate.duration(PREAMBLE + HEADER + tag).as_ps())
    }

    /// Computes the delays of all flows at a port.
    fn port(&mut self, port: CableEnd) {
        let all = &self.ports[&port];
        let preempts = self.preempts(port);
        let mut classes = self.classes(port, all, preempts);
        let mut order: Vec<usize> =
            (0..QUEUES).rev().filter(|class| classes.longest[*class] > 0).collect();
        // Express classes first: preemptable ones wait for them.
        if let Some(preemption) = classes.config.preemption {
            order.sort_by_key(|class| preemption.express >> class & 1 == 0);
        }
        let whole = preempts.then(|| self.classes(port, all, false));
        let mut found = Vec::new();
        for class in order {
            let hops: Vec<(usize, usize)> = all
                .iter()
                .copied()
                .filter(|(flow, at)| self.flows[*flow].hops[*at].class == class)
                .collect();
            let mut delays = self.delays(&classes, class, &hops);
            let early = self.starts_early(port, &classes, &hops);
            if let (true, Ok(delays)) = (early, &mut delays) {
                let others = match &whole {
                    Some(whole) if !classes.is_cut(class) => self.delays(whole, class, &hops).ok(),
                    _ => None,
                };
                let others = others.unwrap_or_else(|| delays.clone());
                // A request to verify, and an answer.
                let packets = 2 * classes.work(PREAMBLE + MINIMUM + GAP);
                let both = delays.iter_mut().zip(others);
                both.for_each(|(one, other)| *one = (*one).max(other) + packets);
            }
            classes.waits[class] = match &delays {
                Ok(delays) => delays.iter().copied().max().unwrap_or(0),
                Err(_) => LIMIT,
            };
            found.push((class, hops, delays));
        }
        let backlogs: Vec<Option<u64>> = found
            .iter()
            .map(|(class, hops, delays)| {
                delays.as_ref().ok().map(|_| self.backlog(&classes, *class, hops))
            })
            .collect();
        for ((class, hops, delays), backlog) in found.into_iter().zip(backlogs) {
            match delays {
                Ok(delays) => {
                    self.why.remove(&(port, class));
                    let credit = classes.range(class);
                    for (flow, at) in &hops {
                        self.states[*flow][*at].interference =
                            self.interference(&classes, class, (*flow, *at), &hops);
                    }
                    for ((flow, at), delay) in hops.into_iter().zip(delays) {
                        let state = &mut self.states[flow][at];
                        (state.delay, state.backlog) = (Some(delay), backlog);
                        state.credit = credit;
                    }
                }
                Err(why) => {
                    self.why.insert((port, class), why);
                    for (flow, at) in hops {
                        let state = &mut self.states[flow][at];
                        (state.delay, state.backlog) = (None, None);
                    }
                }
            }
        }
    }

    /// The most bytes of a class in its queue: frames that came within the longest delay.
    fn backlog(&self, classes: &Classes<'_>, class: usize, hops: &[(usize, usize)]) -> u64 {
        let rate = classes.config.rate.ps_per_byte();
        let work = classes.loads[class].work(classes.waits[class]);
        let frames: u64 = hops
            .iter()
            .map(|hop| {
                let entering = self.entering(classes, *hop);
                entering.frames(classes.waits[class]).unwrap_or(0)
            })
            .sum();
        let overhead = (PREAMBLE + GAP) as u64;
        (work / rate).saturating_sub(if frames > 0 { overhead } else { 0 })
    }

    /// Whether preemption becomes active at a port.
    fn preempts(&self, port: CableEnd) -> bool {
        let partner = self.wiring.across(port).map(|(_, end)| self.network.port(end));
        let answers = partner.is_some_and(|partner| partner.preemption.is_some());
        let own = self.network.port(port).preemption;
        own.is_some_and(|own| !own.verify.enabled || answers)
    }

    /// Whether frames may meet packets of the MAC, and whole frames that began before the ports had
    /// verified preemption.
    fn starts_early(
        &self,
        port: CableEnd,
        classes: &Classes<'_>,
        hops: &[(usize, usize)],
    ) -> bool {
        let Some(preemption) = classes.config.preemption else { return false };
        let Some((cable, other)) = self.wiring.across(port) else { return false };
        if !preemption.verify.enabled {
            return false;
        }
        let longest = classes.longest.iter().max().copied().unwrap_or(0) + MINIMUM + 2 * GAP;
        let exchange = |port: CableEnd| {
            let rate = self.network.port(port).rate;
            // A frame, and a packet of the MAC.
            rate.duration(longest).as_ps() + self.network.cables[cable].propagation.as_ps()
        };
        let tries = match self.preempts(port) {
            true => 0,
            false => u64::from(preemption.verify.attempts) * preemption.verify.time.as_ps(),
        };
        let verified = tries + 2 * exchange(port) + exchange(other);
        let starts = hops.iter().filter_map(|(flow, at)| {
            let start = self.network.stream(self.flows[*flow].stream?).start.as_ps();
            Some(start.saturating_add(self.states[*flow][*at].entry.0))
        });
        starts.min().is_some_and(|start| start < verified)
    }

    /// The frames of all classes at a port.
    fn classes(&self, port: CableEnd, all: &[(usize, usize)], preempts: bool) -> Classes<'a> {
        let config = self.network.port(port);
        let mut classes = Classes {
            config,
            loads: Default::default(),
            longest: [0; QUEUES],
            waits: [0; QUEUES],
            preempts,
            drift: self.drift,
            steps: self.rate_steps(port).to_vec(),
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

    fn rate_steps(&self, port: CableEnd) -> &[RateStep] {
        let cable = self.wiring.across(port).map(|(cable, _)| cable);
        cable.map_or(&[], |cable| &self.network.cables[cable].rate_steps)
    }

    fn load(
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
    fn caps(
        &self,
        classes: &Classes<'_>,
        from: CableEnd,
        port: CableEnd,
        class: usize,
        flows: &[(usize, usize)],
    ) -> Vec<Cap> {
        let network = self.network;
        let before = ports::per_byte(network.port(from), self.rate_steps(from));
        let mut cap = Cap { largest: [0; 2], rate: [0; 2], per: 1, slack: 0 };
        // The largest ratio of the time here to the time on the line before, in parts per 2^20.
        cap.per = 1 << 20;
        for (flow, _) in flows {
            let ends = self.flows[*flow].on_line(network, port);
            let starts = self.flows[*flow].on_line(network, from);
            for at in [0, 1] {
                let there = before * (starts[at] + GAP) as u64;
                let here = [
                    classes.work(ends[at] + GAP),
                    classes.counted(class, ends[at]),
                ];
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
            let share = |ratio: u64| {
                (u128::from(ratio) * u128::from(idle)).div_ceil(u128::from(rate)) as u64
            };
            let largest =
                [0, 1].map(|at| scaled(credit.range, cap.rate[at]).saturating_add(cap.largest[at]));
            // Ends of frames are apart by as much as their begins and one frame.
            let slack = cap.slack + cap.largest[0];
            Cap { largest, rate: cap.rate.map(share), per: cap.per, slack }
        });
        [Some(cap), shaped].into_iter().flatten().collect()
    }

    fn entering(&self, classes: &Classes<'_>, (flow, at): (usize, usize)) -> Entering {
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
    fn at_ring(&self, flow: usize, hop: &flows::Hop, longest: usize, time: u64) -> u64 {
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

    /// The longest time from the queue to the end of the transmission, for each hop of a class.
    fn delays(
        &self,
        classes: &Classes<'_>,
        class: usize,
        hops: &[(usize, usize)],
    ) -> Result<Vec<u64>, String> {
        let lines = |(flow, at): &(usize, usize)| {
            let flow = &self.flows[*flow];
            // All frames of a command together.
            if flow.command.is_some() {
                return (0, (0, 0));
            }
            let [longest, shortest] = flow.on_line(self.network, flow.hops[*at].port);
            let time = |bytes: usize| classes.config.rate.duration(bytes).as_ps();
            (time(longest), (classes.work(shortest + GAP), classes.counted(class, shortest)))
        };
        let lines: Vec<(u64, (u64, u64))> = hops.iter().map(lines).collect();
        let mut distinct: Vec<(u64, u64)> = lines.iter().map(|(_, line)| *line).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |line: &(u64, u64)| distinct.binary_search(line).expect("one of them");
        let mut machine = classes.class(class)?;
        let Some((first, at)) = hops.first().copied() else {
            let waits = machine.delays(&[(0, 0)]).ok_or_else(|| self.unbounded(&machine))?;
            return Ok(waits);
        };
        let station = matches!(self.flows[first].hops[at].port, CableEnd::Station(..));
        let waits = match station {
            false => {
                let waits = machine.delays(&distinct).ok_or_else(|| self.unbounded(&machine))?;
                let of_hop = |(_, line): &(u64, (u64, u64))| waits[place(line)];
                lines.iter().map(of_hop).collect::<Vec<_>>()
            }
            // Frames of a station's streams wait in no fixed order.
            true => {
                let own = std::mem::take(&mut machine.own);
                let mut waits = Vec::new();
                let delays = hops.iter().map(|(flow, at)| self.states[*flow][*at].delay);
                let wait = delays.map(|delay| delay.unwrap_or(LIMIT)).max().unwrap_or(0);
                for (at, (_, line)) in lines.iter().enumerate() {
                    let others = hops.iter().map(|(flow, _)| *flow).collect();
                    waits.push(self.at_station(classes, (&machine, &own), (at, wait), others)?);
                    let _ = line;
                }
                waits
            }
        };
        let is_cut = classes.is_cut(class);
        let end = |(wait, (longest, _)): (u64, &(u64, (u64, u64)))| {
            let sent = if is_cut { machine.sent(*longest) } else { Some(*longest) };
            sent.map(|sent| wait + sent).ok_or_else(|| self.unbounded(&machine))
        };
        waits.into_iter().zip(&lines).map(end).collect()
    }

    /// See [`Class::interference`].
    fn interference(
        &self,
        classes: &Classes<'_>,
        class: usize,
        (flow, at): (usize, usize),
        hops: &[(usize, usize)],
    ) -> Option<u64> {
        self.flows[flow].command?;
        let entering = self.entering(classes, (flow, at));
        let own = entering.in_flight?.checked_mul(entering.line)?;
        let machine = classes.class(class).ok()?;
        if matches!(self.flows[flow].hops[at].port, CableEnd::Bridge(..)) {
            return machine.interference(own);
        }
        let place = hops.iter().position(|hop| *hop == (flow, at))?;
        let flows = hops.iter().map(|(flow, _)| *flow).collect();
        let delays = hops.iter().map(|(flow, at)| self.states[*flow][*at].delay);
        let wait = delays.map(|delay| delay.unwrap_or(LIMIT)).max()?;
        let load = machine.own.clone();
        let alone = self.alone(classes, (&machine, &load), (place, wait), flows);
        alone.interference(own)
    }

    /// The longest frame of a tunnel, and the frames of a ring.
    fn turn(&self, flow: usize, classes: &Classes<'_>) -> (u64, u64) {
        let flow = &self.flows[flow];
        let longest = flow.on_line(self.network, flow.hops[0].port)[0];
        (classes.work(longest + GAP), self.network.stations[flow.from].tx_ring as u64)
    }

    /// The longest wait of flow `at` of a station, whose flows of the class are `flows`. Frames of
    /// the class wait up to `wait`.
    fn at_station(
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
    fn alone(
        &self,
        classes: &Classes<'_>,
        (machine, own): (&Class, &Load),
        (at, wait): (usize, u64),
        mut flows: Vec<usize>,
    ) -> Class {
        let (mut machine, mut groups) = (machine.clone(), own.groups.clone());
        flows.remove(at);
        machine.own = Load { groups: vec![groups.remove(at)] };
        if machine.credit.is_some() || machine.windows.is_some() {
            // All frames need credit and windows, in any order.
            machine.own.groups.extend(groups);
            return machine;
        }
        for (group, flow) in groups.into_iter().zip(flows) {
            let tunnel = self.flows[flow].command.is_some();
            let turns = tunnel.then(|| self.turn(flow, classes));
            let load = Load { groups: vec![group] };
            let (before, credit, cut, open) = (0, None, 0, None);
            machine.higher.push(Higher { load, before, wait, credit, cut, open, turns });
        }
        machine
    }

    fn unbounded(&self, machine: &Class) -> String {
        if machine.cycle.is_some() {
            return "the frames of a cycle may not fit into the next".into();
        }
        let (offered, limit) = machine.utilisation();
        if offered.is_finite() && offered >= limit {
            let percent = |share: f64| share * 100.0;
            return format!(
                "frames of this and higher classes offer {:.1} % of the line, and {:.1} % are free",
                percent(offered),
                percent(limit)
            );
        }
        match offered.is_finite() {
            true => "the delay exceeds 2 s".into(),
            false => "a flow of this or a higher class has no largest burst".into(),
        }
    }

    pub fn listeners(&self, number: usize, settled: &Result<(), String>) -> Vec<ListenerBound> {
        let flow = &self.flows[number];
        flow.ends.iter().map(|end| self.listener(number, end, settled)).collect()
    }

    /// The hops of a flow to a listener, in order.
    fn hops_to(&self, flow: &Flow, end: &flows::End) -> Vec<usize> {
        let mut used = vec![false; flow.hops.len()];
        end.before.iter().for_each(|at| used[*at] = true);
        for at in (0..flow.hops.len()).rev() {
            if used[at] {
                flow.hops[at].before.iter().for_each(|before| used[*before] = true);
            }
        }
        (0..flow.hops.len()).filter(|at| used[*at]).collect()
    }

    /// Why a flow has no bound.
    fn why(&self, flow: &Flow, hops: &[usize]) -> String {
        if let Err(why) = &flow.arrivals {
            return format!("{}: {why}", flow.name);
        }
        let mut at = hops.iter().map(|at| &flow.hops[*at]);
        let found = at.find_map(|hop| Some((hop, self.why.get(&(hop.port, hop.class))?)));
        found.map_or_else(
            || {
                "streams of its scheduler group exceed their rate and burst, so that the shaper \
                 has no largest delay"
                    .to_owned()
            },
            |(hop, why)| {
                format!("class {} at {}: {why}", hop.class, self.planned.port_name(hop.port))
            },
        )
    }

    pub fn debug(&self, number: usize) {
        for (hop, state) in self.flows[number].hops.iter().zip(&self.states[number]) {
            eprintln!("   {} {:?} ns", self.planned.port_name(hop.port), state.delay.map(|d| d / 1000));
        }
    }

    /// How much longer the frames of a command take over a flow than through a quiet network.
    ///
    /// # Errors
    /// Why there is no bound.
    pub fn extra(&self, number: usize) -> Result<Extra, String> {
        let flow = &self.flows[number];
        let Some(wire) = flow.command else { return Err(self.why(flow, &[])) };
        let mut longest = Extra::default();
        for end in &flow.ends {
            let hops = self.hops_to(flow, end);
            let by_hop = self.sum_of_delays(number, &hops, wire)?;
            let once = self.own_work_once(number, &hops, wire);
            let sum = once.map_or(by_hop, |(others, own)| by_hop.min(others + own));
            let others = once.map_or(by_hop, |(others, _)| others);
            longest.sum = longest.sum.max(sum);
            longest.others = longest.others.max(others);
        }
        Ok(longest)
    }

    /// [`Self::extra`] as the sum of the delays of all ports.
    fn sum_of_delays(&self, number: usize, hops: &[usize], wire: Wire) -> Result<u64, String> {
        let flow = &self.flows[number];
        let mut sum = 0;
        for (place, at) in hops.iter().enumerate() {
            let port = flow.hops[*at].port;
            let delay = self.states[number][*at].delay.ok_or_else(|| self.why(flow, hops))?;
            // The quiet network has the command's own frames at the first port, and at least the
            // shortest one at the others.
            let bytes = if place == 0 { wire.bytes } else { (PREAMBLE + MINIMUM) as u64 };
            let quiet = self.network.port(port).rate.ps_per_byte() * bytes;
            sum += delay.saturating_sub(quiet) + self.spread(port);
        }
        Ok(sum)
    }

    /// [`Self::extra`] with the work of the flow itself once, at the slowest port, because its
    /// frames keep their order: other frames and gates delay them at each port (as in "pay bursts
    /// only once"), and the longest frame is stored at each port. `None`: unbounded.
    fn own_work_once(&self, number: usize, hops: &[usize], wire: Wire) -> Option<(u64, u64)> {
        let flow = &self.flows[number];
        let commands = flow.arrivals.as_ref().ok()?.iter().map(|steps| steps.first).min()?;
        let (mut sum, mut slowest) = (0u64, 0);
        for (place, at) in hops.iter().enumerate() {
            let port = flow.hops[*at].port;
            let per_byte = ports::per_byte(self.network.port(port), self.rate_steps(port));
            slowest = slowest.max(per_byte);
            let stored = if place == 0 { 0 } else { flow.on_line(self.network, port)[0] + GAP };
            let interference = self.states[number][*at].interference?;
            sum += interference + per_byte * stored as u64 + self.spread(port);
        }
        Some((sum, slowest * wire.bytes * (commands - 1)))
    }

    /// The time of a byte at the slowest port of a flow.
    pub fn slowest(&self, number: usize) -> Option<u64> {
        let hops = self.flows[number].hops.iter();
        hops.map(|hop| self.network.port(hop.port).rate.ps_per_byte()).max()
    }

    /// By how much a bridge may take longer than in the mean.
    fn spread(&self, port: CableEnd) -> u64 {
        let [least, most] = self.bridge(port);
        (most - least) / 2
    }


    fn listener(
        &self,
        number: usize,
        end: &flows::End,
        settled: &Result<(), String>,
    ) -> ListenerBound {
        let flow = &self.flows[number];
        let hops = self.hops_to(flow, end);
        let to = CableEnd::Station(end.station, 0);
        let longest = end.before.iter().try_fold(0u64, |longest, at| {
            let state = &self.states[number][*at];
            let (_, travel) = self.travel(number, *at, to);
            Some(longest.max(state.entry.1? + state.delay? + travel))
        });
        let bound = match (settled, longest) {
            (Err(why), _) => Err(why.clone()),
            (Ok(()), Some(longest)) if flow.arrivals.is_ok() => Ok(Duration::from_ps(longest)),
            _ => Err(self.why(flow, &hops)),
        };
        let hop = |at: &usize| {
            let state = &self.states[number][*at];
            HopBound {
                port: self.planned.port_name(flow.hops[*at].port),
                bound: state.delay.map(Duration::from_ps),
                backlog: state.backlog,
            }
        };
        ListenerBound {
            name: self.planned.stations[end.station].clone(),
            bound,
            hops: hops.iter().map(hop).collect(),
        }
    }
}
