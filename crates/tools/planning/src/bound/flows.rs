//! The flows of a network: streams and their ports.

use super::arrivals::Steps;
use crate::commands::probe::Wire;
use plan::simulate::places;
use sim::ethernet::frame;
use sim::ethernet::streams::Header;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Tag, port};
use sim::network::{CableEnd, NetworkConfig, Place, StreamConfig, Wiring, ip};
use std::collections::{BTreeMap, BTreeSet};
use tsn::Cqf;
use tsn::psfp::Config as FilterConfig;

/// Frames from one source.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name of the stream, or of the sender of a tunnel or flow.
    pub name: String,
    /// The stream; `None`: a direction of a tunnel, or a flow over TCP.
    pub stream: Option<StreamId>,
    /// What a count of `arrivals` is: the frames of a command; `None`: one frame. Commands in flight
    /// are limited, so `arrivals` holds at every hop, whatever the delays.
    pub command: Option<Wire>,
    /// The sending station.
    pub from: usize,
    /// The tag of its frames.
    pub tag: Option<Tag>,
    /// The longest and the shortest frame in bytes: header to FCS, without tags.
    pub length: [usize; 2],
    /// The arrivals satisfy all of these; `Err`: why the number of frames has no limit.
    pub arrivals: Result<Vec<Steps>, String>,
    /// The hops, each after the hops before it.
    pub hops: Vec<Hop>,
    /// The listeners.
    pub ends: Vec<End>,
}

/// A port that frames of a flow leave through.
#[derive(Clone, Debug)]
pub struct Hop {
    /// The port.
    pub port: CableEnd,
    /// The traffic class of the frames at the port.
    pub class: usize,
    /// The previous hops: none at the source, several if copies meet.
    pub before: Vec<usize>,
    /// Copies of each frame, at least one.
    pub copies: u64,
    /// Whether the bridge drops frames that its filter rejects.
    pub filtered: bool,
    /// Whether a stream gate of the bridge gives the frames several priorities.
    pub spread: bool,
    /// What a meter of the bridge lets pass.
    pub meter: Option<Steps>,
}

/// A listener of a flow.
#[derive(Clone, Debug)]
pub struct End {
    /// The station.
    pub station: usize,
    /// The last hops.
    pub before: Vec<usize>,
}

impl Flow {
    /// The longest and the shortest frame at a port in bytes on the line, without gap.
    pub fn on_line(&self, network: &NetworkConfig, port: CableEnd) -> [usize; 2] {
        let security = usize::from(network.port(port).security);
        // An R-TAG is on a part of the way only.
        let redundancy = [self.redundancy(network), 0];
        [0, 1].map(|at| {
            let untagged = self.length[at] - frame::FCS + redundancy[at] + security;
            frame::PREAMBLE + frame::length(untagged, self.tag.is_some())
        })
    }

    fn redundancy(&self, network: &NetworkConfig) -> usize {
        let from = network.streams.iter().filter(|stream| stream.from == self.from);
        from.map(StreamConfig::tag_length).max().unwrap_or(0)
    }
}

/// The flow of a stream.
///
/// # Errors
/// Why the paths of the stream are not covered.
pub fn of_stream(
    wiring: &Wiring<'_>,
    name: &str,
    id: StreamId,
    drift: u64,
) -> Result<Flow, String> {
    let (network, stream) = (wiring.network, wiring.network.stream(id));
    let from = usize::from(id.station);
    let tag = network.stream_tag(id);
    let ways = stream.listeners.iter().map(|to| places::listener_ways(wiring, id, to));
    let ways: Vec<Vec<Vec<CableEnd>>> = ways.collect();
    let first = stream.listeners[0].station;
    let header = Header {
        destination: network.destination(id),
        source: network.mac(from),
        tag,
        ip: Some([ip(from), ip(first)]),
    };
    let handled = handling(network, from, &header);
    let shortest = match stream.pattern {
        sim::ethernet::traffic::Pattern::Recorded(_) => frame::MINIMUM,
        _ => stream.length,
    };
    let length = [stream.length, shortest];
    let arrivals = match stream.babbles.is_empty() {
        true => Steps::of_stream(stream, drift).map(|steps| vec![steps]),
        false => Err("it sends without pause (babbles)".into()),
    };
    let (hops, ends) = graph(wiring, &ways, tag, handled, shortest)?;
    let arrivals = arrivals.and_then(|steps| keeps_priority(handled).map(|()| steps));
    let stations = stream.listeners.iter().map(|to| to.station);
    let ends = stations.zip(ends).map(|(station, before)| End { station, before }).collect();
    let (name, stream, command) = (name.to_owned(), Some(id), None);
    Ok(Flow { name, stream, command, from, tag, length, arrivals, hops, ends })
}

/// The flow from one station to another with a priority: a direction of a tunnel or flow over TCP.
///
/// # Errors
/// Why its paths are not covered.
pub fn between(
    wiring: &Wiring<'_>,
    name: String,
    [from, to]: [usize; 2],
    priority: u8,
    (longest, command): (usize, Result<(Vec<Steps>, Wire), String>),
) -> Result<Flow, String> {
    let network = wiring.network;
    let (tag, destination) = (network.tag(from, priority), network.mac(to));
    let ways = vec![places::ways(wiring, from, destination, to, tag)];
    let header =
        Header { destination, source: network.mac(from), tag, ip: Some([ip(from), ip(to)]) };
    let length = [longest, frame::MINIMUM];
    let handled = handling(network, from, &header);
    let (hops, ends) = graph(wiring, &ways, tag, handled, frame::MINIMUM)?;
    let ends = ends.into_iter().map(|before| End { station: to, before }).collect();
    let kept = keeps_priority(handled);
    let (arrivals, command) = match command.and_then(|command| kept.map(|()| command)) {
        Ok((steps, wire)) => (Ok(steps), Some(wire)),
        Err(why) => (Err(why), None),
    };
    Ok(Flow { name, stream: None, command, from, tag, length, arrivals, hops, ends })
}

/// The stream of `[streams]` that frames with these headers belong to.
fn handling<'a>(
    network: &'a NetworkConfig,
    from: usize,
    header: &Header,
) -> Option<&'a StreamConfig> {
    let mut own = network.streams.iter().filter(|stream| stream.from == from);
    own.find(|stream| stream.identification.matches(header))
}

/// The hops of ways, for each listener, and the last hops of each listener.
pub fn graph(
    wiring: &Wiring<'_>,
    ways: &[Vec<Vec<CableEnd>>],
    tag: Option<Tag>,
    handled: Option<&StreamConfig>,
    shortest: usize,
) -> Result<(Vec<Hop>, Vec<Vec<usize>>), String> {
    let mut before: BTreeMap<CableEnd, BTreeSet<CableEnd>> = BTreeMap::new();
    for way in ways.iter().flatten() {
        for (at, port) in way.iter().enumerate() {
            let all = before.entry(*port).or_default();
            all.extend(at.checked_sub(1).map(|at| way[at]));
        }
    }
    let merges = |node: Place| {
        handled.is_some_and(|stream| stream.eliminate.iter().any(|(at, _)| *at == node))
    };
    // A node that eliminates sends the first copy to all of its ports.
    let all: BTreeMap<CableEnd, BTreeSet<CableEnd>> = before.clone();
    for (port, own) in &mut before {
        if merges(port.node()) {
            let same = all.iter().filter(|(other, _)| other.node() == port.node());
            own.extend(same.flat_map(|(_, before)| before.iter().copied()));
        }
    }
    let mut numbers: BTreeMap<CableEnd, usize> = BTreeMap::new();
    let mut hops: Vec<Hop> = Vec::new();
    while hops.len() < before.len() {
        let known = hops.len();
        for (port, own) in &before {
            let ready = own.iter().all(|before| numbers.contains_key(before));
            if numbers.contains_key(port) || !ready {
                continue;
            }
            let own: Vec<usize> = own.iter().map(|before| numbers[before]).collect();
            let copies: u64 = own.iter().map(|before| hops[*before].copies).sum();
            let copies = if merges(port.node()) { 1 } else { copies.max(1) };
            numbers.insert(*port, hops.len());
            let filter = filter(handled, *port);
            let meter = filter.and_then(|filter| filter.meter.as_ref());
            let meter = meter.and_then(|meter| Steps::of_meter(meter, shortest));
            let queues = wiring.network.port(*port).queue_of_priority;
            let class = priorities(filter)
                .map(|priority| usize::from(queues[usize::from(priority)]))
                .fold(class(wiring.network, *port, tag), usize::max);
            let filtered = filter.is_some();
            let spread = priorities(filter).collect::<BTreeSet<_>>().len() > 1;
            hops.push(Hop { port: *port, class, before: own, copies, filtered, spread, meter });
        }
        if hops.len() == known {
            return Err("its paths are a circle".into());
        }
    }
    let last = |ways: &Vec<Vec<CableEnd>>| {
        let last = ways.iter().filter_map(|way| way.last());
        last.map(|port| numbers[port]).collect::<BTreeSet<_>>().into_iter().collect()
    };
    Ok((hops, ways.iter().map(last).collect()))
}

/// The traffic class of frames at a port; of cyclic queues, the first of the pair.
pub fn class(network: &NetworkConfig, port: CableEnd, tag: Option<Tag>) -> usize {
    let pcp = tag.map_or(0, |tag| tag.pcp & 7);
    let config = network.port(port);
    let class = config.queue_of_priority[usize::from(pcp)].into();
    cyclic(config, class).map_or(class, |pair| pair.classes[0].into())
}

/// The cyclic queues that a class is one of.
pub fn cyclic(config: &port::Config, class: usize) -> Option<Cqf> {
    config.cqf.iter().copied().find(|pair| pair.classes.contains(&(class as u8)))
}

fn filter(handled: Option<&StreamConfig>, port: CableEnd) -> Option<&FilterConfig> {
    let CableEnd::Bridge(bridge, _) = port else { return None };
    let filters = &handled?.filters;
    filters.iter().find(|(at, _)| *at == bridge).map(|(_, filter)| filter)
}

/// The priorities that a stream gate gives to frames.
fn priorities(filter: Option<&FilterConfig>) -> impl Iterator<Item = u8> {
    let gate = filter.and_then(|filter| filter.gate.as_ref());
    gate.into_iter().flat_map(|gate| gate.entries.iter().filter_map(|entry| entry.ipv))
}

/// # Errors
/// If frames are in different classes, so that none has an arrival curve. [`Hop::class`] is then the
/// highest.
fn keeps_priority(handled: Option<&StreamConfig>) -> Result<(), String> {
    let filters = handled.into_iter().flat_map(|stream| &stream.filters);
    match filters.flat_map(|(_, filter)| priorities(Some(filter))).next() {
        None => Ok(()),
        Some(_) => Err("a stream gate changes the priority of its frames".into()),
    }
}
