//! Finds gates and ports through which a frame can never pass, before the simulation runs.

use super::network::Layout;
use crate::simulate::places::{self, Egress};
use keys::{KeyError, Mistakes};
use sim::Config;
use sim::ethernet::Tag;
use sim::ethernet::frame::{FCS, HEADER, MTU, PREAMBLE, TAG};
use sim::ethernet::traffic::StreamId;
use sim::network::{CableEnd, StreamConfig, Wiring};
use sim::transport::TransportConfig;
use wire::Duration;

struct Flow<'a> {
    /// The ports of all its paths.
    way: Vec<Egress<'a>>,
    tag: Option<Tag>,
    /// Length of the longest frame in bytes: header to FCS, with tags.
    length: usize,
    description: String,
}

/// Checks that every gate on the way of a flow opens for long enough, and that every port of a
/// bridge is a member of its VLAN.
pub fn ways(config: &Config, layout: &Layout) -> Result<(), KeyError> {
    let wiring = config.network.wiring();
    let mut mistakes = Mistakes::default();
    for flow in flows(config, &wiring, layout) {
        if flow.way.is_empty() {
            let message = format!("the network has no path for {}", flow.description);
            mistakes.note(layout.places[0].fail(message));
        }
        for egress in &flow.way {
            if let Some((port, vlan)) = no_member(&wiring, egress, flow.tag) {
                let message = format!(
                    "{} is no member of VLAN {vlan}, which frames of {} have there",
                    places::way(&config.network, port),
                    flow.description
                );
                let CableEnd::Bridge(at, port) = port else { continue };
                let origin = &layout.port_places[at][port];
                mistakes.note(origin.fail(layout.words(&message)));
            }
            let Some(gates) = egress.gates else { continue };
            let frame: Duration = egress.rate.duration(PREAMBLE + flow.length);
            if gates.longest_wait(egress.queue, frame).is_none() {
                let (origin, at) = match egress.place {
                    CableEnd::Station(at, _) => (&layout.places[at], at),
                    CableEnd::Bridge(at, port) => {
                        (&layout.port_places[at][port], config.network.stations.len() + at)
                    }
                };
                let place = &layout.names[at];
                let message = format!(
                    "the schedule at '{place}' never opens the gate of priority {} for {frame}, \
                     which a frame of {} takes there",
                    egress.queue, flow.description
                );
                mistakes.note(origin.fail(message));
            }
        }
    }
    mistakes.or(())
}

/// Returns the port of a bridge, at either end of this cable, that is not a member of the VLAN of
/// the frames.
fn no_member(
    wiring: &Wiring<'_>,
    egress: &Egress<'_>,
    tag: Option<Tag>,
) -> Option<(CableEnd, u16)> {
    let ends = [egress.place, wiring.across(egress.place)?.1];
    let refuses = |end: CableEnd| {
        let (CableEnd::Bridge(..), port) = (end, wiring.network.port(end)) else { return None };
        let vlan = port.vlan_of(tag);
        (!port.is_member(vlan)).then_some((end, vlan))
    };
    ends.into_iter().find_map(refuses)
}

fn flows<'a>(config: &Config, wiring: &Wiring<'a>, layout: &Layout) -> Vec<Flow<'a>> {
    let mut all = Vec::new();
    let network = &config.network;
    let tagged = |from: usize, destination, to, tag: Option<Tag>| {
        let stream = wiring.stream_of(from, destination, to, tag);
        tag.map_or(0, |_| TAG) + stream.map_or(0, StreamConfig::tag_length)
    };
    let mut tunnel = |kind: &str, from: usize, to: usize, priority, payload| {
        let name = |at: usize| &layout.names[at];
        let description = format!("the {kind} from '{}' to '{}'", name(from), name(to));
        let tag = network.tag(from, priority);
        let length = HEADER + payload + FCS + tagged(from, network.mac(to), to, tag);
        let way = places::all_routes(wiring, from, to, priority);
        all.push(Flow { way, tag, length, description });
    };
    for (_, link) in places::links(config) {
        for transport in link.transports() {
            let Some(([host, device], priority)) = transport.stations() else { continue };
            let payload = match transport {
                TransportConfig::Raw(raw) => wire::raw::HEADER + raw.settings.segment,
                _ => MTU,
            };
            tunnel("tunnel", host, device, priority, payload);
            tunnel("tunnel", device, host, priority, payload);
        }
    }
    for flow in &config.network.bulk {
        let [from, to] = flow.stations;
        tunnel("flow", from, to, flow.priority, MTU);
        tunnel("flow", to, from, flow.priority, MTU);
    }
    for (from, station) in config.network.stations.iter().enumerate() {
        for (number, traffic) in station.traffic.iter().enumerate() {
            let description = format!("background traffic from '{}'", layout.names[from]);
            let id = StreamId::new(from, number);
            let (to, tag) = (traffic.listeners[0].station, network.stream_tag(id));
            let length = traffic.length + tagged(from, network.destination(id), to, tag);
            all.push(Flow { way: places::stream_routes(wiring, id), tag, length, description });
        }
    }
    all
}
