//! Remarks on identified streams: histories that are too short for the paths, meters slower than
//! the stream, and cables that no path uses.

use super::super::Planned;
use super::{Remark, history};
use crate::overload::megabits;
use sim::ethernet::frame::{FCS, GAP, HEADER, MINIMUM, MTU, PREAMBLE, TAG};
use sim::ethernet::streams::Header;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Mac, Tag};
use sim::network::{NetworkConfig, Place, StreamConfig, TrafficConfig, Wiring};
use std::collections::BTreeSet;
use wire::Duration;

/// Returns remarks on the streams of a plan.
pub(super) fn find(planned: &Planned) -> Vec<Remark> {
    let network = &planned.config.network;
    let wiring = network.wiring();
    let mut found = Vec::new();
    for (name, stream) in planned.identified.iter().zip(&network.streams) {
        for (place, recover) in &stream.eliminate {
            let node = planned.link_name(&place.to_string());
            let remarks = history::find(&wiring, stream, *place, recover.recovery);
            found.extend(
                remarks.into_iter().map(|remark| format!("stream {name} at {node}: {remark}")),
            );
        }
        for (bridge, filter) in &stream.filters {
            let node = planned.link_name(&Place::Bridge(*bridge).to_string());
            let remark = filter.meter.and_then(|meter| slow(network, stream, &meter));
            found.extend(remark.map(|remark| format!("stream {name} at {node}: {remark}")));
        }
    }
    found.extend(unused(planned, &wiring));
    found.into_iter().map(Remark::Part).collect()
}

/// Returns whether a meter passes less than the stream offers.
fn slow(
    network: &NetworkConfig,
    stream: &StreamConfig,
    meter: &tsn::psfp::MeterConfig,
) -> Option<String> {
    let offered = Offered::new(network, stream);
    let excess = if meter.drop_on_yellow { (0, 0) } else { (meter.eir, meter.ebs) };
    let burst = meter.cbs.max(excess.1);
    if offered.longest as u64 > burst {
        return Some(format!(
            "its frames have up to {} bytes, more than the burst of {burst} bytes of the meter: \
             those are always red (802.1Q-2022, 8.6.5.5)",
            offered.longest
        ));
    }
    let rate = meter.cir + excess.0;
    (offered.bits_per_second > u128::from(rate)).then(|| {
        format!(
            "its frames need {}, the meter lets {} through (802.1Q-2022, 8.6.5.5)",
            megabits(offered.bits_per_second as u64),
            megabits(rate)
        )
    })
}

/// The load that a stream offers.
pub(super) struct Offered<'a> {
    /// The stream's `[traffic]` tables.
    traffic: Vec<&'a TrafficConfig>,
    /// Time of the stream's shortest frame on the line of its sender.
    line: Duration,
    /// Length of the longest frame in bytes, header to FCS with its tags.
    pub longest: usize,
    /// Load of `traffic` in bits per second, header to FCS.
    bits_per_second: u128,
}

impl<'a> Offered<'a> {
    pub fn new(network: &'a NetworkConfig, stream: &StreamConfig) -> Self {
        let station = &network.stations[stream.from];
        let tags = if station.tagging.is_some() { TAG } else { 0 } + stream.tag_length();
        let header = |destination: Mac, tag: Option<Tag>| Header {
            destination,
            source: network.mac(stream.from),
            tag,
            ip: None,
        };
        let own = station.traffic.iter().enumerate();
        let traffic: Vec<&TrafficConfig> = own
            .filter(|(number, _)| {
                let id = StreamId::new(stream.from, *number);
                let header = header(network.destination(id), network.stream_tag(id));
                stream.identification.matches(&header)
            })
            .map(|(_, traffic)| traffic)
            .collect();
        // Without traffic the stream is a tunnel, which the addresses of its ends identify.
        let tunnel = traffic.is_empty();
        let shortest = traffic.iter().map(|one| one.length + tags).min().unwrap_or(MINIMUM);
        let line = station.ports[0].rate.duration(PREAMBLE + shortest + GAP);
        let longest = match tunnel {
            true => HEADER + MTU + FCS,
            false => traffic.iter().map(|one| one.length).max().unwrap_or_default(),
        };
        let bits = |one: &&TrafficConfig| {
            let bits = (one.mean_length() + tags) as u128 * 8 * u128::from(one.burst);
            bits * 1_000_000_000_000 / u128::from(one.pattern.interval().as_ps().max(1))
        };
        Self {
            bits_per_second: traffic.iter().map(bits).sum(),
            line,
            longest: longest + tags,
            traffic,
        }
    }

    /// Returns the maximum number of frames that may follow a frame within `span`. Frames of a
    /// burst follow without gaps on the line.
    pub fn within(&self, span: Duration) -> u64 {
        let by_line = span.as_ps() / self.line.as_ps().max(1);
        let frames = |traffic: &&TrafficConfig| {
            let intervals = span.as_ps() / traffic.pattern.interval().as_ps().max(1);
            intervals
                .saturating_mul(traffic.burst.into())
                .saturating_add(u64::from(traffic.largest_burst() - 1))
        };
        let all = self.traffic.iter().map(frames).fold(0, u64::saturating_add);
        if self.traffic.is_empty() { by_line } else { by_line.min(all) }
    }

    /// Returns the maximum number of frames per second.
    pub fn per_second(&self) -> f64 {
        let frames = |traffic: &&TrafficConfig| {
            f64::from(traffic.burst) * 1e12 / traffic.pattern.interval().as_ps().max(1) as f64
        };
        let by_line = 1e12 / self.line.as_ps().max(1) as f64;
        if self.traffic.is_empty() { by_line } else { self.traffic.iter().map(frames).sum() }
    }
}

/// Describes cables that are not in the tree and that no path uses.
fn unused(planned: &Planned, wiring: &Wiring<'_>) -> Option<String> {
    let network = &planned.config.network;
    let mut used: BTreeSet<usize> = BTreeSet::new();
    for stream in &network.streams {
        used.extend(stream.paths.iter().flatten());
    }
    let traffic = network.stations.iter().flat_map(|station| &station.traffic);
    let listeners = traffic.flat_map(|traffic| &traffic.listeners);
    used.extend(listeners.filter_map(|listener| listener.path.as_ref()).flatten());
    let tree = wiring.spanning();
    let mut idle = (0..tree.len()).filter(|cable| !tree[*cable] && !used.contains(cable));
    let cable = &network.cables[idle.next()?];
    let [a, b] = [cable.a, cable.b].map(|end| planned.link_name(&end.node().to_string()));
    let others = match idle.count() {
        0 => String::new(),
        more => format!(", as are {more} others"),
    };
    Some(format!(
        "the cable between {a} and {b} is not in the tree of cables and no stream has a path over \
         it: it carries nothing{others}"
    ))
}
