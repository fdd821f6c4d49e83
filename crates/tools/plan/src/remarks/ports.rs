//! Remarks on ports: settings that standards permit but that cause losses or delays.

use super::super::Planned;
use super::Remark;
use crate::simulate::places;
use sim::ethernet::frame::{FCS, GAP, HEADER, PREAMBLE, TAG};
use sim::ethernet::port::{Algorithm, Config, Counted};
use sim::ethernet::traffic::StreamId;
use sim::network::Wiring;
use std::collections::BTreeMap;
use tsn::{Entry, Gates, Operation, QUEUES};
use wire::Instant;

/// Minimum share of a line in per cent that stream reservations leave to other traffic (IEEE
/// 802.1Q-2022, 34.3.1, deltaBandwidth: 75 % are for streams by default).
const UNRESERVED: u64 = 25;

/// Returns remarks on ports and on the streams that pass them, each remark once with all its ports.
pub(super) fn find(planned: &Planned) -> Vec<Remark> {
    let wiring = planned.config.network.wiring();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |text: String, port: String| {
        let at = *numbers.entry(text.clone()).or_insert(found.len());
        match found.get_mut(at) {
            Some((_, ports)) => ports.push(port),
            None => found.push((text, vec![port])),
        }
    };
    for cable in &planned.config.network.cables {
        for (place, partner) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let ports = [place, partner].map(|end| planned.config.network.port(end));
            for text in port_remarks(ports[0], ports[1]) {
                add(text, planned.link_name(&places::between((place, partner))));
            }
        }
    }
    for (name, id) in &planned.streams {
        add_stream_remarks((planned, &wiring), name, *id, &mut add);
    }
    let sentence = |(text, ports): (String, Vec<String>)| format!("{}: {text}", ports.join(", "));
    found.into_iter().map(|remark| Remark::Part(sentence(remark))).collect()
}

/// Adds remarks on a stream whose settings in the plan do not have the intended effect: a priority
/// without tags, or frames longer than `max_sdu` or than the burst of asynchronous shaping.
fn add_stream_remarks(
    (planned, wiring): (&Planned, &Wiring<'_>),
    name: &str,
    id: StreamId,
    add: &mut impl FnMut(String, String),
) {
    let network = &planned.config.network;
    let traffic = network.stream(id);
    let tag = network.stream_tag(id);
    if traffic.priority > 0 && tag.is_none() {
        let remark = "its frames have no tag, so their priority is lost and they are of class 0 \
                    (802.1Q-2022, 6.9.3); vlan adds one";
        add(remark.to_owned(), format!("stream {name}"));
    }
    let payload = traffic.length - HEADER - FCS;
    for egress in places::stream_routes(wiring, id) {
        let class = &egress.port.classes[egress.queue];
        let port = || planned.port_name(egress.place);
        if let Some(most) = class.max_sdu.filter(|most| payload > *most) {
            let remark = format!(
                "stream {name} has frames of {payload} bytes behind the EtherType, more than the \
                 max_sdu {most}: all are dropped (802.1Q-2022, 8.6.8.4)"
            );
            add(remark, port());
        }
        if let Algorithm::Ats(shaper) = &class.algorithm {
            let tag = tag.map_or(0, |_| TAG);
            let counted = match shaper.counted {
                Counted::WithGap => PREAMBLE + GAP,
                Counted::FrameOnly => 0,
            };
            let bytes = (traffic.length + tag + counted) as u64;
            let own = shaper.streams.iter().find(|(stream, _)| *stream == id);
            let burst = own.map_or(shaper.committed, |(_, own)| *own).burst / 8;
            if burst < bytes {
                let remark = format!(
                    "stream {name} has frames of {bytes} bytes, more than its burst of {burst} \
                     bytes: it gets less than its rate (802.1Q-2022, 8.6.11)"
                );
                add(remark, port());
            }
        }
    }
}

fn port_remarks(port: &Config, partner: &Config) -> Vec<String> {
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

/// Returns whether any gate control list holds preemptable frames.
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
