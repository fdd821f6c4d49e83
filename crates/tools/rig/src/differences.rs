//! The parts of a plan that only the simulator runs, and plans that cannot run live.

use node::faults::{Fault, FaultKind};
use plan::Planned;
use sim::drive::Timing;
use sim::ethernet::bridge::Mode;
use sim::ethernet::port;
use sim::network::CableEnd;
use sim::transport::{RawConfig, TransportConfig};
use sim::workload::Workload;
use sim::world::HostConfig;
use stats::random::Probability;
use std::collections::BTreeSet;
use switch::raw::Settings;
use wire::Duration;

/// Propagation delays from this on are listed; shorter ones are below what a live run shows.
const LONG: Duration = Duration::from_us(1);

/// Returns why a plan cannot run live; `None` if it can.
pub fn refusal(plan: &Planned) -> Option<String> {
    let config = &plan.config;
    if config.hosts.is_empty() {
        return Some("it has no host: a live run needs a host with a drive".into());
    }
    for (name, host) in plan.hosts.iter().zip(&config.hosts) {
        if matches!(host.workload, Workload::Replay(_)) {
            return Some(format!("host {name} replays a recording, which only the simulator does"));
        }
    }
    if !config.disturbances.is_empty() || !config.kills.is_empty() {
        let keys = "stalls, connection_resets, drive_resets or kills";
        return Some(format!("it has {keys}, which only the simulator has"));
    }
    if !config.moves.is_empty() {
        return Some("it moves drives between hosts, which only the simulator does".into());
    }
    if !config.shared.is_empty() {
        return Some("it has a drive with several hosts, which only the simulator has".into());
    }
    if plan.tunnel_links().any(|link| link.link.second.is_some()) {
        return Some("it has tunnels with two paths, which only the simulator makes".into());
    }
    for link in plan.tunnel_links() {
        let Some(above) = link.link.above else { continue };
        let known = plan.live_faults(link.number - link.at + above);
        let lost = |fault: &Fault| {
            matches!(fault.kind, FaultKind::LinkDown | FaultKind::Stop) && !known.contains(fault)
        };
        if plan.live_faults(link.number).iter().any(lost) {
            return Some(format!(
                "the link of drive {} is lost behind its switch node, which a live host does not see",
                link.name
            ));
        }
    }
    let mut listening = BTreeSet::new();
    for link in plan.tunnel_links() {
        let TransportConfig::Raw(raw) = link.link.transport else { continue };
        if !listening.insert(raw.stations[1]) {
            let name = &plan.stations[raw.stations[1]];
            return Some(format!(
                "node {name} has several links: over raw Ethernet, a live node accepts one"
            ));
        }
    }
    None
}

/// Returns the parts of a plan that only the simulator runs, one line each.
pub fn differences(plan: &Planned) -> Vec<String> {
    let mut all = Vec::new();
    drives(plan, &mut all);
    cables(plan, &mut all);
    ports(plan, &mut all);
    let network = &plan.config.network;
    let traffic = network.stations.iter().any(|station| !station.traffic.is_empty());
    let tags = network.stations.iter().any(|station| station.tagging.is_some());
    let raw = has_raw_settings(&plan.config.hosts);
    let lists = [
        (raw, "frame_extra, tlp_extra, ack_time and ack_frames of raw Ethernet"),
        (traffic, "streams of [traffic]"),
        (!network.bulk.is_empty(), "flows of [flows]"),
        (!network.streams.is_empty(), "[streams]: redundancy and policing"),
        (network.time.is_some(), "[clocks]: clocks and 802.1AS"),
        (tags, "802.1Q tags; a priority sets only SO_PRIORITY"),
    ];
    all.extend(lists.iter().filter(|(has, _)| *has).map(|(_, text)| (*text).to_owned()));
    for (number, bridge) in network.bridges.iter().enumerate() {
        if bridge.mode == Mode::CutThrough || bridge.jitter > Duration::ZERO {
            all.push(format!("bridge {}: cut-through and jitter", plan.bridges[number]));
        }
    }
    all
}

/// Returns whether tunnels over raw Ethernet have settings that live nodes lack.
fn has_raw_settings(hosts: &[HostConfig]) -> bool {
    let standard = Settings::new(0);
    hosts.iter().flat_map(HostConfig::links).any(|link| {
        let TransportConfig::Raw(RawConfig { settings: own, .. }) = link.transport else {
            return false;
        };
        let acks = (own.ack_delay, own.ack_after) != (standard.ack_delay, standard.ack_after);
        acks || link.switch.encapsulation.frame > 0
    })
}

fn drives(plan: &Planned, all: &mut Vec<String>) {
    let null = Timing::preset("null");
    if plan.config.drives().any(|drive| Some(drive.timing) != null) {
        all.push("times of firmware and media; a live drive takes the time of its medium".into());
    }
}

fn cables(plan: &Planned, all: &mut Vec<String>) {
    let network = &plan.config.network;
    let wiring = network.wiring();
    for (number, cable) in network.cables.iter().enumerate() {
        let has = |test: fn(&sim::ethernet::cable::Faults) -> bool| cable.faults.iter().any(test);
        let parts = [
            (!wiring.spanning()[number], "the whole cable, which is not in the tree of cables"),
            (has(|faults| faults.loss != Probability::NEVER), "loss"),
            (has(|faults| faults.corruption != Probability::NEVER), "corruption"),
            (has(|faults| faults.delay != Probability::NEVER), "delay"),
            (has(|faults| faults.reordering != Probability::NEVER), "reordering"),
            (has(|faults| faults.duplication != Probability::NEVER), "duplication"),
            (cable.propagation >= LONG, "propagation"),
            (!cable.rate_steps.is_empty(), "rate_steps"),
        ];
        let parts: Vec<_> = parts.iter().filter(|(has, _)| *has).map(|(_, text)| *text).collect();
        if !parts.is_empty() {
            all.push(format!("cable {}: {}", plan.cable_name(number), parts.join(", ")));
        }
    }
}

fn ports(plan: &Planned, all: &mut Vec<String>) {
    let network = &plan.config.network;
    let stations = (0..network.stations.len()).map(CableEnd::station);
    let bridges = network.bridges.iter().enumerate().flat_map(|(number, bridge)| {
        (0..bridge.ports.len()).map(move |port| CableEnd::Bridge(number, port))
    });
    for end in stations.chain(bridges) {
        let port: &port::Config = network.port(end);
        let strict = port::Config::new(port.rate);
        let parts = [
            (port.gates.is_some(), "gates"),
            (format!("{:?}", port.classes) != format!("{:?}", strict.classes), "shapers"),
            (port.preemption.is_some(), "preemption"),
            (port.merge > 0, "merging of frames"),
        ];
        let parts: Vec<_> = parts.iter().filter(|(has, _)| *has).map(|(_, text)| *text).collect();
        if !parts.is_empty() {
            all.push(format!("port {}: {}", plan.port_name(end), parts.join(", ")));
        }
    }
}
