//! Tunnels with two paths: second interfaces of hosts and nodes.

use super::{Plan, built};
use sim::World;
use wire::frame::Paths;

/// A host and a node with two interfaces each. The first cable is cut.
const TWO: &str = "[workload]\nrw = \"randrw\"\nsize = \"64KiB\"\nruntime = \"60ms\"\ntime_based = \"on\"\n\
                   rate = \"1MB/s\"\n[hosts.h]\nsecond = \"h2\"\n[drive]\nnode = \"d\"\n[nodes.d]\n\
                   second = \"d2\"\n[nodes.h2]\n[nodes.d2]\n[cables.a]\na = \"h\"\nb = \"d\"\n\
                   cuts = [\"20ms..\"]\n[cables.b]\na = \"h2\"\nb = \"d2\"\n[link]\nvlan = 1\n";

#[test]
fn second_interfaces_make_a_second_path() {
    for (keys, paths) in [("", Paths::Active), ("paths = \"both\"\n", Paths::Both)] {
        for transport in ["tcp", "tsn", "raw"] {
            for machine in ["nvme-tsn", "farlane"] {
                let text =
                    format!("transport = \"{transport}\"\nmachine = \"{machine}\"\n{TWO}{keys}");
                let planned = built(&text);
                let links = planned.config.hosts[0].links();
                let ends: Vec<_> = links[0].transports().map(|path| path.stations()).collect();
                assert_eq!(ends, [Some(([0, 1], 0)), Some(([2, 3], 0))]);
                assert_eq!(links[0].switch.paths, paths);
                let report = World::new(&planned.config).unwrap().run().unwrap();
                let host = &report.hosts[0];
                assert_eq!((host.failures, host.mismatches), (0, 0), "{text}");
                let [failovers, copies] = [0, 1].map(|count| {
                    let ways = report.tunnels.iter();
                    ways.map(|way| [way.failovers, way.copies][count]).sum::<u64>()
                });
                let expected = if paths == Paths::Active { failovers > 0 } else { copies > 0 };
                assert!(expected, "{failovers} {copies} {text}");
            }
        }
    }
}

/// The plan in `plans`: the cut of a cable makes no command late.
#[test]
fn both_paths_keep_every_deadline() {
    let planned = built(include_str!("../../../../../plans/two-paths.toml"));
    let report = World::new(&planned.config).unwrap().run().unwrap();
    let host = &report.hosts[0];
    assert_eq!((host.failures, host.mismatches), (0, 0));
    assert!(host.commands > 100 && host.latency.quantile_ns(1.0) < 400_000);
    assert!(report.tunnels.iter().all(|way| way.copies > 0));
}

#[test]
fn one_end_may_have_a_single_interface() {
    let star = "[workload]\nconfigreads = 9\n[hosts.h]\nsecond = \"h2\"\n[drive]\nnode = \"d\"\n\
                [nodes.d]\n[nodes.h2]\n[bridges.b]\n";
    let planned = built(star);
    let ends = planned.config.hosts[0].links()[0].second.and_then(|path| path.stations());
    assert_eq!(ends, Some(([2, 1], 0)));
    assert_eq!(World::new(&planned.config).unwrap().run().unwrap().hosts[0].failures, 0);
}

#[test]
fn mistakes_of_second_interfaces_are_named() {
    let with = |from: &str, to: &str| TWO.replace(from, to);
    for (text, message) in [
        (with("second = \"h2\"", "second = \"h3\""), "8:10: unknown node 'h3'; did you mean 'h2'?"),
        (with("second = \"d2\"", "secnd = \"d2\""), "did you mean 'second'?"),
        (with("second = \"d2\"", "second = \"d\""), "second: expected another node"),
        (
            with("second = \"d2\"", "second = \"h2\""),
            "second: 'h2' is already the second interface of 'h'",
        ),
        (with("[nodes.d2]", "[nodes.d2]\ncount = 2"), "second: node 'd2' has copies"),
        (
            with("[nodes.d2]", "[nodes.d2]\noutages = [\"1ms..\"]"),
            "'outages' does not apply to the second interface of 'd'",
        ),
        (
            with("node = \"d\"", "node = \"d2\""),
            "node: expected 'd', whose second interface this is",
        ),
        (
            with("second = \"h2\"\n", "").replace("second = \"d2\"\n", "") + "paths = \"both\"\n",
            "no path from 'h' to",
        ),
        (with("vlan = 1", "survive = \"0ns\""), "survive: two paths require a time above 0ns"),
        (with("vlan = 1", "paths = \"all\""), "unknown paths 'all'. There are: active, both"),
        (
            "[workload]\nconfigreads = 1\n[link]\npaths = \"both\"\n".into(),
            "'paths' requires 'second' at a host or node",
        ),
    ] {
        let error = Plan::parse("p.toml", &text).and_then(|plan| plan.build()).err();
        let error = error.expect(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
