//! Tests every key of every table with invalid and valid values. An invalid value must give one
//! line with the place and the allowed values, as in docs/plan.md.

use super::tables::{ROOT, TRANSPORTS};
use super::{Origin, Plan};
use keys::allowed::{bytes, rate, time};
use keys::units::{LONG, SHORT};
use keys::{Allowed, Key, Table};
use std::collections::BTreeMap;
use wire::Duration;

/// Returns every key with the heading of its table; names are `NAME`.
fn keys() -> Vec<(String, Key)> {
    fn add(heading: &str, table: Table, all: &mut Vec<(String, Key)>) {
        for key in table.concat() {
            let below = format!("{heading}.{}", key.name);
            match key.allowed {
                Allowed::Table(table) => add(below.trim_start_matches('.'), table, all),
                Allowed::Named(table) => {
                    add(&format!("{}.NAME", below.trim_start_matches('.')), table, all);
                }
                _ => {}
            }
            all.push((heading.to_owned(), key));
        }
    }
    let mut all = Vec::new();
    add("", ROOT, &mut all);
    all
}

/// Returns invalid values of a key as TOML, and the text that the error must contain.
fn wrong(allowed: Allowed) -> Vec<(String, String)> {
    let outside = |least: u64, most: u64, words: fn(u64) -> String| {
        let requested = format!("{} to {}; found ", words(least), words(most));
        let below = least.checked_sub(1);
        let values = below.into_iter().chain([most + 1]);
        values.map(|value| (format!("\"{}\"", words(value)), requested.clone())).collect()
    };
    let number = |least: u64, most: u64| {
        let requested = format!("expected a whole number, {least} to {most}");
        [i128::from(least) - 1, i128::from(most) + 1]
            .map(|n| (n.to_string(), requested.clone()))
            .into()
    };
    let text = || vec![("5".to_owned(), "expected a text".to_owned())];
    match allowed {
        Allowed::Table(_) | Allowed::Named(_) | Allowed::Values(_) => {
            vec![("5".into(), "expected a table".into())]
        }
        Allowed::Word(words) => {
            vec![("\"x\"".into(), format!("There are: {}", words.join(", ")))]
        }
        Allowed::Number(least, most) => number(least, most),
        Allowed::NumberOrNone(least, most) => {
            let text = ("\"x\"".to_owned(), format!("\"none\", or {least} to {most}"));
            [number(least, most), vec![text]].concat()
        }
        Allowed::Power(least, most) => {
            let requested = format!("a power of two, {least} to {most} bytes");
            let odd = (format!("{}", least + 1), requested.clone());
            [number(least, most), vec![odd, (format!("\"{}B\"", 2 * most), requested)]].concat()
        }
        Allowed::Time((least, most)) | Allowed::TimeIn((least, most), _) => {
            let words = |ps| time(Duration::from_ps(ps));
            outside(least.as_ps(), most.as_ps(), words)
        }
        Allowed::Bytes(least, most) => outside(least, most, bytes),
        Allowed::Rate(least, most) | Allowed::FioRate(least, most) => outside(least, most, rate),
        Allowed::Size(_, words) => vec![("\"1B\"".into(), words.into())],
        Allowed::Form(check) => {
            let wrong =
                |requested| ("\"?\"".to_owned(), format!("expected {requested}; found '?'"));
            check("?").err().map(wrong).into_iter().collect()
        }
        Allowed::List(item) => {
            let mut all = vec![("5".to_owned(), "expected an array of texts".to_owned())];
            all.extend(
                wrong(*item).into_iter().map(|(value, reason)| (format!("[{value}]"), reason)),
            );
            all
        }
        Allowed::Text | Allowed::Names | Allowed::Files => text(),
        Allowed::File => [text(), vec![("\"-\"".into(), "expected a file; only".into())]].concat(),
    }
}

fn refused(text: &str) -> String {
    let built = Plan::parse("p.toml", text).and_then(|plan| plan.build());
    built.err().unwrap_or_else(|| panic!("{text} is taken")).to_string()
}

#[test]
fn value_out_of_range_is_an_error_with_line_and_range() {
    for (heading, Key { name, allowed, .. }) in keys() {
        let table = heading.replace("NAME", "x");
        let before = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        for (value, requested) in wrong(allowed) {
            let found = refused(&format!("{before}{name} = {value}\n"));
            let column = name.len() + 4 + usize::from(value.starts_with('['));
            let place = format!("p.toml:{}:{column}: ", before.lines().count() + 1);
            let is_named = |place: &str| found.starts_with(place) && found.contains(&requested);
            assert!(is_named(&place) && !found.contains('\n'), "[{heading}] {name}: {found}");
            // Options cannot include files.
            if value.starts_with('[') || name == "include" {
                continue;
            }
            let value = value.trim_matches('"');
            let path = format!("{table}.{name}");
            let path = path.trim_start_matches('.');
            let plan = Plan::parse("p.toml", &before).unwrap().with(path, value, "--set");
            let found = plan.and_then(|plan| plan.build()).expect_err(path).to_string();
            let place = format!("--set {path}={value}: ");
            assert!(found.starts_with(&place) && found.contains(&requested), "{found}");
        }
    }
}

/// The tables of single ports.
const PORTS: [&str; 3] =
    ["hosts.NAME.link.ports.PEER", "nodes.NAME.ports.PEER", "bridges.NAME.ports.PEER"];

/// Returns the rows of docs/plan.md by table and key.
fn page() -> BTreeMap<(String, String), String> {
    let mut rows = BTreeMap::new();
    let mut tables: Vec<&str> = Vec::new();
    for line in include_str!("../../../../docs/plan.md").lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let headings = heading.split('`').skip(1).step_by(2);
            tables = headings.map(|table| table.trim_matches(['[', ']'])).collect();
            if tables.last() == Some(&"….ports.PEER") {
                tables.pop();
                tables.extend(PORTS);
            }
        } else if let Some((key, row)) = line.strip_prefix("| `").and_then(|l| l.split_once('`')) {
            for table in &tables {
                let table = if *table == "plan.toml" { "" } else { table };
                rows.insert((table.replace("PEER", "NAME"), key.to_owned()), row.to_owned());
            }
        }
    }
    rows
}

/// Returns the texts that a row must contain besides the meaning of its key. One sentence covers
/// all times without a range of their own.
fn range(allowed: Allowed) -> Vec<String> {
    match allowed {
        Allowed::Word(words) => words.iter().map(|word| format!("\"{word}\"")).collect(),
        Allowed::Number(_, most) if most == i64::MAX as u64 => Vec::new(),
        Allowed::Number(0, most) => vec![most.to_string()],
        Allowed::Number(least, most) | Allowed::Power(least, most) => {
            vec![least.to_string(), most.to_string()]
        }
        Allowed::NumberOrNone(_, most) => vec![format!("to {most}"), "\"none\"".into()],
        Allowed::Time(range) | Allowed::TimeIn(range, _) if range == SHORT || range == LONG => {
            Vec::new()
        }
        Allowed::Time((least, most)) | Allowed::TimeIn((least, most), _) => {
            vec![format!("{} to {}", time(least), time(most))]
        }
        Allowed::Bytes(least, most) => vec![bytes(least), bytes(most)],
        Allowed::Rate(least, most) | Allowed::FioRate(least, most) => vec![rate(least), rate(most)],
        Allowed::Size(_, words) => vec![words.into()],
        _ => Vec::new(),
    }
}

#[test]
fn the_page_describes_every_key_with_its_range() {
    let mut page = page();
    for (heading, Key { name, allowed, .. }) in keys() {
        let row = page.remove(&(heading.clone(), name.to_owned()));
        let row = row.unwrap_or_else(|| panic!("[{heading}] {name} has no row"));
        let elsewhere = ["| as above", "| as the plan's"].iter().any(|word| row.contains(word));
        for word in range(allowed).iter().filter(|_| !elsewhere) {
            assert!(row.contains(word), "[{heading}] {name}: {word} is not in {row}");
        }
    }
    assert!(page.is_empty(), "of keys that there are not: {page:?}");
}

/// A plan in which every key applies, with some transport and workload.
const PLAN: &str = r#"
    [hosts]
    h = { drives = ["d"] }
    g = { drives = ["e"] }
    [drive]
    namespaces = ["4MiB"]
    [drives]
    d = { node = "n" }
    e = { node = "m" }
    [nodes]
    n = {}
    m = {}
    [link]
    clock_walk = "1ppm"
    clock_priority = 1
    standby_priority = 2
    schedule = "l"
    express = [7]
    vlan = 1
    [bridges]
    s = { clock_walk = "1ppm", schedule = "l", express = [7], shapers = ["4 e", "5 e"] }
    z = { express = [7] }
    [cables]
    c = { a = "h", b = "s" }
    d = { a = "g", b = "s" }
    e = { a = "n", b = "s" }
    f = { a = "m", b = "s" }
    z = { a = "s", b = "z" }
    [schedules]
    l = { entries = ["S ff 1ms"], then = "n" }
    n = { entries = ["S ff 1ms"], base = "1000.03ms" }
    m = { entries = ["S ff 1ms"], base = "2s" }
    [shapers]
    e = {  }
    [clocks]
    standby = "on"
    [traffic]
    t = { from = "h", to = "n", interval = "1ms", priority = 4 }
    [flows]
    f = { from = "h", to = "n" }
    [streams.st]
    from = "h"
    to = "n"
    paths = ["s"]
    eliminate = ["n"]
    latent_difference = 5
    police = ["s fi"]
    [filters.fi]
    max_sdu = "1000B"
    entries = ["open 1ms"]
    rate = "2MB/s"
    burst = "8KiB"
    excess_rate = "2MB/s"
    excess_burst = "8KiB"
    [moves]
    m = { drive = "d", to = "g", at = "1ms" }
"#;

/// Returns values of a key as TOML, of which at least two must be valid.
fn right(allowed: Allowed) -> Vec<String> {
    match allowed {
        Allowed::Word(words) => words.iter().map(|word| format!("{word:?}")).collect(),
        Allowed::Number(least, most) => {
            [least, least + 1, most.min(1 << 40)].map(|n| n.to_string()).into()
        }
        Allowed::NumberOrNone(..) => vec!["7".into(), "\"none\"".into()],
        Allowed::Power(least, most) => vec![least.to_string(), format!("\"{}B\"", most / 2)],
        Allowed::Time((_, most)) | Allowed::TimeIn((_, most), _) => {
            ["50us", "70us", "3ms", &time(most)].map(|time| format!("{time:?}")).into()
        }
        Allowed::Bytes(..) | Allowed::Size(..) => {
            ["128B", "192B", "4KiB", "1MiB", "32MiB"].map(|size| format!("{size:?}")).into()
        }
        Allowed::Rate(..) | Allowed::FioRate(..) => vec!["\"1MB/s\"".into(), "\"8Gb/s\"".into()],
        Allowed::File => vec!["\"x\"".into(), "\"y\"".into()],
        Allowed::Text | Allowed::Names => {
            ["h", "g", "n", "m", "d", "l", "none"].map(|n| format!("{n:?}")).into()
        }
        Allowed::Form(_) => [
            "none",
            "rate=5G",
            "per-tlp",
            "adaptive",
            "1G",
            "10G",
            "1%",
            "2ppm",
            "4KiB",
            "5KiB",
            "1us",
            "-1us",
            "10ppm",
            "10ppb",
            "250ms",
            "500ms",
            "02:00:00:00:ff:01",
            "02:00:00:00:ff:02",
            "01:00:00:00:ff:01",
            "01:00:00:00:ff:02",
        ]
        .map(|text| format!("{text:?}"))
        .into(),
        Allowed::List(Allowed::Number(least, _)) => {
            let other = |number: u64| format!("[{}{}]", format!("{least}, ").repeat(7), number);
            vec!["[]".to_owned(), "[5]".to_owned(), other(*least), other(least + 1)]
        }
        Allowed::List(_) => {
            let texts = [
                "4KiB", "1ms", "1ms..2ms", "1ms 5G", "S ff 1ms", "S ff 2ms", "3 e", "1s -1ms",
                "poison",
            ];
            let texts = texts.map(|text| format!("[{text:?}]"));
            ["[]".to_owned(), "[5]".to_owned()].into_iter().chain(texts).collect()
        }
        Allowed::Table(_) | Allowed::Named(_) | Allowed::Values(_) | Allowed::Files => Vec::new(),
    }
}

/// Keys that have other tests because they require other tables.
const ELSEWHERE: [&str; 40] = [
    "calibration",
    "workload.time_based",
    "workload.thinktime_blocks",
    "workload.timing",
    "hosts.h.drives",
    "hosts.h.drive_reservation",
    "hosts.h.workload.time_based",
    "hosts.h.workload.thinktime_blocks",
    "hosts.h.workload.timing",
    "hosts.h.second",
    "hosts.h.count",
    "link.tlp_extra",
    "link.paths",
    "drive.count",
    "drive.node",
    "nodes.n.count",
    "nodes.n.switch",
    "nodes.n.second",
    "bridges.s.mode",
    "cables.c.a",
    "cables.c.b",
    "shapers.e.algorithm",
    "shapers.e.weight",
    "traffic.t.paths",
    "traffic.t.replay",
    "traffic.t.repeat",
    "traffic.t.rate",
    "traffic.t.deviation",
    "traffic.t.spread",
    "traffic.t.least",
    "traffic.t.on",
    "traffic.t.off",
    "traffic.t.deadlines",
    "streams.st.traffic",
    "streams.st.to",
    "streams.st.priority",
    "streams.st.numbers",
    "streams.st.eliminate",
    "moves.m.drive",
    "variants.e.set",
];

/// Shapers with all keys of their algorithm.
const KINDS: [&str; 4] = [
    "algorithm = \"cbs\", idle_slope = \"2MB/s\"",
    "algorithm = \"ats\", rate = \"2MB/s\", burst = \"8KiB\"",
    "algorithm = \"ets\", weight = 50",
    "algorithm = \"cqf\", cycle = \"1ms\"",
];

/// Checks that every key is read: different values give different configurations.
#[test]
fn every_key_reaches_the_simulation() {
    let workloads = ["rw = \"randrw\"", "dd = \"read\"", "configreads = 2"];
    let plan = |transport: &str, workload: &str, shaper: &str| {
        let own = format!("[workload]\n{workload}\n[hosts.h.workload]\n{workload}");
        let text = PLAN.replace("h = { drives = [\"d\"] }", "h.drives = [\"d\"]");
        let text = text.replace("[link]", "[link]\n    processor = \"serial\"");
        let mut text = text.replace("e = {  }", &format!("e = {{ {shaper} }}"));
        if shaper.contains("ats") {
            // Only this shaper has a committed rate.
            let committed = "priority = 4, committed_rate = \"1kB/s\", committed_burst = \"64B\"";
            text = text.replace("priority = 4", committed);
        }
        Plan::parse("p.toml", &format!("transport = \"{transport}\"\n{text}{own}")).unwrap()
    };
    let plans: Vec<Plan> = TRANSPORTS[1..]
        .iter()
        .flat_map(|transport| workloads.map(|workload| plan(transport, workload, "")))
        .chain(KINDS.map(|shaper| plan("tcp", workloads[0], shaper)))
        .collect();
    let mut missing = Vec::new();
    for (heading, Key { name, allowed, .. }) in keys() {
        let table = match heading.split_once(".NAME") {
            Some((parts, rest)) => {
                let names = ["h", "n", "s", "c", "l", "t", "m", "st", "fi", "f", "e"];
                let tables = [
                    "hosts",
                    "nodes",
                    "bridges",
                    "cables",
                    "schedules",
                    "traffic",
                    "moves",
                    "streams",
                    "filters",
                    "flows",
                ];
                let at = tables.iter().position(|table| *table == parts).unwrap_or(10);
                let peer = if parts == "bridges" { "h" } else { "s" };
                format!("{parts}.{}{}", names[at], rest.replace("NAME", peer))
            }
            None => heading,
        };
        let path = format!("{table}.{name}");
        let path = path.trim_start_matches('.');
        let differs = |plan: &Plan| {
            let base = format!("{:?}", plan.build().unwrap_or_else(|error| panic!("{error}")));
            let other = |value: &String| {
                let mut plan = plan.clone();
                let origin = Origin::Option(path.to_owned());
                let keys_of_path = path.split('.');
                let at =
                    keys_of_path.fold(&mut plan.value, |at, key| at.member(key, &origin).unwrap());
                let set = keys::parse("v.toml", &format!("v = {value}")).unwrap();
                *at = set.entries().unwrap()[0].value.clone();
                plan.build().is_ok_and(|planned| format!("{planned:?}") != base)
            };
            right(allowed).iter().any(other)
        };
        let only_refuses = ["gate_grain", "reserve", "reservable"].contains(&name);
        if !right(allowed).is_empty() && !only_refuses && !plans.iter().any(differs) {
            missing.push(path.to_owned());
        }
    }
    assert_eq!(missing, ELSEWHERE);
}

/// Values that are invalid because of another key.
#[test]
fn value_that_another_key_excludes_is_an_error() {
    let reads = "[workload]\nconfigreads = 1\n";
    for (before, line, requested) in [
        ("[workload]\nrw = \"read\"\n", "rwmixread = 50", "'rwmixread' applies only"),
        ("[workload]\nrw = \"read\"\n", "nsid = 2", "a drive has no namespace 2"),
        ("[workload]\nrw = \"read\"\n", "stripe = \"1000B\"", "a multiple of 512B, up to 1GiB"),
        ("[workload]\nreplay = \"x\"\n", "timing = \"late\"", "There are: recorded, asap"),
        ("[workload]\nrw = \"read\"\n", "size = 5", "size: 5 bytes are less than iodepth"),
        ("[link]\n", "burst = \"8Mb/s\"", "expected a size such as 4096, 64k, 64KiB"),
        ("[pcie]\n", "width = 3", "1, 2, 4, 8 or 16 lanes"),
        ("[link]\n", "schedule = \"x\"", "There are: none"),
        ("[nodes.n]\n", "schedule = \"x\"", "There are: none"),
        ("[bridges.s]\n", "schedule = \"x\"", "There are: none"),
        ("[link]\n", "burst = \"5B\"", "(the largest TLP at MPS 256) to 1MiB"),
        ("[link]\n", "burst = \"2MiB\"", "(the largest TLP at MPS 256) to 1MiB"),
        ("[link]\n", "keepalive = \"2s\"", "loss_limit is above keepalive, 1us to 3600s"),
        ("[link]\n", "max_frame = \"2MiB\"", "bytes for the largest TLP, to 1MiB"),
        ("[traffic.t]\ninterval = \"1s\"\nto = \"host\"\n", "from = \"x\"", "There are: host"),
        ("[traffic.t]\nfrom = \"host\"\n", "to = \"x\"", "There are: host, device"),
        (
            "[traffic.t]\ninterval = \"1s\"\nfrom = \"host\"\nto = \"device\"\n",
            "deviation = \"1us\"",
            "'deviation' and pattern = \"normal\" go together",
        ),
        ("transport = \"raw\"\n[link]\n", "tlp_extra = \"1B\"", "requires 'frame_extra'"),
        ("[drives.d]\n", "write_buffer = \"1B\"", "0B, or a page at least, up to 65536GiB"),
        ("[drives.d]\n", "node = \"x\"", "There are: device"),
        ("[drives.d]\n", "namespaces = [\"4KiB\", \"100B\"]", "4096B to 65536GiB"),
    ] {
        let text = format!("{before}{line}\n");
        let reads = if before.contains("[workload]") { "" } else { reads };
        let found = refused(&format!("{text}{reads}"));
        let place = format!("p.toml:{}:", text.lines().count());
        assert!(found.starts_with(&place) && found.contains(requested), "{line}: {found}");
    }
}

#[test]
fn key_of_another_transport_is_an_error() {
    for (text, requested) in [
        ("[link]\nmtu = \"9000B\"", "p.toml:2:7: 'mtu' applies only to transport raw; found tcp"),
        (
            "congestion = \"swift\"",
            "p.toml:1:14: 'congestion' applies only to transport raw; found tcp",
        ),
        (
            "transport = \"raw\"\n[link]\nburst = \"2KiB\"",
            "p.toml:3:9: 'burst' applies only to transport tcp, tsn; found raw",
        ),
        (
            "transport = \"raw\"\n[nodes.n]\nack_delay = \"1us\"",
            "p.toml:3:13: 'ack_delay' applies only to transport tcp, tsn; found raw",
        ),
        (
            "transport = \"direct\"\naggregation = \"per-tlp\"",
            "p.toml:2:15: 'aggregation' applies only to transport tcp, tsn, raw; found direct",
        ),
        (
            "transport = \"direct\"\n[drive]\nnode = \"x\"",
            "p.toml:3:8: 'node' applies only to transport tcp, tsn, raw; found direct",
        ),
        (
            "transport = \"direct\"\n[link]\npropagation = \"2s\"",
            "p.toml:3:15: propagation: 0ns to 1s; found 2s",
        ),
    ] {
        assert_eq!(refused(&format!("{text}\n[workload]\nconfigreads = 1\n")), requested);
    }
}
