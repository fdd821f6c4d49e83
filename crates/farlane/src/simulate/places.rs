//! Where things are in a configuration: links, ways through the network,
//! names for people.

use sim::Config;
use sim::ethernet::port::Guard;
use sim::ethernet::{Rate, port};
use sim::network::{NetworkConfig, Place};
use sim::world::{Attached, PortConfig};
use tsn::Gates;

/// Host and downstream port of each tunnel link.
pub type Links = Vec<(usize, usize)>;

/// The tunnel links in the order of their numbers.
pub fn place_of_link(config: &Config) -> Links {
    ports(config).map(|(host, port, _)| (host, port)).collect()
}

/// The downstream ports in the order of their links: host, port, its
/// configuration.
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
    pub place: Place,
    /// Its rate.
    pub rate: Rate,
    /// The queue in which the link's frames wait.
    pub queue: usize,
    /// Its gates, if it has some.
    pub gates: Option<&'a Gates>,
    /// How it decides whether a frame still fits.
    pub guard: Guard,
}

/// What frames of priority `priority` leave through on their way between two
/// stations; empty if there is no way.
pub fn way(network: &NetworkConfig, from: usize, to: usize, priority: u8) -> Vec<Egress<'_>> {
    let mut way = Vec::new();
    let tagging = network.stations[from].tagging;
    let pcp = tagging.map_or(0, |tag| tag.pcp_of_priority[usize::from(priority & 7)]);
    if !walk(network, Place::Station(from), None, to, &mut way) {
        return Vec::new();
    }
    way.into_iter().map(|place| egress(network, place, pcp)).collect()
}

/// The link's ways: from the host to the device node, and back. Empty without
/// a network.
pub fn ways<'a>(config: &'a Config, port: &PortConfig) -> [Vec<Egress<'a>>; 2] {
    let Some(([host, device], priority)) = port.transport.stations() else {
        return [Vec::new(), Vec::new()];
    };
    let way = |from, to| way(&config.network, from, to, priority);
    [way(host, device), way(device, host)]
}

fn egress(network: &NetworkConfig, place: Place, pcp: u8) -> Egress<'_> {
    let queue_of = |queues: &[u8; tsn::QUEUES]| usize::from(queues[usize::from(pcp & 7)]);
    match place {
        Place::Station(number) => {
            let station = &network.stations[number];
            let plain = port::Config::new(station.rate);
            let queue = queue_of(&plain.queue_of_priority);
            let gates = station.gates.as_ref();
            Egress { place, rate: station.rate, queue, gates, guard: plain.guard }
        }
        Place::Bridge(bridge, port) => {
            let port = &network.bridges[bridge].ports[port];
            let queue = queue_of(&port.queue_of_priority);
            let gates = port.gates.as_ref();
            Egress { place, rate: port.rate, queue, gates, guard: port.guard }
        }
    }
}

/// Depth first; the network has no loops.
fn walk(
    network: &NetworkConfig,
    at: Place,
    came: Option<usize>,
    to: usize,
    way: &mut Vec<Place>,
) -> bool {
    let Some((cable, other)) = across(network, at) else { return false };
    way.push(at);
    match other {
        Place::Station(station) if station == to => return true,
        Place::Bridge(bridge, entered) if came != Some(cable) => {
            for port in (0..network.bridges[bridge].ports.len()).filter(|port| *port != entered) {
                if walk(network, Place::Bridge(bridge, port), Some(cable), to, way) {
                    return true;
                }
            }
        }
        _ => {}
    }
    way.pop();
    false
}

/// The cable at a place, and its other end.
pub fn across(network: &NetworkConfig, place: Place) -> Option<(usize, Place)> {
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
pub fn name(place: Place) -> String {
    match place {
        Place::Station(station) => format!("station {station}"),
        Place::Bridge(bridge, port) => format!("bridge {bridge} port {port}"),
    }
}

/// Where the frames of a wire come from and go to: wire 2n is cable n from its
/// first end to its second.
pub fn wire(network: &NetworkConfig, wire: usize) -> Option<(Place, Place)> {
    let cable = network.cables.get(wire / 2)?;
    Some(if wire.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) })
}

/// All wires by number, with their names and rates.
pub fn wires(network: &NetworkConfig) -> Vec<(String, Rate)> {
    (0..2 * network.cables.len())
        .filter_map(|number| wire(network, number))
        .map(|(from, to)| {
            let rate = egress(network, from, 0).rate;
            (format!("{} to {}", name(from), name(to)), rate)
        })
        .collect()
}
