//! Delays of all ports and flows.

mod arrive;
mod load;
mod regulate;
mod result;
mod separate;
mod servers;
mod station;

use super::flows::{self, Flow};
use super::method::{Method, Used};
use super::ports::Classes;
use super::service::{Class, Credit, LIMIT};
use super::tunnels::{CommandBound, Tunnels};
use super::{arrivals::Steps, premises};
use crate::commands::HostCommands;
use plan::Planned;
use plan::simulate::places;
use separate::Spans;
use sim::ethernet::frame::{GAP, MINIMUM, PREAMBLE};
use sim::ethernet::port::Algorithm;
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
    /// The methods that bound the hops of `bound`.
    pub used: Used,
    /// The hops, by total flow analysis.
    pub hops: Vec<HopBound>,
}

/// A hop of a stream.
#[derive(Clone, Debug)]
pub struct HopBound {
    /// The port and the far end of its cable.
    pub port: String,
    /// The port, and the class there.
    pub place: (CableEnd, usize),
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

/// A class, its flows with their hops, and for each the longest time from the queue to the end of the
/// transmission, or why there is none.
type ClassDelays = (usize, Vec<(usize, usize)>, Result<Vec<u64>, String>);

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
    /// The names of the ports.
    names: BTreeMap<CableEnd, String>,
    /// Why a class of a port is unbounded.
    why: BTreeMap<(CableEnd, usize), String>,
    /// By how much clocks run fast or slow, in parts per million.
    drift: u64,
    planned: &'a Planned,
    method: Method,
    /// Bounds of several hops, by the methods that have them.
    spans: Vec<(Used, Spans)>,
    /// Flows for which a method of `spans` has none, and why.
    refused: BTreeMap<usize, String>,
}

/// The guaranteed latencies of a plan, of streams by `method`.
pub fn bound(planned: &Planned, method: Method) -> Bounds {
    bound_with(planned, &known_commands(planned), method)
}

/// The commands of each host of a plan, found by simulations; they do not depend on gates.
pub fn known_commands(planned: &Planned) -> Vec<Result<HostCommands, String>> {
    (0..planned.config.hosts.len()).map(|host| HostCommands::new(planned, host)).collect()
}

/// [`bound`], with the commands of each host.
pub fn bound_with(
    planned: &Planned,
    commands: &[Result<HostCommands, String>],
    method: Method,
) -> Bounds {
    let network = &planned.config.network;
    let wiring = network.wiring();
    let drift = premises::drift(network);
    let stream = |(name, id): &(String, StreamId)| flows::of_stream(&wiring, name, *id, drift);
    let streams: Vec<Result<Flow, String>> = planned.streams.iter().map(stream).collect();
    let mut known: Vec<Flow> = streams.iter().filter_map(|flow| flow.clone().ok()).collect();
    let tunnels = Tunnels::new(planned, &wiring, commands, &mut known);
    let mut solver = Solver::new(planned, &wiring, &known, (drift, method));
    // Frames of unknown paths may delay all others.
    let mut names = planned.streams.iter().zip(&streams);
    let unknown =
        names.find_map(|((name, _), flow)| Some(format!("{name}: {}", flow.as_ref().err()?)));
    let settled = unknown.map_or_else(|| solver.run(), Err);
    if settled.is_ok() {
        solver.separate();
    }
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
                    used: Used::default(),
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
        (drift, method): (u64, Method),
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
        let states =
            flows.iter().map(|flow| flow.hops.iter().map(|hop| least(flow, hop)).collect());
        let (states, why) = (states.collect(), BTreeMap::new());
        let name = |port: &CableEnd| {
            let far = wiring.across(*port).map(|(_, end)| places::between((*port, end)));
            let name = far.unwrap_or_else(|| places::name(*port));
            (*port, planned.link_name(&name))
        };
        let names = ports.keys().map(name).collect();
        let spans = Vec::new();
        let mut solver = Self {
            network,
            wiring,
            flows,
            states,
            ports,
            names,
            why,
            drift,
            planned,
            method,
            spans,
            refused: BTreeMap::new(),
        };
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
        let names: Vec<String> = open.iter().take(8).map(|port| self.names[port].clone()).collect();
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

    /// Computes the delays of all flows at a port.
    fn port(&mut self, port: CableEnd) {
        let (classes, found) = self.analyse(port);
        self.keep(port, &classes, found);
    }

    /// The classes of a port, and the delays of their hops.
    fn analyse(&self, port: CableEnd) -> (Classes<'a>, Vec<ClassDelays>) {
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
        (classes, found)
    }

    fn keep(&mut self, port: CableEnd, classes: &Classes<'_>, found: Vec<ClassDelays>) {
        let backlogs: Vec<Option<u64>> = found
            .iter()
            .map(|(class, hops, delays)| {
                delays.as_ref().ok().and_then(|_| self.backlog(classes, *class, hops))
            })
            .collect();
        for ((class, hops, delays), backlog) in found.into_iter().zip(backlogs) {
            match delays {
                Ok(delays) => {
                    self.why.remove(&(port, class));
                    let credit = classes.range(class);
                    for (flow, at) in &hops {
                        self.states[*flow][*at].interference =
                            self.interference(classes, class, (*flow, *at), &hops);
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

    /// The most bytes of a class in its queue: frames that came within the longest delay, and those
    /// that wait for an asynchronous shaper. `None`: unbounded.
    fn backlog(&self, classes: &Classes<'_>, class: usize, hops: &[(usize, usize)]) -> Option<u64> {
        let waits = classes.waits[class];
        let shaped = matches!(classes.config.classes[class].algorithm, Algorithm::Ats(_));
        let came = |hop: &(usize, usize)| {
            let mut entering = self.entering(classes, *hop);
            let mut within = waits;
            if shaped {
                let held = self.regulated(hop.0, hop.1)?;
                // The last constraint is what the shaper lets pass.
                entering.constraints.pop();
                for one in &mut entering.constraints {
                    one.jitter = one.jitter.saturating_sub(held);
                }
                within = within.saturating_add(held);
            }
            let frames = entering.frames(within).unwrap_or(if shaped { u64::MAX } else { 0 });
            Some((frames, frames.saturating_mul(entering.line)))
        };
        let came = hops.iter().map(came).collect::<Option<Vec<_>>>()?;
        let work = match shaped {
            true => came.iter().fold(0, |sum: u64, (_, work)| sum.saturating_add(*work)),
            false => classes.loads[class].work(waits),
        };
        let is_empty = came.iter().all(|(frames, _)| *frames == 0);
        let overhead = if is_empty { 0 } else { (PREAMBLE + GAP) as u64 };
        let bytes = work / classes.config.rate.ps_per_byte();
        (work < LIMIT).then(|| bytes.saturating_sub(overhead))
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
    fn starts_early(&self, port: CableEnd, classes: &Classes<'_>, hops: &[(usize, usize)]) -> bool {
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
                for at in 0..lines.len() {
                    let others = hops.iter().map(|(flow, _)| *flow).collect();
                    waits.push(self.at_station(classes, (&machine, &own), (at, wait), others)?);
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
}
