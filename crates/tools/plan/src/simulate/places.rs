//! Places in a configuration: links, paths through the network, and their names.

use sim::Config;
use sim::ethernet::frame::{MINIMUM, PREAMBLE};
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Mac, Rate, Tag, port};
use sim::network::{CableEnd, Listener, NetworkConfig, Place, Wiring};
use sim::transport::TransportConfig;
use sim::world::{HostConfig, TunnelLink};
use std::collections::BTreeSet;
use tsn::Gates;
use wire::Duration;

/// Returns the tunnel links in the order of their numbers, each with its host.
pub fn links(config: &Config) -> impl Iterator<Item = (usize, TunnelLink<'_>)> {
    let hosts = config.hosts.iter().enumerate();
    hosts.flat_map(|(number, host)| host.links().into_iter().map(move |link| (number, link)))
}

/// Returns the links between a host and one of its drives, the drive's link last.
pub fn path(host: &HostConfig, drive: usize) -> Vec<TunnelLink<'_>> {
    let links = host.links();
    let of_drive = |link: &TunnelLink| link.drive.is_some_and(|(number, _)| number == drive);
    let last = links.iter().position(of_drive);
    let mut path: Vec<_> =
        std::iter::successors(last, |at| links[*at].above).map(|at| links[at]).collect();
    path.reverse();
    path
}

/// A port of the network that a link's frames leave through.
#[derive(Clone, Debug)]
pub struct Egress<'a> {
    /// Place of the port.
    pub place: CableEnd,
    /// Rate of the port.
    pub rate: Rate,
    /// The queue in which the link's frames wait.
    pub queue: usize,
    /// Gates of the port, if there are any.
    pub gates: Option<&'a Gates>,
    /// Configuration of the port.
    pub port: &'a port::Config,
}

/// Returns the ports through which frames of priority `priority` leave on their way between two
/// stations; empty if there is no way. If a stream has several paths, returns the ports of the
/// fastest path.
pub fn route<'a>(wiring: &Wiring<'a>, from: usize, to: usize, priority: u8) -> Vec<Egress<'a>> {
    let (network, tag) = (wiring.network, wiring.network.tag(from, priority));
    let ways = ways(wiring, from, network.mac(to), to, tag);
    let fastest = ways.into_iter().min_by_key(|way| travel(wiring, way, MINIMUM));
    egresses(network, tag, fastest.unwrap_or_default())
}

/// Returns the ports of all paths between two stations, each port once.
pub fn all_routes<'a>(
    wiring: &Wiring<'a>,
    from: usize,
    to: usize,
    priority: u8,
) -> Vec<Egress<'a>> {
    let (network, tag) = (wiring.network, wiring.network.tag(from, priority));
    egresses(network, tag, once(ways(wiring, from, network.mac(to), to, tag)))
}

fn once(ways: Vec<Vec<CableEnd>>) -> Vec<CableEnd> {
    let mut seen = BTreeSet::new();
    ways.into_iter().flatten().filter(|place| seen.insert(*place)).collect()
}

/// Returns the ports of all paths of a stream of `[traffic]`, each port once.
pub fn stream_routes<'a>(wiring: &Wiring<'a>, stream: StreamId) -> Vec<Egress<'a>> {
    let (network, traffic) = (wiring.network, wiring.network.stream(stream));
    let ways = traffic.listeners.iter().flat_map(|to| listener_ways(wiring, stream, to));
    egresses(network, network.stream_tag(stream), once(ways.collect()))
}

/// Returns the ports of each path of a stream to a listener.
pub fn listener_ways(
    wiring: &Wiring<'_>,
    stream: StreamId,
    listener: &Listener,
) -> Vec<Vec<CableEnd>> {
    let (network, from) = (wiring.network, usize::from(stream.station));
    match listener.path {
        Some(_) => {
            let hops = wiring.route(from, listener).unwrap_or_default();
            vec![hops.into_iter().map(|[sent, _]| sent).collect()]
        }
        None => {
            let (destination, tag) = (network.destination(stream), network.stream_tag(stream));
            ways(wiring, from, destination, listener.station, tag)
        }
    }
}

fn egresses(network: &NetworkConfig, tag: Option<Tag>, places: Vec<CableEnd>) -> Vec<Egress<'_>> {
    let pcp = tag.map_or(0, |tag| tag.pcp);
    let egress = |place| {
        let port = network.port(place);
        let queue = port.queue_of_priority[usize::from(pcp & 7)].into();
        Egress { place, rate: port.rate, queue, gates: port.gates.as_ref(), port }
    };
    places.into_iter().map(egress).collect()
}

/// Returns the ports of each path: those of the stream that lead to the station, or the path of the
/// tree.
pub fn ways(
    wiring: &Wiring<'_>,
    from: usize,
    destination: Mac,
    to: usize,
    tag: Option<Tag>,
) -> Vec<Vec<CableEnd>> {
    if let Some(stream) = wiring.stream_of(from, destination, to, tag) {
        let hops = stream.paths.iter().filter_map(|path| wiring.hops(from, path).ok());
        let leads = |hops: &Vec<[CableEnd; 2]>| {
            hops.last().is_some_and(|[_, end]| end.node() == Place::Station(to))
        };
        let sent = |hops: Vec<[CableEnd; 2]>| hops.into_iter().map(|[sent, _]| sent).collect();
        return hops.filter(leads).map(sent).collect();
    }
    vec![wiring.way(from, to)]
}

/// Returns the minimum time of a frame of `length` bytes, header to FCS, through these ports:
/// lines, cables and bridges, with empty queues.
pub fn travel(wiring: &Wiring<'_>, way: &[CableEnd], length: usize) -> Duration {
    let network = wiring.network;
    way.iter().fold(Duration::ZERO, |sum, place| {
        let cable = wiring.across(*place).map(|(cable, _)| network.cables[cable].propagation);
        let bridge = match place {
            CableEnd::Station(..) => Duration::ZERO,
            CableEnd::Bridge(bridge, _) => network.bridges[*bridge].delay,
        };
        let line = network.port(*place).rate.duration(PREAMBLE + length);
        sum + line + cable.unwrap_or_default() + bridge
    })
}

/// Returns the paths of a link: from the host to the device node, and back. Empty without a
/// network.
pub fn routes<'a>(wiring: &Wiring<'a>, transport: &TransportConfig) -> [Vec<Egress<'a>>; 2] {
    let Some(([host, device], priority)) = transport.stations() else {
        return [Vec::new(), Vec::new()];
    };
    let route = |from, to| route(wiring, from, to, priority);
    [route(host, device), route(device, host)]
}

/// Returns the name of a place.
pub fn name(place: CableEnd) -> String {
    match place {
        CableEnd::Station(station, _) => format!("station {station}"),
        CableEnd::Bridge(bridge, port) => format!("bridge {bridge} port {port}"),
    }
}

/// Returns the name of a place and of the other end of its cable.
pub fn way(network: &NetworkConfig, place: CableEnd) -> String {
    let mut wires = (0..2 * network.cables.len()).filter_map(|number| wire(network, number));
    wires.find(|(from, _)| *from == place).map_or_else(|| name(place), between)
}

/// Returns the names of a place and of the other end of its cable.
pub fn between((from, to): (CableEnd, CableEnd)) -> String {
    format!("{} to {}", name(from), name(to))
}

/// Returns sender and receiver of a wire; `None` if there is no such wire. Wire 2n leads from the
/// first end of cable n to the second, wire 2n + 1 back.
pub fn wire(network: &NetworkConfig, wire: usize) -> Option<(CableEnd, CableEnd)> {
    let cable = network.cables.get(wire / 2)?;
    Some(if wire.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) })
}

/// Returns all wires by number, with their names and rates.
pub fn wires(network: &NetworkConfig) -> Vec<(String, Rate)> {
    (0..2 * network.cables.len())
        .filter_map(|number| wire(network, number))
        .map(|(from, to)| (between((from, to)), network.port(from).rate))
        .collect()
}
