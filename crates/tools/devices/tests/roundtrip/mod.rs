//! A plan, its files, and the plan that they give.

mod kernel;
mod random;

use super::planned;
use farlane_devices::import::{File, Kind, Target, import};
use farlane_devices::node::Node;
use farlane_devices::yang;
use plan::{Plan, Planned};
use sim::ethernet::port::{Algorithm, Config};
use sim::network::CableEnd;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The shipped plans with TSN, each with keys to change.
const PLANS: [(&str, &[&str]); 14] = [
    ("babbling-camera", &[]),
    ("clocks", &[]),
    ("dual-homed-drive", &[]),
    ("industrial-cell", &[]),
    ("redundant-drive", &[]),
    ("shapers", &["variant=cbs"]),
    ("shapers", &["variant=ats"]),
    ("shapers", &["variant=cqf"]),
    ("shapers", &["variant=gates"]),
    ("shapers", &["variant=preemption"]),
    ("tsn", &[]),
    ("tsn-network", &[]),
    ("vehicle", &[]),
    ("zonal-vehicle", &[]),
];

/// Returns the ports of a plan by node and neighbour.
fn ports(planned: &Planned) -> BTreeMap<(String, String), Config> {
    let nodes = Node::all(planned).into_iter();
    let each = nodes.flat_map(|node| {
        let name = node.name;
        node.ports.into_iter().map(move |port| ((name.clone(), port.peer), port.config))
    });
    each.collect()
}

/// Describes what the files have of a port: of the classes with a priority.
fn described(port: &Config) -> String {
    let gates = port.gates.as_ref().map(|gates| tsn::taprio::words(&gates.merged().unwrap()));
    let used = |class: usize| port.queue_of_priority.iter().any(|own| usize::from(*own) == class);
    let class = |(number, class): (usize, &sim::ethernet::port::Class)| {
        if !used(number) {
            return String::new();
        }
        let algorithm = match &class.algorithm {
            Algorithm::CreditBased(shaper) => format!("cbs {}", shaper.idle_slope),
            Algorithm::Ats(ats) => format!("ats {:?} {:?}", ats.committed, ats.max_residence),
            other => format!("{other:?}"),
        };
        format!("{algorithm} {:?}", class.max_sdu)
    };
    let classes: Vec<String> = port.classes.iter().enumerate().map(class).collect();
    let express =
        |mask: u8| (0..8).filter(|at| mask >> at & 1 == 1 && used(*at)).collect::<Vec<_>>();
    let preemption = port.preemption.map(|own| (express(own.express), own.fragment, own.verify));
    format!(
        "{gates:?} {:?} {classes:?} {:?} {preemption:?} {:?} {}",
        port.queue_of_priority, port.cqf, port.vlans, port.pvid
    )
}

/// Returns a plan with the stations, bridges and cables of a plan, and a stream.
fn skeleton(planned: &Planned) -> String {
    let mut text = String::from("runtime = \"1ms\"\n");
    let name = |end| match end {
        CableEnd::Station(at, _) => &planned.stations[at],
        CableEnd::Bridge(at, _) => &planned.bridges[at],
    };
    planned.stations.iter().for_each(|name| writeln!(text, "[nodes.\"{name}\"]").unwrap());
    planned.bridges.iter().for_each(|name| writeln!(text, "[bridges.\"{name}\"]").unwrap());
    for (number, cable) in planned.config.network.cables.iter().enumerate() {
        let rate = planned.config.network.port(cable.a).rate.name();
        let (a, b) = (name(cable.a), name(cable.b));
        writeln!(text, "[cables.c{number}]\na = \"{a}\"\nb = \"{b}\"\nrate = \"{rate}\"").unwrap();
    }
    let [from, to, ..] = &planned.stations[..] else { panic!("two stations") };
    text + &format!("[traffic.t]\nfrom = \"{from}\"\nto = \"{to}\"\ninterval = \"1ms\"\n")
}

/// Imports the files of every node, and builds the plan of its network with them.
fn back(planned: &Planned, files: impl Fn(&Node) -> Vec<File>) -> (Planned, Vec<String>) {
    let (mut text, mut warnings) = (skeleton(planned), Vec::new());
    for node in Node::all(planned) {
        let kind = if node.is_bridge() { Kind::Bridge } else { Kind::Station };
        let target = Target { kind, name: node.name.clone(), peers: BTreeMap::new() };
        let imported = import(&target, &files(&node)).unwrap();
        text += &imported.text;
        warnings.extend(imported.warnings);
    }
    let built = Plan::parse("back.toml", &text).and_then(|plan| plan.build());
    (built.unwrap_or_else(|error| panic!("{error}\n{text}")), warnings)
}

/// Checks that both plans have the same ports.
fn assert_same_ports(planned: &Planned, back: &Planned, context: &str) {
    let (ports, back) = (ports(planned), ports(back));
    assert_eq!(ports.len(), back.len(), "{context}");
    for (place, port) in &ports {
        assert_eq!(described(&back[place]), described(port), "{context}: {place:?}");
    }
}

fn file(name: &str, text: String) -> File {
    File { name: name.to_owned(), interface: None, text }
}

#[test]
fn yang_data_of_every_plan_are_read_back() {
    for (name, settings) in PLANS {
        let planned = planned(name, settings);
        let stations = planned.stations.len();
        let (back, warnings) =
            back(&planned, |node| vec![file("data.json", yang::data(node, stations).text)]);
        assert_same_ports(&planned, &back, name);
        let unread = |text: &&String| !text.contains("802-dot1cb");
        assert_eq!(warnings.iter().find(unread), None, "{name}");
    }
}

#[test]
fn filters_are_read_back_from_yang_data() {
    let planned = planned("babbling-camera", &[]);
    let node = super::node(&planned, "switch");
    let data = yang::data(&node, planned.stations.len());
    let target = Target { kind: Kind::Bridge, name: node.name, peers: BTreeMap::new() };
    let text = import(&target, &[file("switch.json", data.text)]).unwrap().text;
    let frames = "# Filter switch-1: stream 1 from 02-00-00-00-00-03 VLAN 1\n";
    assert!(text.starts_with(frames), "{text}");
    let filter =
        "[filters.switch-1]\nrate = \"13750000B/s\"\nburst = \"4KiB\"\nblock_red = \"on\"\n";
    assert!(text.ends_with(filter), "{text}");
}
