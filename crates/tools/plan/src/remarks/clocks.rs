//! Remarks on clocks: settings that standards permit but that make clocks inaccurate.

use super::super::Planned;
use super::Remark;
use sim::ethernet::port::{Algorithm, Config};
use sim::network::{CableEnd, ClockNode, TimeConfig};
use std::collections::BTreeSet;
use tsn::Clock;
use tsn::gptp::Stamping;
use wire::Duration;

/// Maximum frequency error of an oscillator in parts per 10^12 (IEEE 802.1AS-2020, B.1.1).
const MOST_DRIFT: u64 = 100_000_000;
/// Maximum granularity of time stamps (B.1.2).
const COARSEST: Duration = Duration::from_ns(40);

pub(super) fn find(planned: &Planned) -> Vec<Remark> {
    let Some(time) = &planned.config.network.time else { return unused(planned) };
    let mut found = Vec::new();
    for cable in &planned.config.network.cables {
        for place in [cable.a, cable.b] {
            let clock = clock_at(time, place);
            let remark = port_remark(planned, place, clock);
            found.extend(remark.map(|remark| format!("{}: {remark}", planned.port_name(place))));
        }
    }
    let names = planned.stations.iter().chain(&planned.bridges);
    for (name, clock) in names.zip(time.stations.iter().chain(&time.bridges)) {
        found.extend(
            clock_remarks(clock).into_iter().map(|remark| format!("clock of {name}: {remark}")),
        );
    }
    found.into_iter().map(Remark::Part).collect()
}

/// Finds clock settings without an effect: without `[clocks]` only gates and asynchronous shapers
/// use the clock of a node.
fn unused(planned: &Planned) -> Vec<Remark> {
    let network = &planned.config.network;
    let policed = network.streams.iter().flat_map(|stream| &stream.filters);
    let policed = policed.filter(|(_, filter)| filter.gate.is_some()).map(|(bridge, _)| *bridge);
    let gated: BTreeSet<usize> = policed.collect();
    let stations = network.stations.iter().map(|station| &station.ports[..]);
    let stations = planned.stations.iter().zip(stations).map(|(name, ports)| (name, ports, false));
    let bridges = network.bridges.iter().enumerate();
    let bridges = bridges.map(|(at, bridge)| (&bridge.ports[..], gated.contains(&at)));
    let bridges =
        planned.bridges.iter().zip(bridges).map(|(name, (ports, bridge))| (name, ports, bridge));
    let shapes = |port: &Config| {
        let mut classes = port.classes.iter();
        classes.any(|class| matches!(class.algorithm, Algorithm::Ats(_)))
    };
    let idle = |(name, ports, gated): (&String, &[Config], bool)| {
        let is_set = ports.iter().any(|port| port.clock != Clock::default());
        let used = gated || ports.iter().any(|port| port.gates.is_some() || shapes(port));
        (is_set && !used).then(|| name.clone())
    };
    let names: Vec<String> = stations.chain(bridges).filter_map(idle).collect();
    let sentence = "clock_offset and clock_drift have no effect: no gate and no shaper ats goes by this \
                clock, and without [clocks] no other clock is simulated";
    let remark = || Remark::Part(format!("clock of {}: {sentence}", names.join(", ")));
    (!names.is_empty()).then(remark).into_iter().collect()
}

fn clock_at(time: &TimeConfig, place: CableEnd) -> &ClockNode {
    match place {
        CableEnd::Station(station, _) => &time.stations[station],
        CableEnd::Bridge(bridge, _) => &time.bridges[bridge],
    }
}

/// Finds 802.1AS messages that wait for a gate.
fn port_remark(planned: &Planned, place: CableEnd, clock: &ClockNode) -> Option<String> {
    clock.node.as_ref()?;
    let gates = planned.config.network.port(place).gates.as_ref()?;
    let class = clock.class;
    match gates.longest_closed(usize::from(class)) {
        None => Some(format!(
            "no list opens class {class} for good, which 802.1AS is in: its messages stay here \
             (802.1Q-2022, 8.6.8.4)"
        )),
        Some(Duration::ZERO) => None,
        Some(closed) => {
            let effect = match clock.stamping {
                Stamping::Hardware => "stamps do not see that",
                Stamping::Software => "stamps above the queue count that as the delay of the link",
            };
            Some(format!(
                "the gate of class {class}, which 802.1AS is in, is closed for up to {}: messages \
                 wait (802.1Q-2022, 8.6.8.4), and {effect}",
                closed.exact()
            ))
        }
    }
}

fn clock_remarks(clock: &ClockNode) -> Vec<String> {
    let mut found = Vec::new();
    if clock.clock.drift_ppt.unsigned_abs() > MOST_DRIFT {
        found.push("its drift is above the 100 ppm of 802.1AS-2020, B.1.1".to_owned());
    }
    if clock.clock.grain > COARSEST {
        found.push("its stamps are coarser than the 40 ns of 802.1AS-2020, B.1.2".to_owned());
    }
    let short = |most: Duration| clock.noise > Duration::ZERO && most <= clock.noise;
    if clock.stamping == Stamping::Software
        && clock.node.as_ref().is_some_and(|node| short(node.most_delay))
    {
        found.push(
            "software stamps are late by more than delay_limit: links longer than that take no \
             part (asCapable, 802.1AS-2020, 11.2.2)"
                .to_owned(),
        );
    }
    found
}
