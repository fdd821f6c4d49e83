//! Plans with several mistakes that one pass finds.

use super::{Plan, fails};

fn found(text: &str) -> Vec<String> {
    let error = Plan::parse("p.toml", text).unwrap().build().unwrap_err().to_string();
    error.lines().map(str::to_owned).collect()
}

#[test]
fn every_wrong_key_is_named_in_the_order_of_the_plan() {
    let text = "runtime = \"1x\"\n[nodes.a]\ntx_rng = 4\n[traffic.t]\nlength = \"1B\"\nloss = 3\n\
                [link]\ncuts = [\"2ms\", \"1ms..\"]\n";
    let found = found(text);
    let places: Vec<_> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    let wanted = ["p.toml:1:11", "p.toml:3:1", "p.toml:5:10", "p.toml:6:8", "p.toml:8:9"];
    assert_eq!(places, wanted, "{found:?}");
}

#[test]
fn mistakes_of_several_tables_are_found_together() {
    fails(
        "runtime = \"1s\"\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[traffic.t]\nfrom = \"c\"\nto = \"d\"\n\
         interval = \"1ms\"\n[traffic.u]\nfrom = \"a\"\nto = \"a\"\ninterval = \"1ms\"\n[streams.x]\n\
         from = \"a\"\n",
        "p.toml:6:8: unknown host or node 'c'; did you mean 'a'? There are: a, b\n\
         p.toml:7:6: unknown host or node 'd'; did you mean 'a'? There are: a, b\n\
         p.toml:11:6: 'to' names the sender: expected another station\n\
         p.toml:13:10: [streams.x] needs to, unless identification is \"source\"",
    );
    fails(
        "[workload]\nconfigreads = 1\n[schedules.s]\n[shapers.c]\nalgorithm = \"cbs\"\n[drives.x]\n\
         [hosts.h]\ndrives = [\"y\", \"z\"]\n[limits]\ntime = \"1s\"\n",
        "p.toml:3:12: [schedules.s] needs entries, such as [\"S 01 300us\"]\n\
         p.toml:4:10: [shapers.c] needs idle_slope, as it is cbs\n\
         p.toml:8:11: unknown drive 'y'; did you mean 'x'? There are: x\n\
         p.toml:8:16: unknown drive 'z'; did you mean 'x'? There are: x",
    );
}

/// A mistake in a table of defaults is reported once.
#[test]
fn a_mistake_in_defaults_is_named_once() {
    fails(
        "runtime = \"1s\"\n[link]\nschedule = \"x\"\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[traffic.t]\n\
         from = \"a\"\nto = \"b\"\ninterval = \"1ms\"\n",
        "p.toml:3:12: unknown schedule 'x'. There are: none",
    );
}

#[test]
fn twenty_mistakes_are_shown_and_the_others_counted() {
    let mut text = "[workload]\nconfigreads = 1\n".to_owned();
    (0..33).for_each(|at| text += &format!("[drives.d{at}]\npages = {at}\n"));
    let found = found(&text);
    assert_eq!((found.len(), found[20].as_str()), (21, "and 13 more"));
    assert!(found[19].starts_with("p.toml:42:1: unknown key of [drives.d19] 'pages'"), "{found:?}");
}

#[test]
fn list_of_names_in_errors_is_bounded_and_not_empty() {
    fails(
        "runtime = \"1s\"\n[link]\nshapers = [\"5 x\"]\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[traffic.t]\n\
         from = \"a\"\nto = \"b\"\ninterval = \"1ms\"\n[streams.x]\nfrom = \"a\"\nto = \"b\"\n",
        "p.toml:3:12: unknown shaper 'x': there is none",
    );
    let direct = super::built("transport = \"direct\"\n[workload]\nconfigreads = 1\n");
    let none = "no port 'a': with transport direct there is no network";
    assert_eq!(direct.wire("a"), Err(none.to_owned()));
    let many = super::scale::large(1_000, 1, 0);
    let [unknown] =
        &found(&format!("{many}[traffic.t]\nfrom = \"m1\"\nto = \"n2\"\ninterval = \"1s\"\n"))[..]
    else {
        panic!()
    };
    assert!(unknown.ends_with(", n98, n99, …") && unknown.len() < 1_000, "{unknown}");
}

#[test]
fn streams_without_hosts_and_runtime_need_one() {
    fails(
        "[nodes.a]\n[nodes.b]\n[bridges.s]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\n\
         interval = \"1ms\"\n",
        "p.toml:4:2: streams without hosts need runtime, such as \"1s\": for how long they run; \
         [workload] or [hosts] makes hosts",
    );
}

/// A cut, like an outage, may be permanent.
#[test]
fn cut_without_end_lasts_for_the_run() {
    let text = "runtime = \"10ms\"\n[nodes.a]\n[nodes.b]\n[bridges.s]\n[link]\ncuts = [\"4500us..\"]\n\
                express = [7]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"1ms\"\n";
    let report = sim::World::new(&super::built(text).config).unwrap().run().unwrap();
    let stream = &report.streams[0];
    assert_eq!((stream.sent, stream.arrived(), stream.lost()), (10, 5, 5));
}
