//! What a port is set to that the standards permit and that will hurt.

use super::super::Planned;
use super::Remark;
use sim::ethernet::port::{Algorithm, Config};
use tsn::{Entry, Gates, Operation, QUEUES};
use wire::Instant;

/// The share of a line that stream reservations leave to everything else at least, per cent
/// (IEEE 802.1Q-2022, 34.3.1, deltaBandwidth: 75 % are for streams by default).
const UNRESERVED: u64 = 25;

/// Remarks on every port, each once.
pub(super) fn find(planned: &Planned) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    for cable in &planned.config.network.cables {
        for (place, partner) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let [port, partner] = [place, partner].map(|end| planned.config.network.port(end));
            let name = planned.port_name(place);
            let remarks = of_port(port, partner).into_iter();
            for remark in remarks.map(|what| Remark::Port(format!("{name}: {what}"))) {
                if !found.contains(&remark) {
                    found.push(remark);
                }
            }
        }
    }
    found
}

fn of_port(port: &Config, partner: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let holds = port.gates.as_ref().is_some_and(holds);
    match &port.preemption {
        None if holds => found.push(
            "the schedule holds preemptable frames, but the port does not preempt: nothing is held \
             (802.1Q-2022, 8.6.8.4)"
                .to_owned(),
        ),
        Some(_) if partner.preemption.is_none() => found.push(
            "the port preempts, but its partner takes no fragments: verification will fail and \
             every frame goes whole (802.3-2022, 99.4.3)"
                .to_owned(),
        ),
        Some(preemption) if preemption.express == 0xff => {
            found.push("every class is express: nothing is preemptable".to_owned());
        }
        _ => {}
    }
    let slope = |class: usize| match port.classes[class].algorithm {
        Algorithm::CreditBased(shaper) => shaper.idle_slope,
        _ => 0,
    };
    let (reserved, rate) = ((0..QUEUES).map(slope).sum::<u64>(), port.rate.bits_per_second());
    if reserved > rate / 100 * (100 - UNRESERVED) {
        let share = reserved as f64 * 100.0 / rate as f64;
        found.push(format!(
            "idle slopes take {share:.1} % of the line, more than the 75 % that 802.1Q-2022, 34.3.1 \
             leaves to streams by default"
        ));
    }
    found
}

/// Whether any list holds preemptable frames.
fn holds(gates: &Gates) -> bool {
    let mut from = Some(Instant::ZERO);
    while let Some(now) = from {
        let mut lists = (0..QUEUES).map(|class| gates.list_at(class, now));
        let holds = |entry: &Entry| entry.operation == Operation::SetAndHoldMac;
        if lists.any(|list| list.entries().iter().any(holds)) {
            return true;
        }
        from = gates.next_list(now);
    }
    false
}
