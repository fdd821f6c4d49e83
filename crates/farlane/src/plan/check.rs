//! Gates that would never let a frame pass: found before anything runs.

use super::PlanError;
use super::network::Layout;
use super::value::Origin;
use sim::Config;
use sim::ethernet::frame::{FCS, HEADER, MTU, PREAMBLE, TAG};
use sim::network::Place;
use sim::transport::TransportConfig;
use sim::world::Attached;
use tsn::Gates;
use wire::Duration;

/// A stream of frames between two stations.
struct Flow {
    from: usize,
    to: usize,
    priority: u8,
    /// The longest frame: header to FCS, without tag.
    length: usize,
    what: String,
}

/// Every gate that a flow passes opens for long enough.
pub fn gates(config: &Config, layout: &Layout) -> Result<(), PlanError> {
    for flow in flows(config, layout) {
        let tag = if layout.tagged[flow.from] { TAG } else { 0 };
        for (gates, rate, origin, place) in path(config, layout, &flow) {
            // Frames without a tag have priority 0.
            let queue = if tag > 0 { flow.priority } else { 0 };
            let frame: Duration = rate.duration(PREAMBLE + flow.length + tag);
            if gates.list().longest_wait(usize::from(queue), frame).is_none() {
                let what = format!(
                    "the schedule at '{place}' never opens the gate of priority {queue} for \
                     {frame}, which a frame of {} takes there",
                    flow.what
                );
                return Err(origin.fail(what));
            }
        }
    }
    Ok(())
}

fn flows(config: &Config, layout: &Layout) -> Vec<Flow> {
    let mut all = Vec::new();
    let mut tunnel = |from: usize, to: usize, priority, payload| {
        let name = |at: usize| &layout.stations[at];
        let what = format!("the tunnel from '{}' to '{}'", name(from), name(to));
        all.push(Flow { from, to, priority, length: HEADER + payload + FCS, what });
    };
    for host in &config.hosts {
        let Attached::Switch(switch) = &host.attached else { continue };
        for port in &switch.ports {
            let Some(([host, device], priority)) = port.transport.stations() else { continue };
            let payload = match &port.transport {
                TransportConfig::Raw(raw) => wire::raw::HEADER + raw.settings.chunk,
                _ => MTU,
            };
            tunnel(host, device, priority, payload);
            tunnel(device, host, priority, payload);
        }
    }
    for (from, station) in config.network.stations.iter().enumerate() {
        for traffic in &station.traffic {
            let what = format!("background traffic from '{}'", layout.stations[from]);
            let (to, priority, length) = (traffic.to, traffic.priority, traffic.length);
            all.push(Flow { from, to, priority, length, what });
        }
    }
    all
}

type Stop<'a> = (&'a Gates, sim::ethernet::Rate, &'a Origin, &'a str);

/// The ports with gates that a flow is sent from.
fn path<'a>(config: &'a Config, layout: &'a Layout, flow: &Flow) -> Vec<Stop<'a>> {
    fn walk(config: &Config, at: Place, before: Option<usize>, to: usize) -> Option<Vec<Place>> {
        if at == Place::Station(to) {
            return Some(Vec::new());
        }
        let same = |place: Place| match (place, at) {
            (Place::Bridge(a, _), Place::Bridge(b, _)) => a == b,
            _ => place == at,
        };
        for (number, cable) in config.network.cables.iter().enumerate() {
            if before == Some(number) {
                continue;
            }
            for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if same(near)
                    && let Some(mut rest) = walk(config, far, Some(number), to)
                {
                    rest.insert(0, near);
                    return Some(rest);
                }
            }
        }
        None
    }
    let places = walk(config, Place::Station(flow.from), None, flow.to).unwrap_or_default();
    let stop = |place| match place {
        Place::Station(at) => {
            let station = &config.network.stations[at];
            let gates = station.gates.as_ref()?;
            let origin = &layout.station_places[at];
            Some((gates, station.rate, origin, layout.stations[at].as_str()))
        }
        Place::Bridge(at, port) => {
            let port = &config.network.bridges[at].ports[port];
            let origin = &layout.bridge_places[at];
            Some((port.gates.as_ref()?, port.rate, origin, layout.bridges[at].as_str()))
        }
    };
    places.into_iter().filter_map(stop).collect()
}
