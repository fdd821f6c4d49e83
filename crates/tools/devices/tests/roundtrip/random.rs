//! Ports with random gates, shapers, preemption and VLANs come back from their files.

use super::{assert_same_ports, back, file, kernel};
use farlane_devices::yang;
use plan::{Plan, Planned};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sim::ethernet::port::Preemption;

/// Keys of a port, and the tables to which they refer.
type Keys = (String, String);

/// A schedule of whole nanoseconds; `S`, `H` and `R` only with preemption.
fn schedule(holds: bool) -> impl Strategy<Value = Keys> {
    let letter = if holds { "SHR" } else { "S" };
    let entry = (0..letter.len(), any::<u8>(), 1_u64..3_000_000);
    (vec(entry, 1..6), 0_u64..4_000_000_000_000, 0_u64..1_000_000).prop_map(move |(entries, base, rest)| {
        let sum = entries.iter().map(|(.., ns)| ns).sum::<u64>() + rest;
        let entry = |(at, mask, ns): &(usize, u8, u64)| {
            // Each gate opens at some time.
            format!("\"{} {mask:02x} {ns}ns\"", &letter[*at..=*at])
        };
        let all: Vec<String> = entries.iter().map(entry).collect();
        let table = format!(
            "[schedules.s]\nbase = \"{base}ns\"\ncycle = \"{sum}ns\"\nentries = [{}, \"S ff 1us\"]\n",
            all.join(", ")
        );
        let table = table.replace(&format!("\"{sum}ns\"\nentries"), &format!("\"{}ns\"\nentries", sum + 1000));
        ("schedule = \"s\"\n".to_owned(), table)
    })
}

/// Shapers of classes 1 to 5: credit-based, or only a longest payload, or two cyclic queues.
fn shapers(limits: bool) -> impl Strategy<Value = Keys> {
    let credit = option::of((1_u64..100_000, option::of(46_u64..1500)));
    (vec(credit, 5), any::<bool>(), 1_u64..1_000_000, 0_u64..1_000_000).prop_map(move |(all, cyclic, cycle, base)| {
        let (mut list, mut tables) = (Vec::new(), String::new());
        for (class, (kilobits, most)) in (1..).zip(all).filter_map(|(class, one)| Some((class, one?))) {
            if cyclic && class < 3 {
                continue;
            }
            list.push(format!("\"{class} c{class}\""));
            // kilobits of 1000 bits are 125 bytes.
            tables += &match most.filter(|_| limits) {
                Some(most) if kilobits % 2 == 0 => format!("[shapers.c{class}]\nmax_sdu = \"{most}B\"\n"),
                Some(most) => format!("[shapers.c{class}]\nalgorithm = \"cbs\"\nidle_slope = \"{}B/s\"\nmax_sdu = \"{most}B\"\n", kilobits * 125),
                None => format!("[shapers.c{class}]\nalgorithm = \"cbs\"\nidle_slope = \"{}B/s\"\n", kilobits * 125),
            };
        }
        if cyclic {
            list.extend(["\"1 turns\"".to_owned(), "\"2 turns\"".to_owned()]);
            tables += &format!("[shapers.turns]\nalgorithm = \"cqf\"\ncycle = \"{cycle}ns\"\nbase = \"{base}ns\"\n");
        }
        (format!("shapers = [{}]\n", list.join(", ")), tables)
    })
}

fn preemption(details: bool) -> impl Strategy<Value = String> {
    (1_u8..255, 0_u8..4, 1_u64..128).prop_map(move |(mask, add, time)| {
        let classes = (0..8).filter(|class| mask >> class & 1 == 1).map(|class| class.to_string());
        let express = format!("express = [{}]\n", classes.collect::<Vec<_>>().join(", "));
        match details {
            true => format!("{express}add_frag_size = {add}\nverify_time = \"{time}ms\"\n"),
            false => express,
        }
    })
}

fn vlans() -> impl Strategy<Value = String> {
    vec(1_u16..4095, 1..5).prop_map(|mut vlans| {
        vlans.sort_unstable();
        vlans.dedup();
        format!("vlans = {vlans:?}\npvid = {}\n", vlans[0])
    })
}

fn built(text: &str) -> Option<Planned> {
    Plan::parse("random.toml", text).ok()?.build().ok()
}

/// A plan of a bridge with random keys at its port to one of two stations. `linux`: with what only
/// programs of Linux have; otherwise with what only YANG has.
fn plan(linux: bool) -> impl Strategy<Value = String> {
    let map = option::of(vec(0_u8..8, 8))
        .prop_map(|map| map.map_or_else(String::new, |map| format!("class_of_pcp = {map:?}\n")));
    let preempts = option::of(preemption(linux)).prop_map(Option::unwrap_or_default);
    let vlans = option::of(vlans()).prop_map(Option::unwrap_or_default);
    let parts = (preempts, option::of(schedule(true)), shapers(true), map, vlans);
    let plan =
        parts.prop_filter_map("an invalid port", move |(preempts, gates, shapers, map, vlans)| {
            let (mut schedule, gate_table) = gates.unwrap_or_default();
            let mut text = "runtime = \"1ms\"\n[nodes.a]\n[nodes.z]\n[bridges.b]\n[traffic.t]\n\
             from = \"a\"\nto = \"z\"\ninterval = \"1ms\"\n[bridges.b.ports.a]\n"
                .to_owned();
            if shapers.1.contains("cqf") {
                // Both lists together may be too long for one.
                schedule.clear();
            }
            let vlans = if linux { vlans } else { String::new() };
            text += &format!("{preempts}{schedule}{}{map}{vlans}{}", shapers.0, shapers.1);
            text += if schedule.is_empty() { "" } else { &gate_table };
            if linux && schedule.is_empty() && text.contains("max_sdu") {
                return None;
            }
            let planned = built(&text)?;
            let port = &planned.config.network.bridges[0].ports[0];
            let shows = |own: &Preemption| {
                let used =
                    port.queue_of_priority.iter().fold(0, |mask, class| mask | 1_u8 << class);
                own.express & used != 0 && own.express & used != used
            };
            let classes = port.cqf.iter().flat_map(|pair| pair.classes);
            if classes.into_iter().any(|class| !port.queue_of_priority.contains(&class)) {
                return None;
            }
            port.preemption.as_ref().is_none_or(shows).then_some(text)
        });
    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn random_ports_come_back_from_yang_data(text in plan(false)) {
        let planned = built(&text).unwrap();
        let stations = planned.stations.len();
        let files = |node: &_| vec![file("data.json", yang::data(node, stations).text)];
        assert_same_ports(&planned, &back(&planned, files).0, "yang");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_ports_come_back_from_the_kernel(text in plan(true)) {
        kernel::assert_back(&built(&text).unwrap(), "random");
    }
}
