//! The nodes of a plan as devices: ports by the names of their neighbours, streams, addresses.

use plan::Planned;
use sim::ethernet::streams::{Identification, Recover};
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::ethernet::{Mac, port};
use sim::network::{CableEnd, ClockNode, Place, StreamConfig, TrafficConfig, Wiring};
use std::collections::{BTreeMap, BTreeSet};
use tsn::{QUEUES, psfp};
use wire::{Duration, Instant};

/// A station or bridge of a plan.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in the plan.
    pub name: String,
    /// Whether it is a station or a bridge, and its number.
    pub place: Place,
    /// Its ports, in the order of the configuration.
    pub ports: Vec<Port>,
    /// Streams that the node identifies.
    pub streams: Vec<Stream>,
    /// Where a bridge sends frames to addresses with given ports.
    pub entries: Vec<Entry>,
    /// VLANs of the tags with which a station sends, 0 for a priority tag.
    pub vlans: BTreeSet<u16>,
    /// Streams of a station that leave at times of a schedule.
    pub launches: Vec<Launch>,
    /// The node's clock, if the plan has `[clocks]`.
    pub clock: Option<ClockNode>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// The name of the neighbour, made unique if several cables lead there. It is the name of the
    /// interface in exported files.
    pub peer: String,
    /// The parameters.
    pub config: port::Config,
}

/// A stream at a node that identifies its frames.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name in the plan.
    pub name: String,
    /// Its number in the plan, from 1: the stream handle in YANG.
    pub handle: u32,
    /// How the node identifies the frames.
    pub identification: Identification,
    /// The ports on which the frames arrive.
    pub inputs: BTreeSet<usize>,
    /// The ports that send the frames; empty if their address decides.
    pub outputs: BTreeSet<usize>,
    /// The filter that the node applies.
    pub filter: Option<psfp::Config>,
    /// The recovery function that discards copies at the node.
    pub recover: Option<Recover>,
    /// Whether the node numbers the frames.
    pub numbers: bool,
}

/// An address with given output ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The destination.
    pub address: Mac,
    /// The VLAN of the frames; `None` for frames without a tag.
    pub vlan: Option<u16>,
    /// The output ports.
    pub ports: BTreeSet<usize>,
}

/// A stream whose sender waits for a time, not for a gate of its own: it is periodic by the sender's
/// clock, without jitter, and passes a gate.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its name in the plan.
    pub name: String,
    /// The traffic class at the sender's port.
    pub class: usize,
    /// Start of the first frame, and the interval.
    pub times: (Instant, Duration),
}

impl Node {
    /// Returns the stations of a plan, then its bridges.
    pub fn all(planned: &Planned) -> Vec<Self> {
        let network = &planned.config.network;
        let wiring = network.wiring();
        let parts = Parts::new(planned, &wiring);
        let stations = (0..network.stations.len()).map(Place::Station);
        let bridges = (0..network.bridges.len()).map(Place::Bridge);
        stations.chain(bridges).map(|place| parts.node(place)).collect()
    }

    /// Returns whether the node is a bridge.
    pub const fn is_bridge(&self) -> bool {
        matches!(self.place, Place::Bridge(_))
    }
}

struct Parts<'a> {
    planned: &'a Planned,
    wiring: &'a Wiring<'a>,
    /// By node: the groups of streams, with their VLANs and the ports that send them.
    groups: BTreeMap<Place, Vec<(Mac, Option<u16>, usize)>>,
}

impl<'a> Parts<'a> {
    fn new(planned: &'a Planned, wiring: &'a Wiring<'a>) -> Self {
        let mut parts = Self { planned, wiring, groups: BTreeMap::new() };
        let mut groups: BTreeMap<Place, Vec<_>> = BTreeMap::new();
        for (id, traffic) in parts.traffic() {
            let Some(group) = traffic.group(id).filter(|group| *group != Mac::BROADCAST) else {
                continue;
            };
            let vlan = planned.config.network.stream_tag(id).map(|tag| tag.vid);
            for end in wiring.tree_of(id.station.into(), traffic).unwrap_or_default() {
                let (CableEnd::Station(_, port) | CableEnd::Bridge(_, port)) = end;
                groups.entry(end.node()).or_default().push((group, vlan, port));
            }
        }
        parts.groups = groups;
        parts
    }

    fn node(&self, place: Place) -> Node {
        let network = &self.planned.config.network;
        let time = network.time.as_ref();
        let (configs, clock) = match place {
            Place::Station(at) => {
                (&network.stations[at].ports, time.map(|time| &time.stations[at]))
            }
            Place::Bridge(at) => (&network.bridges[at].ports, time.map(|time| &time.bridges[at])),
        };
        let mut used = BTreeMap::new();
        let port = |(number, config): (usize, &port::Config)| {
            let neighbour = self.wiring.across(place.port(number)).map(|(_, end)| end.node());
            let name = neighbour.map_or("none", |place| self.name(place));
            let count = used.entry(name).or_insert(0);
            *count += 1;
            let peer = if *count == 1 { name.to_owned() } else { format!("{name}-{count}") };
            Port { peer, config: config.clone() }
        };
        Node {
            name: self.name(place).to_owned(),
            place,
            ports: configs.iter().enumerate().map(port).collect(),
            streams: self.streams(place),
            entries: self.entries(place),
            vlans: self.vlans(place),
            launches: self.launches(place),
            clock: clock.cloned(),
        }
    }

    fn name(&self, place: Place) -> &str {
        match place {
            Place::Station(at) => &self.planned.stations[at],
            Place::Bridge(at) => &self.planned.bridges[at],
        }
    }

    fn streams(&self, place: Place) -> Vec<Stream> {
        let configs = &self.planned.config.network.streams;
        let named = self.planned.identified.iter().zip(configs).zip(1..);
        let stream = |((name, config), handle): ((&String, &StreamConfig), u32)| {
            let filter = config.filters.iter().find(|(at, _)| Place::Bridge(*at) == place);
            let recover = config.eliminate.iter().find(|(at, _)| *at == place);
            let (inputs, outputs) = self.ports_of(config, place);
            let numbers = config.numbers == place && !config.eliminate.is_empty();
            let here = filter.is_some() || recover.is_some() || numbers || !outputs.is_empty();
            here.then(|| Stream {
                name: name.clone(),
                handle,
                identification: config.identification,
                inputs,
                outputs,
                filter: filter.map(|(_, filter)| filter.clone()),
                recover: recover.map(|(_, recover)| *recover),
                numbers,
            })
        };
        named.filter_map(stream).collect()
    }

    /// Returns the ports of a node on which frames of a stream arrive, and the ports to which the
    /// stream's own paths send them.
    fn ports_of(&self, config: &StreamConfig, place: Place) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let hops = |path: &Vec<usize>| self.wiring.hops(config.from, path).unwrap_or_default();
        let own = config.paths.iter().flat_map(hops);
        let outputs = own.clone().filter_map(|[sent, _]| port_at(sent, place)).collect();
        let by_address = config.to.iter().flat_map(|to| self.wiring.way(config.from, *to));
        let by_address = by_address.filter_map(|sent| Some([sent, self.wiring.across(sent)?.1]));
        let hops: Vec<_> =
            if config.paths.is_empty() { by_address.collect() } else { own.collect() };
        // A stream to any station may come from everywhere.
        let everywhere = config.to.is_empty().then(|| match place {
            Place::Bridge(at) => 0..self.planned.config.network.bridges[at].ports.len(),
            Place::Station(_) => 0..0,
        });
        let inputs = hops.into_iter().filter_map(|[_, end]| port_at(end, place));
        (inputs.chain(everywhere.into_iter().flatten()).collect(), outputs)
    }

    fn entries(&self, place: Place) -> Vec<Entry> {
        let Place::Bridge(_) = place else { return Vec::new() };
        let network = &self.planned.config.network;
        let mut all = BTreeMap::new();
        let mut add = |address: Mac, vlan: Option<u16>, ports: BTreeSet<usize>| {
            let entry = all.entry((address, vlan)).or_insert_with(BTreeSet::new);
            entry.extend(ports);
        };
        for (group, vlan, port) in self.groups.get(&place).into_iter().flatten() {
            add(*group, *vlan, BTreeSet::from([*port]));
        }
        for config in &network.streams {
            let Identification::Null { destination, vlan } = config.identification else {
                continue;
            };
            add(destination, vlan, self.ports_of(config, place).1);
        }
        let entry = |((address, vlan), ports)| Entry { address, vlan, ports };
        all.into_iter().map(entry).filter(|entry| !entry.ports.is_empty()).collect()
    }

    fn traffic(&self) -> impl Iterator<Item = (StreamId, &TrafficConfig)> {
        let stations = self.planned.config.network.stations.iter().enumerate();
        stations.flat_map(|(station, config)| {
            let numbered = config.traffic.iter().enumerate();
            numbered.map(move |(number, traffic)| (StreamId::new(station, number), traffic))
        })
    }

    fn of_station(&self, place: Place) -> impl Iterator<Item = (StreamId, &TrafficConfig)> {
        self.traffic().filter(move |(id, _)| Place::Station(id.station.into()) == place)
    }

    fn vlans(&self, place: Place) -> BTreeSet<u16> {
        let Place::Station(station) = place else { return BTreeSet::new() };
        let network = &self.planned.config.network;
        let tagging = network.stations[station].tagging.map(|tagging| tagging.vid);
        let own = self.of_station(place).filter_map(|(id, _)| network.stream_tag(id));
        own.map(|tag| tag.vid).chain(tagging).collect()
    }

    /// Returns the launches of the classes of a station that carry nothing else.
    fn launches(&self, place: Place) -> Vec<Launch> {
        let Place::Station(station) = place else { return Vec::new() };
        let config = &self.planned.config;
        let port = &config.network.stations[station].ports[0];
        let class_of = |tag: Option<sim::ethernet::Tag>| {
            usize::from(port.queue_of_priority[tag.map_or(0, |tag| usize::from(tag.pcp))])
        };
        let mut other = [port.gates.is_some(); QUEUES];
        for (_, link) in plan::simulate::places::links(config) {
            let Some((ends, priority)) = link.transport.stations() else { continue };
            if ends.contains(&station) {
                other[class_of(config.network.tag(station, priority))] = true;
            }
        }
        for flow in config.network.bulk.iter().filter(|flow| flow.stations.contains(&station)) {
            other[class_of(config.network.tag(station, flow.priority))] = true;
        }
        if let Some(time) = &config.network.time {
            other[usize::from(time.stations[station].class & 7)] = true;
        }
        let mut all = Vec::new();
        for (id, traffic) in self.of_station(place) {
            let class = class_of(config.network.stream_tag(id));
            match traffic.pattern {
                Pattern::Periodic(interval) if self.waits(id, traffic) => {
                    let found = self.planned.streams.iter().find(|(_, stream)| *stream == id);
                    let name = found.map_or_else(String::new, |(name, _)| name.clone());
                    all.push(Launch { name, class, times: (traffic.start, interval) });
                }
                _ => other[class] = true,
            }
        }
        all.retain(|launch| !other[launch.class]);
        all
    }

    /// Returns whether a periodic stream keeps to its times and passes a gate that closes.
    fn waits(&self, id: StreamId, traffic: &TrafficConfig) -> bool {
        let exact = traffic.own_clock && traffic.jitter == Duration::ZERO;
        let steady = traffic.on_off.is_none() && traffic.babbles.is_empty();
        let way = plan::simulate::places::stream_routes(self.wiring, id);
        let closes =
            |gates: &tsn::Gates, queue| gates.longest_closed(queue) != Some(Duration::ZERO);
        let gated = way.iter().any(|hop| hop.gates.is_some_and(|gates| closes(gates, hop.queue)));
        exact && steady && gated
    }
}

/// Returns the number of a port, if it is a port of this node.
fn port_at(end: CableEnd, place: Place) -> Option<usize> {
    let (CableEnd::Station(_, port) | CableEnd::Bridge(_, port)) = end;
    (end.node() == place).then_some(port)
}
