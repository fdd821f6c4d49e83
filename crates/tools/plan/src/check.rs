//! Finds gates through which a frame can never pass, before the simulation runs.

use super::network::Layout;
use crate::simulate::places;
use keys::{KeyError, Mistakes};
use sim::Config;
use sim::ethernet::frame::{FCS, HEADER, MTU, PREAMBLE, TAG};
use sim::network::{CableEnd, StreamConfig};
use sim::transport::TransportConfig;
use wire::Duration;

struct Flow {
    from: usize,
    to: usize,
    priority: u8,
    /// Length of the longest frame in bytes: header to FCS, without tag.
    length: usize,
    description: String,
}

/// Checks that every gate on the way of a flow opens for long enough.
pub fn gates(config: &Config, layout: &Layout) -> Result<(), KeyError> {
    let wiring = config.network.wiring();
    let mut mistakes = Mistakes::default();
    for flow in flows(config, layout) {
        let stream = wiring.stream_of(flow.from, flow.to, flow.priority);
        let tag = config.network.stations[flow.from].tagging.map_or(0, |_| TAG)
            + stream.map_or(0, StreamConfig::tag_length);
        for egress in places::all_routes(&wiring, flow.from, flow.to, flow.priority) {
            let Some(gates) = egress.gates else { continue };
            let frame: Duration = egress.rate.duration(PREAMBLE + flow.length + tag);
            if gates.longest_wait(egress.queue, frame).is_none() {
                let (origin, at) = match egress.place {
                    CableEnd::Station(at) => (&layout.places[at], at),
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

fn flows(config: &Config, layout: &Layout) -> Vec<Flow> {
    let mut all = Vec::new();
    let mut tunnel = |from: usize, to: usize, priority, payload| {
        let name = |at: usize| &layout.names[at];
        let description = format!("the tunnel from '{}' to '{}'", name(from), name(to));
        all.push(Flow { from, to, priority, length: HEADER + payload + FCS, description });
    };
    for (_, link) in places::links(config) {
        let Some(([host, device], priority)) = link.transport.stations() else { continue };
        let payload = match link.transport {
            TransportConfig::Raw(raw) => wire::raw::HEADER + raw.settings.segment,
            _ => MTU,
        };
        tunnel(host, device, priority, payload);
        tunnel(device, host, priority, payload);
    }
    for (from, station) in config.network.stations.iter().enumerate() {
        for traffic in &station.traffic {
            let description = format!("background traffic from '{}'", layout.names[from]);
            let (to, priority, length) = (traffic.to, traffic.priority, traffic.length);
            all.push(Flow { from, to, priority, length, description });
        }
    }
    all
}
