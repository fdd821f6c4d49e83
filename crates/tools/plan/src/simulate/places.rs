//! Places in a configuration: links, paths through the network, and their names.

use sim::Config;
use sim::ethernet::frame::{MINIMUM, PREAMBLE};
use sim::ethernet::{Rate, port};
use sim::network::{CableEnd, NetworkConfig, Wiring};
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
    let ways = ways(wiring, from, to, priority);
    let fastest = ways.into_iter().min_by_key(|way| travel(wiring, way, MINIMUM));
    egresses(wiring.network, from, priority, fastest.unwrap_or_default())
}

/// Returns the ports of all paths between two stations, each port once.
pub fn all_routes<'a>(
    wiring: &Wiring<'a>,
    from: usize,
    to: usize,
    priority: u8,
) -> Vec<Egress<'a>> {
    let mut all: Vec<CableEnd> = ways(wiring, from, to, priority).into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    all.retain(|place| seen.insert(*place));
    egresses(wiring.network, from, priority, all)
}

fn egresses(
    network: &NetworkConfig,
    from: usize,
    priority: u8,
    places: Vec<CableEnd>,
) -> Vec<Egress<'_>> {
    let tagging = network.stations[from].tagging;
    let pcp = tagging.map_or(0, |tag| tag.pcp_of_priority[usize::from(priority & 7)]);
    let egress = |place| {
        let port = network.port(place);
        let queue = port.queue_of_priority[usize::from(pcp & 7)].into();
        Egress { place, rate: port.rate, queue, gates: port.gates.as_ref(), port }
    };
    places.into_iter().map(egress).collect()
}

/// Returns the ports of each path: one path for each path of the stream, or the path of the tree.
fn ways(wiring: &Wiring<'_>, from: usize, to: usize, priority: u8) -> Vec<Vec<CableEnd>> {
    if let Some(stream) = wiring.stream_of(from, to, priority) {
        let hops = |path: &Vec<usize>| stream.hops(wiring, path).ok();
        let sent = |hops: Vec<[CableEnd; 2]>| hops.into_iter().map(|[sent, _]| sent).collect();
        return stream.paths.iter().filter_map(hops).map(sent).collect();
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
            CableEnd::Station(_) => Duration::ZERO,
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
        CableEnd::Station(station) => format!("station {station}"),
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
