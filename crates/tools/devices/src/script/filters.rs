//! Filters at the ports of a bridge: priorities from tags, streams that are policed, cyclic queues.

use super::{Lines, Options};
use crate::node::{Node, Port, Stream};
use sim::ethernet::frame::{FCS, HEADER, TAG};
use sim::ethernet::streams::Identification;
use std::fmt::Write;
use tsn::psfp::{self, GateConfig, MeterConfig};
use tsn::{Cqf, QUEUES};

/// The preference of the filter for priority 0; the filters of streams come first.
const PRIORITIES: usize = 40_000;
/// The longest payload without a limit, in bytes.
pub(crate) const NO_LIMIT: u64 = 65_535;

/// Adds the filters of all ports.
pub(super) fn lines(node: &Node, devices: &[String], options: &Options, lines: &mut Lines) {
    node.streams.iter().for_each(|stream| lacks(stream, lines));
    for (number, device) in devices.iter().enumerate() {
        lines.remark(format_args!("From {}", node.ports[number].peer));
        lines.down(format!("tc qdisc del dev {device} clsact"));
        lines.up(format!("tc qdisc replace dev {device} clsact"));
        let own = node.streams.iter().filter(|stream| stream.inputs.contains(&number));
        for (preference, stream) in (1..).zip(own.filter(|stream| stream.filter.is_some())) {
            police(stream, device, preference, lines);
        }
        lines.up(format!("priorities {device}"));
        for (priority, gate) in cyclic_gates(node) {
            lines.up(format!(
                "{} pipe action {gate}",
                priority_filter(device, PRIORITIES, &priority.to_string())
            ));
        }
    }
    unassigned(node).for_each(|text| lines.note(text));
    if cyclic(node).next().is_some() && !options.offload {
        lines.note("the internal priorities (IPV) of cyclic queues, which only hardware uses");
    }
}

/// Returns the pairs of cyclic queues of a bridge, each once, with a priority for each class.
pub(crate) fn cyclic(node: &Node) -> impl Iterator<Item = (&Cqf, [usize; 2], &[u8; QUEUES])> {
    let mut seen: Vec<[u8; 2]> = Vec::new();
    let ports = node.ports.iter().map(|port| &port.config);
    let pairs = ports.flat_map(|port| port.cqf.iter().map(move |pair| (pair, port)));
    pairs.filter_map(move |(pair, port)| {
        let map = &port.queue_of_priority;
        let priority = |class| map.iter().position(|own| *own == class);
        let [Some(first), Some(second)] = pair.classes.map(priority) else { return None };
        let new = !seen.contains(&pair.classes);
        seen.push(pair.classes);
        new.then_some((pair, [first, second], map))
    })
}

/// Notes cyclic queues with a class to which no priority leads, so that no gate can assign it.
pub(crate) fn unassigned(node: &Node) -> impl Iterator<Item = String> {
    let lacks = |port: &&Port| {
        let map = &port.config.queue_of_priority;
        let mut classes = port.config.cqf.iter().flat_map(|pair| pair.classes);
        classes.any(|class| !map.contains(&class))
    };
    let note = |port: &Port| format!("port to {}: a cyclic class without a priority", port.peer);
    node.ports.iter().filter(lacks).map(note)
}

/// Returns the priorities of cyclic queues, each with the action of a gate that assigns the class of
/// the cycle (IEEE 802.1Q-2022, T.3.1).
fn cyclic_gates(node: &Node) -> impl Iterator<Item = (usize, String)> {
    cyclic(node).flat_map(|(pair, [first, second], map)| {
        let (base, cycle) = (pair.base.as_ns(), pair.cycle.as_ns());
        let action = format!(
            "gate base-time {base} clockid CLOCK_TAI sched-entry open {cycle} {first} -1 \
             sched-entry open {cycle} {second} -1"
        );
        let own = move |priority: &usize| pair.classes.contains(&map[*priority]);
        (0..QUEUES).filter(own).map(move |priority| (priority, action.clone()))
    })
}

/// Returns the function of the shell that sets the kernel's priority of frames from a port by their
/// tags. Cyclic queues have lines of their own.
pub(super) fn priorities(node: &Node) -> String {
    let cyclic: Vec<usize> = cyclic_gates(node).map(|(priority, _)| priority).collect();
    let others = (0..QUEUES).filter(|priority| !cyclic.contains(priority));
    let others: Vec<String> = others.map(|priority| priority.to_string()).collect();
    format!(
        "# The kernel's priority of frames that a port receives, by their tags.\n\
         priorities() {{\n    for priority in {}; do\n        {}\n    done\n}}\n",
        others.join(" "),
        priority_filter("\"$1\"", PRIORITIES, "$priority")
    )
}

/// Returns the command that gives frames from a port the kernel's priority of their tag.
/// `priority` is a number or a variable of the shell.
fn priority_filter(device: &str, first: usize, priority: &str) -> String {
    format!(
        "tc filter add dev {device} ingress protocol 802.1Q pref $(({first} + {priority})) \
         flower vlan_prio {priority} action skbedit priority {priority}"
    )
}

/// Notes the parts of a filter that tc lacks.
fn lacks(stream: &Stream, lines: &mut Lines) {
    let Some(psfp::Config { block_on_oversize, gate, meter, .. }) = &stream.filter else { return };
    let latches = gate.as_ref().is_some_and(|gate| gate.close_on_invalid || gate.close_on_excess);
    if *block_on_oversize || latches || meter.is_some_and(|meter| meter.mark_all_red) {
        lines.note(format_args!("stream {}: the permanent blocks", stream.name));
    }
    if meter.is_some_and(|meter| meter.ebs > 0) {
        lines.note(format_args!("stream {}: the excess rate", stream.name));
    }
}

/// Adds the filter of a stream. The frames continue to the filters of their priorities.
fn police(stream: &Stream, device: &str, preference: usize, lines: &mut Lines) {
    let Some(psfp::Config { max_sdu, gate, meter, .. }) = &stream.filter else { return };
    let mut actions = Vec::new();
    if let Some(most) = max_sdu {
        actions.push(format!("police mtu {most} conform-exceed drop/"));
    }
    actions.extend(gate.as_ref().map(gate_action));
    let (keys, tag) = matches(&stream.identification);
    actions.extend(meter.filter(|meter| meter.cir > 0).map(|meter| meter_action(&meter, tag)));
    let Some((last, others)) = actions.split_last() else { return };
    let others = others.iter().fold(String::new(), |all, own| format!("{all}action {own}pipe "));
    lines.remark(format_args!("Stream {}", stream.name));
    lines.up(format!(
        "tc filter add dev {device} ingress pref {preference} {keys} {others}action {last}continue"
    ));
}

fn gate_action(gate: &GateConfig) -> String {
    let mut words = format!("gate base-time {} clockid CLOCK_TAI", gate.base.as_ns());
    for entry in &gate.entries {
        let state = if entry.open { "open" } else { "close" };
        let number = |value: Option<u64>| value.map_or("-1".to_owned(), |value| value.to_string());
        let [ipv, octets] = [number(entry.ipv.map(u64::from)), number(entry.octets)];
        let interval = entry.interval.as_ns();
        write!(words, " sched-entry {state} {interval} {ipv} {octets}")
            .expect("a String takes all");
    }
    format!("{words} cycle-time {} ", gate.cycle.as_ns())
}

/// Returns the action of a meter. At ingress the kernel counts the bytes behind the EtherType.
fn meter_action(meter: &MeterConfig, tagged: bool) -> String {
    let MeterConfig { cir, cbs, .. } = meter;
    let overhead = HEADER + FCS + if tagged { TAG } else { 0 };
    format!(
        "police rate {cir}bit burst {cbs}b mtu {NO_LIMIT} overhead {overhead} \
         conform-exceed drop/"
    )
}

/// Returns the keys of tc-flower(8) for the frames of a stream, and whether the frames have a tag.
fn matches(identification: &Identification) -> (String, bool) {
    let tag = |vlan: &Option<u16>| match vlan {
        Some(vlan) => format!("protocol 802.1Q flower vlan_id {vlan}"),
        None => "protocol all flower".to_owned(),
    };
    match identification {
        Identification::Null { destination, vlan } => {
            (format!("{} dst_mac {destination}", tag(vlan)), vlan.is_some())
        }
        Identification::Source { source, vlan } => {
            (format!("{} src_mac {source}", tag(vlan)), vlan.is_some())
        }
        Identification::Priority { destination, source, tag } => (
            format!(
                "protocol 802.1Q flower vlan_id {} vlan_prio {} dst_mac {destination} \
                 src_mac {source}",
                tag.vid, tag.pcp
            ),
            true,
        ),
        Identification::Ip { destination, vlan, ip: [from, to] } => {
            let keys = format!("dst_mac {destination} src_ip {from} dst_ip {to}");
            match vlan {
                Some(vlan) => {
                    (format!("protocol 802.1Q flower vlan_id {vlan} vlan_ethtype ip {keys}"), true)
                }
                None => (format!("protocol ip flower {keys}"), false),
            }
        }
    }
}
