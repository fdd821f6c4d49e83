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

/// A schedule of whole nanoseconds, whose last entry opens all gates.
fn schedule() -> impl Strategy<Value = Keys> {
    let entry = (prop_oneof!["S", "H", "R"], any::<u8>(), 1_u64..3_000_000);
    let parts = (vec(entry, 1..6), 0_u64..4_000_000_000_000, 0_u64..1_000_000);
    parts.prop_map(|(entries, base, rest)| {
        let cycle = entries.iter().map(|(.., ns)| ns).sum::<u64>() + 1000 + rest;
        let entries =
            entries.iter().map(|(letter, mask, ns)| format!("\"{letter} {mask:02x} {ns}ns\""));
        let all = entries.collect::<Vec<_>>().join(", ");
        let table = format!(
            "[schedules.s]\nbase = \"{base}ns\"\ncycle = \"{cycle}ns\"\n\
             entries = [{all}, \"S ff 1us\"]\n"
        );
        ("schedule = \"s\"\n".to_owned(), table)
    })
}

/// Shapers of classes 1 to 5: credit-based, with or only with a longest payload, or cyclic queues.
fn shapers() -> impl Strategy<Value = Keys> {
    let class = option::of((1_u64..100_000, option::of(46_u64..1500)));
    let cyclic = option::of((1_u64..1_000_000, 0_u64..1_000_000));
    (vec(class, 5), cyclic).prop_map(|(classes, cyclic)| {
        let (mut list, mut tables) = (Vec::new(), String::new());
        let classes = (1..).zip(classes).filter_map(|(class, one)| Some((class, one?)));
        for (class, (kilobits, most)) in classes.filter(|(class, _)| cyclic.is_none() || *class > 2)
        {
            list.push(format!("\"{class} c{class}\""));
            tables += &format!("[shapers.c{class}]\n");
            if let Some(most) = most {
                tables += &format!("max_sdu = \"{most}B\"\n");
            }
            if most.is_none_or(|most| most % 2 == 0) {
                // 1000 bits are 125 bytes.
                let slope = kilobits * 125;
                tables += &format!("algorithm = \"cbs\"\nidle_slope = \"{slope}B/s\"\n");
            }
        }
        if let Some((cycle, base)) = cyclic {
            list.extend(["\"1 turns\"".to_owned(), "\"2 turns\"".to_owned()]);
            tables += &format!(
                "[shapers.turns]\nalgorithm = \"cqf\"\ncycle = \"{cycle}ns\"\nbase = \"{base}ns\"\n"
            );
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
    let parts = (preempts, option::of(schedule()), shapers(), map, vlans);
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
            let used = port.queue_of_priority.iter().fold(0, |mask, class| mask | 1_u8 << class);
            own.express & used != 0 && own.express & used != used
        };
        let classes = port.cqf.iter().flat_map(|pair| pair.classes);
        if classes.into_iter().any(|class| !port.queue_of_priority.contains(&class)) {
            return None;
        }
        port.preemption.as_ref().is_none_or(shows).then_some(text)
    })
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
