//! Where things are in a configuration: links, ways through the network, names for people.

use sim::Config;
use sim::ethernet::{Rate, port};
use sim::network::{CableEnd, NetworkConfig};
use sim::world::{Attached, PortConfig};
use tsn::Gates;

/// The downstream ports in the order of their links: host, port, its configuration.
pub fn ports(config: &Config) -> impl Iterator<Item = (usize, usize, &PortConfig)> {
    config.hosts.iter().enumerate().flat_map(|(host, of)| {
        let ports = match &of.attached {
            Attached::Direct(_) => &[][..],
            Attached::Switch(switch) => &switch.ports[..],
        };
        ports.iter().enumerate().map(move |(port, config)| (host, port, config))
    })
}

/// A port of the network that a link's frames leave through.
#[derive(Clone, Debug)]
pub struct Egress<'a> {
    /// Whose it is.
    pub place: CableEnd,
    /// Its rate.
    pub rate: Rate,
    /// The queue in which the link's frames wait.
    pub queue: usize,
    /// Its gates, if it has some.
    pub gates: Option<&'a Gates>,
    /// All of it.
    pub port: &'a port::Config,
}

/// What frames of priority `priority` leave through on their way between two
/// stations; empty if there is no way.
pub fn route(network: &NetworkConfig, from: usize, to: usize, priority: u8) -> Vec<Egress<'_>> {
    let tagging = network.stations[from].tagging;
    let pcp = tagging.map_or(0, |tag| tag.pcp_of_priority[usize::from(priority & 7)]);
    let route = walk(network, CableEnd::Station(from), to).unwrap_or_default().into_iter().rev();
    let egress = |place| {
        let port = network.port(place);
        let queue = port.queue_of_priority[usize::from(pcp & 7)].into();
        Egress { place, rate: port.rate, queue, gates: port.gates.as_ref(), port }
    };
    route.map(egress).collect()
}

/// The link's ways: from the host to the device node, and back. Empty without a network.
pub fn routes<'a>(config: &'a Config, port: &PortConfig) -> [Vec<Egress<'a>>; 2] {
    let Some(([host, device], priority)) = port.transport.stations() else {
        return [Vec::new(), Vec::new()];
    };
    let route = |from, to| route(&config.network, from, to, priority);
    [route(host, device), route(device, host)]
}

/// What frames leave through from `at` on, the last one first. The network has
/// no loops.
fn walk(network: &NetworkConfig, at: CableEnd, to: usize) -> Option<Vec<CableEnd>> {
    let mut route = match across(network, at)?.1 {
        CableEnd::Station(station) => (station == to).then(Vec::new)?,
        CableEnd::Bridge(bridge, entered) => (0..network.bridges[bridge].ports.len())
            .filter(|port| *port != entered)
            .find_map(|port| walk(network, CableEnd::Bridge(bridge, port), to))?,
    };
    route.push(at);
    Some(route)
}

/// The cable at a place, and its other end.
pub fn across(network: &NetworkConfig, place: CableEnd) -> Option<(usize, CableEnd)> {
    network.cables.iter().enumerate().find_map(|(number, cable)| {
        let other = if cable.a == place {
            cable.b
        } else if cable.b == place {
            cable.a
        } else {
            return None;
        };
        Some((number, other))
    })
}

/// A place in words.
pub fn name(place: CableEnd) -> String {
    match place {
        CableEnd::Station(station) => format!("station {station}"),
        CableEnd::Bridge(bridge, port) => format!("bridge {bridge} port {port}"),
    }
}

/// A place in words, with what its cable leads to.
pub fn way(network: &NetworkConfig, place: CableEnd) -> String {
    let to = across(network, place).map_or_else(String::new, |(_, to)| format!(" to {}", name(to)));
    name(place) + &to
}

/// Where the frames of a wire come from and go to: wire 2n is cable n from its
/// first end to its second.
pub fn wire(network: &NetworkConfig, wire: usize) -> Option<(CableEnd, CableEnd)> {
    let cable = network.cables.get(wire / 2)?;
    Some(if wire.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) })
}

/// All wires by number, with their names and rates.
pub fn wires(network: &NetworkConfig) -> Vec<(String, Rate)> {
    (0..2 * network.cables.len())
        .filter_map(|number| wire(network, number))
        .map(|(from, to)| (format!("{} to {}", name(from), name(to)), network.port(from).rate))
        .collect()
}
