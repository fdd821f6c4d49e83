//! Ports: the interface of a station, and each port of a bridge. A key of every port has a line in
//! `PORT` in tables.rs and a line in [`config`] here. A key in a node's table applies to all its
//! ports. A key in `[bridges.NAME.ports.PEER]` or `[nodes.NAME.ports.PEER]` applies to one port.

use super::schedule::{Schedules, clock};
use super::shapers::Shapers;
use keys::{KeyError, Section, all, both, set_fields, unknown};
use sim::ethernet::{Rate, port};
use std::collections::{BTreeMap, BTreeSet};
use tsn::QUEUES;
use wire::Duration;

/// Schedules and shapers, to which ports refer by name.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    schedules: Schedules,
    shapers: Shapers,
}

impl Parts {
    /// Reads `[schedules]` and `[shapers]`.
    pub fn read(root: &Section) -> Result<Self, KeyError> {
        let (schedules, shapers) = both(Schedules::read(root), Shapers::read(root))?;
        Ok(Self { schedules, shapers })
    }

    /// Returns the longest gate cycle of the port that a table describes: of its schedule and of
    /// its cyclic queues. `None` without gates.
    pub fn cycle(&self, section: &Section) -> Result<Option<Duration>, KeyError> {
        let gates = self.schedules.gates(section)?;
        let listed = gates.map(|gates| gates.list().cycle_time());
        Ok(listed.max(self.shapers.cycle(section)))
    }
}

/// Builds the port that a table describes, with its schedule and clock.
pub fn config(section: &Section, rate: Rate, parts: &Parts) -> Result<port::Config, KeyError> {
    let mut port = port::Config::new(rate);
    for class in &mut port.classes {
        set_fields!(class, section, queue_frames queue_bytes);
    }
    set_fields!(port, section, gate_grain gate_entries);
    port.gates = parts.schedules.gates(section)?;
    port.clock = clock(section);
    port.queue_of_priority = classes(section)?;
    if section.knows("vlans") {
        port.vlans = section.list("vlans").into_iter().map(|(vlan, _)| vlan).collect();
        set_fields!(port, section, pvid);
    }
    parts.shapers.set_up(section, &mut port, clock(section))?;
    Ok(port)
}

/// The traffic class of each priority for 1 to 8 classes (IEEE 802.1Q-2022, table 8-5:
/// recommended).
const RECOMMENDED: [[u8; QUEUES]; QUEUES] = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 1, 1, 1, 1],
    [0, 0, 0, 0, 1, 1, 2, 2],
    [0, 0, 1, 1, 2, 2, 3, 3],
    [0, 0, 1, 1, 2, 2, 3, 4],
    [1, 0, 2, 2, 3, 3, 4, 5],
    [1, 0, 2, 3, 4, 4, 5, 6],
    [1, 0, 2, 3, 4, 5, 6, 7],
];

/// Returns the traffic class of each priority code point.
fn classes(section: &Section) -> Result<[u8; QUEUES], KeyError> {
    let queues: Option<usize> = section.get("queues");
    let given: Vec<u8> = section.list("class_of_pcp").into_iter().map(|(class, _)| class).collect();
    if given.is_empty() {
        let recommended = queues.map(|queues| RECOMMENDED[queues - 1]);
        return Ok(recommended.unwrap_or([0, 1, 2, 3, 4, 5, 6, 7]));
    }
    let most = queues.unwrap_or(QUEUES) as u8;
    if given.iter().any(|class| *class >= most) {
        return section.fail("class_of_pcp", format!("class_of_pcp: classes 0 to {}", most - 1));
    }
    let found = given.len();
    given.try_into().or_else(|_| {
        let message = format!("class_of_pcp: expected a class for each of 8 PCPs; found {found}");
        section.fail("class_of_pcp", message)
    })
}

/// Returns the tables of a bridge's ports by the names of their neighbours. Defaults are in the
/// bridge's table.
pub fn tables<'a>(bridge: &Section<'a>) -> Vec<(String, Section<'a>)> {
    let named = bridge.named("ports").into_iter();
    named.map(|(name, own)| (name, own.with_defaults(bridge))).collect()
}

/// The table of a node, and the tables of its ports by the names of their neighbours.
pub struct Ports<'a> {
    node: &'a Section<'a>,
    named: BTreeMap<String, Section<'a>>,
}

impl<'a> Ports<'a> {
    /// Reads the tables of a node.
    pub fn new(node: &'a Section<'a>) -> Self {
        let named = if node.knows("ports") { node.named("ports") } else { Vec::new() };
        Self { node, named: named.into_iter().collect() }
    }

    /// Returns the table of the port to `neighbour`. Keys are searched in the port's own table,
    /// then in the table for all copies of the neighbour, then in the node's table.
    pub fn to(&self, neighbour: &str) -> Section<'a> {
        let all = original(neighbour).and_then(|name| self.named.get(name));
        let tables = self.named.get(neighbour).into_iter().chain(all).chain([self.node]).cloned();
        tables.reduce(|own, defaults| own.with_defaults(&defaults)).expect("one is the node's")
    }

    /// Checks that the node has a port for each table of a port.
    ///
    /// # Errors
    /// Each table whose name is not a node at the other end of a cable.
    pub fn check(&self, neighbours: &[&str]) -> Result<(), KeyError> {
        let originals = neighbours.iter().filter_map(|neighbour| original(neighbour));
        let known: BTreeSet<&str> = neighbours.iter().copied().chain(originals).collect();
        let refuse = |(name, section): (&String, &Section)| {
            let kind = format!("neighbour of [{}]", self.node.name);
            Err(section.origin.fail(unknown(&kind, name, neighbours)))
        };
        let tables = self.named.iter().filter(|(name, _)| !known.contains(name.as_str()));
        all(tables.map(refuse)).map(|_: Vec<()>| ())
    }
}

/// Returns the name of which `name` is a copy, if it is one.
fn original(name: &str) -> Option<&str> {
    let (original, copy) = name.rsplit_once('.')?;
    copy.parse::<usize>().is_ok().then_some(original)
}

#[cfg(test)]
mod tests {
    use crate::Plan;
    use crate::tests::{built, fails};
    use sim::network::CableEnd;

    /// Returns a plan with two bridges, two copies of a host at the first, and a device at the
    /// second.
    fn plan(ports: &str) -> String {
        format!(
            "transport = \"tsn\"\n[link]\nvlan = 1\n[hosts.h]\ncount = 2\n[nodes.n]\n[bridges.b]\n\
             schedule = \"slow\"\nqueue_frames = 100\n[bridges.c]\n[cables.p]\na = \"h.0\"\n\
             b = \"b\"\n[cables.q]\na = \"h.1\"\nb = \"b\"\n[cables.r]\na = \"b\"\nb = \"c\"\n\
             [cables.s]\na = \"c\"\nb = \"n\"\n[schedules.slow]\nentries = [\"S ff 1ms\"]\n\
             [schedules.fast]\nentries = [\"S ff 50us\", \"S ff 150us\"]\n[workload]\n\
             configreads = 1\n{ports}"
        )
    }

    /// Returns gate cycle in microseconds, frames and bytes of the first bridge's ports to h.0, h.1
    /// and c.
    fn ports(text: &str) -> Vec<(Option<u64>, usize, usize)> {
        let network = built(&plan(text)).config.network;
        assert_eq!(network.cables[2].a, CableEnd::Bridge(0, 2), "the port to the other bridge");
        let times = |port: &sim::ethernet::port::Config| {
            let cycle = port.gates.as_ref().map(|gates| gates.list().cycle_time().as_ps());
            (
                cycle.map(|ps| ps / 1_000_000),
                port.classes[0].queue_frames,
                port.classes[0].queue_bytes,
            )
        };
        network.bridges[0].ports.iter().map(times).collect()
    }

    #[test]
    fn port_table_overrides_wildcard_table_and_bridge() {
        const BYTES: usize = 512 << 10;
        let all = (Some(1_000), 100, BYTES);
        assert_eq!(ports(""), [all; 3]);
        let c = "[bridges.b.ports.c]\nschedule = \"fast\"\nqueue_bytes = \"4KiB\"\n";
        assert_eq!(ports(c), [all, all, (Some(200), 100, 4096)]);
        let copies = "[bridges.b.ports.h]\nschedule = \"none\"\nqueue_frames = 7\n";
        assert_eq!(ports(copies), [(None, 7, BYTES), (None, 7, BYTES), all]);
        let one = format!("{copies}[bridges.b.ports.\"h.1\"]\nqueue_frames = 3\n");
        assert_eq!(ports(&one), [(None, 7, BYTES), (None, 3, BYTES), all]);
        let reversed = format!("[bridges.b.ports.\"h.1\"]\nqueue_frames = 3\n{copies}");
        assert_eq!(ports(&reversed), ports(&one), "whatever their order");
    }

    #[test]
    fn options_reach_ports_by_name() {
        let text = plan("[bridges.b.ports.\"h.1\"]\nqueue_frames = 3\n[bridges.b.ports.c]\n");
        let plan = Plan::parse("p.toml", &text).unwrap();
        let set = |key: &str| {
            let plan = plan.with(key, "9", "--set").unwrap().build().unwrap();
            let ports = plan.config.network.bridges[0].ports.iter();
            ports.map(|port| port.classes[7].queue_frames).collect::<Vec<_>>()
        };
        assert_eq!(set("bridges.b.ports.c.queue_frames"), [100, 3, 9]);
        assert_eq!(set("bridges.b.ports.h.1.queue_frames"), [100, 9, 100]);
        assert_eq!(set("bridges.b.queue_frames"), [9, 3, 9]);
    }

    #[test]
    fn a_port_without_a_cable_is_an_error() {
        fails(
            &plan("[bridges.b.ports.n]\n"),
            "p.toml:29:18: unknown neighbour of [bridges.b] 'n'; did you mean 'c'? There are: \
             h.0, h.1, c",
        );
        fails(
            &plan("[bridges.b.ports.c]\nschedule = \"x\"\n"),
            "p.toml:30:12: unknown schedule 'x'. There are: slow, fast, none",
        );
    }

    /// A schedule that the hardware of a port cannot execute is an error at its line.
    #[test]
    fn schedules_fit_the_hardware_of_each_port() {
        let port = "[bridges.b.ports.c]\nschedule = \"fast\"\n";
        built(&plan(&format!("{port}gate_entries = 2\ngate_grain = \"50us\"\n")));
        let other = "[bridges.c]\ngate_entries = 1\ngate_grain = \"1s\"\n";
        let without = plan(port).replace("[bridges.c]\n", other);
        built(&without);
        fails(
            &plan(&format!("{port}gate_entries = 1\n")),
            "p.toml:26:25: schedule 'fast' has 2 entries, more than the gate_entries 1 \
             at p.toml:31:16",
        );
        fails(
            &plan(&format!("{port}gate_grain = \"100us\"\n")),
            "p.toml:26:12: schedule 'fast': entry 1 of 50us is not a multiple of the \
             gate_grain 100us at p.toml:31:14",
        );
        // The bridge's own grain applies to all its ports.
        let coarse = plan(port).replace("queue_frames = 100", "gate_grain = \"200us\"");
        fails(
            &coarse,
            "p.toml:26:12: schedule 'fast': entry 1 of 50us is not a multiple of the \
             gate_grain 200us at p.toml:9:14",
        );
        let fast = "entries = [\"S ff 50us\", \"S ff 150us\"]";
        for (times, grain, expected) in [
            (
                format!("base = \"10us\"\n{fast}"),
                "50us",
                "p.toml:26:8: schedule 'fast': its base of 10us",
            ),
            (
                format!("cycle = \"225us\"\n{fast}"),
                "50us",
                "p.toml:26:9: schedule 'fast': its cycle of 225us",
            ),
        ] {
            let text = plan(&format!("{port}gate_grain = \"{grain}\"\n")).replace(fast, &times);
            let error = Plan::parse("p.toml", &text).unwrap().build().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn interfaces_have_hardware_too() {
        let text = "transport = \"tsn\"\n[link]\nschedule = \"s\"\ngate_grain = \"1us\"\n\
                    [schedules.s]\nentries = [\"S ff 1500ns\"]\n[workload]\nconfigreads = 1\n";
        fails(
            text,
            "p.toml:6:12: schedule 's': entry 1 of 1500ns is not a multiple of the gate_grain 1us \
             at p.toml:4:14",
        );
    }
}
