//! What bounds presume.

use super::arrivals::Steps;
use super::ports::Classes;
use super::service::{Constraint, Entering, Group};
use plan::Planned;
use sim::ethernet::cable::Faults;
use sim::ethernet::port::Algorithm;
use sim::network::{CableEnd, NetworkConfig, Place};
use stats::random::Probability;
use tsn::Clock;
use wire::Duration;

/// The largest difference of rates with simulated clocks, in parts per million, ten times what IEEE
/// 802.1AS-2020, B.1.1, allows an oscillator: servos correct offsets by rates.
const STEERED: u64 = 1_000;

/// The longest message of 802.1AS in bytes on the line, without gap.
const MESSAGE: usize = 128;

/// By how much clocks run fast or slow, in parts per million, rounded up.
pub fn drift(network: &NetworkConfig) -> u64 {
    if network.time.is_some() {
        return STEERED;
    }
    let stations = network.stations.iter().flat_map(|station| &station.ports);
    let ports = stations.chain(network.bridges.iter().flat_map(|bridge| &bridge.ports));
    let of = |clock: Clock| clock.drift_ppt().unsigned_abs().div_ceil(1_000_000);
    let clocks = ports.flat_map(|port| {
        [Some(port.clock), port.gates.as_ref().map(|gates| gates.clock())].into_iter().flatten()
    });
    clocks.map(of).max().unwrap_or(0)
}

/// Adds the messages of 802.1AS that the node of a port itself sends.
pub fn own_messages(network: &NetworkConfig, port: CableEnd, classes: &mut Classes<'_>) {
    let Some(time) = &network.time else { return };
    let node = match port.node() {
        Place::Station(station) => &time.stations[station],
        Place::Bridge(bridge) => &time.bridges[bridge],
    };
    let Some(protocol) = &node.node else { return };
    // At most eight messages within an eighth of the shortest usual interval.
    let interval = Duration::from_ms(1_000).as_ps() >> -i64::from(protocol.log_delay.min(-5));
    let steps = Steps { first: 8, each: 8, interval, late: 0 };
    let class = usize::from(node.class);
    let line = classes.config.rate.duration(MESSAGE).as_ps();
    let counted = classes.counted(class, MESSAGE);
    let constraints = vec![Constraint { steps, jitter: 0 }];
    let flows =
        vec![Entering { constraints, copies: 1, line, counted, in_flight: None, pieces: 1 }];
    classes.loads[class].groups.push(Group { flows, caps: Vec::new() });
    classes.longest[class] = classes.longest[class].max(MESSAGE);
}

/// The premises of the bounds of a plan, one sentence each.
pub fn of(planned: &Planned) -> Vec<String> {
    let network = &planned.config.network;
    let mut all = vec![
        "No frame is lost: queues have room for the backlogs listed here.".to_owned(),
        "Hosts, streams and the clocks of gates may start at any time.".to_owned(),
    ];
    let mut add = |applies: bool, premise: &str| {
        if applies {
            all.push(premise.to_owned());
        }
    };
    let bridges = || network.bridges.iter();
    add(
        bridges().any(|bridge| bridge.jitter > Duration::ZERO),
        "The delay of a bridge is within six standard deviations of its mean, as simulated.",
    );
    let faulty = |faults: &Faults| {
        let random = [faults.loss, faults.corruption] != [Probability::NEVER; 2];
        random || !faults.cuts.is_empty()
    };
    let cables = || network.cables.iter();
    add(
        cables().any(|cable| cable.faults.iter().any(faulty)) || !network.bridge_outages.is_empty(),
        "No cable and no bridge fails, although the plan says when they do.",
    );
    add(
        network.time.is_some(),
        "Clocks make no steps, and their rates differ by at most 1000 ppm.",
    );
    let ports = network.stations.iter().flat_map(|station| &station.ports);
    let mut ports = ports.chain(bridges().flat_map(|bridge| &bridge.ports));
    let shaped = ports
        .any(|port| port.classes.iter().any(|class| matches!(class.algorithm, Algorithm::Ats(_))));
    add(shaped, "Asynchronous shapers drop no frame.");
    let has_commands = !planned.hosts.is_empty();
    add(has_commands, "No segment of TCP and no raw frame is sent again, and no window is closed.");
    add(
        has_commands,
        "Drives, host software and interrupts take no longer than the plan's models allow.",
    );
    all
}
