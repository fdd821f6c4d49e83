//! `--trace` and `farlane trace`: traces of real runs, with every option.

use crate::cli::record::plan;
use crate::support::program::{
    device, fails, is_wrong_usage, json, page, ping, prints, scratch, succeeds, text,
};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Traces of a demo: of host, switch and device.
struct Demo {
    folder: PathBuf,
    files: [String; 3],
}

fn demo() -> Demo {
    let folder = scratch("demo");
    let host = text(&folder.join("run.trace"));
    let to = format!("{host},payload=all");
    // The demo may warn that the disk is too slow for the whole trace.
    succeeds(&["demo", "--count", "100", "--cascade", "--trace", &to]);
    let files = [host.clone(), format!("{host}.switch"), format!("{host}.device0")];
    Demo { folder, files }
}

#[test]
fn a_demo_leaves_traces_that_every_option_takes() {
    let demo = demo();
    let [host, switch, device] = demo.files.each_ref().map(String::as_str);
    let document = json(&["trace", device, switch, host, "--json"]);
    the_document_adds_up(&document);
    texts(host, switch, device);
    pages(&demo);
    capture(&demo);
    sums_are_exact(&json(&["trace", switch, "--json"]));
    let alone = json(&["trace", device, "--json"]);
    assert_eq!(alone["nodes"][0]["role"], "device");
    sums_are_exact(&alone);
    assert!(alone["total"].as_u64() > Some(200), "a device's trace will do");
}

/// Checks that times add up, and that nodes of one process have equal clocks.
fn the_document_adds_up(document: &Value) {
    let nodes = document["nodes"].as_array().unwrap();
    let roles: Vec<&str> = nodes.iter().map(|node| node["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["host", "switch", "device"]);
    for node in &nodes[1..] {
        let clock = &node["clock"];
        let offset = clock["offset_ns"].as_i64().unwrap().unsigned_abs();
        let wrong = clock["uncertainty_ns"].as_u64().unwrap();
        assert!(offset <= wrong && wrong < 1_000_000, "{clock}");
        assert_eq!((&clock["contradictory"], &node["cut"]), (&false.into(), &false.into()));
    }
    assert_eq!(document["unreadable"], 0);
    let lost: u64 = nodes.iter().map(|node| node["lost"].as_u64().unwrap()).sum();
    if lost == 0 {
        assert_eq!(document["troubles"], serde_json::json!({}));
    }
    let commands = document["commands"].as_array().unwrap();
    assert!(commands.len() > 200);
    sums_are_exact(document);
    let mut whole = 0;
    for command in commands.iter().filter(|command| command["duration_ns"].is_u64()) {
        let lanes = command["lanes"].as_array().unwrap();
        whole += usize::from(lanes.iter().all(|lane| lane["lane"] != "not_observed"));
    }
    assert!(whole * 10 > commands.len() * 9 || lost > 0, "{whole} of {}", commands.len());
}

/// Checks that the drive recorded fetch, media access and completion of every I/O command, in this
/// order and within the times of the command's TLPs.
fn drives_tell(document: &Value) {
    let lost = document["nodes"][0]["lost"] != 0;
    let mut compared = 0;
    for command in document["commands"].as_array().unwrap() {
        let (false, Some(total)) = (command["queue"] == 0, command["duration_ns"].as_i64()) else {
            continue;
        };
        let drive = &command["in_drive"];
        if lost && !drive["completed_ns"].is_i64() {
            continue;
        }
        assert!(drive.is_object(), "{command:#}");
        let ns = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{command:#}"));
        let start = ns(&command["start_ns"]);
        let mut times = vec![start, ns(&drive["fetched_ns"])];
        for access in drive["media"].as_array().unwrap() {
            assert_eq!(access["ok"], true);
            times.extend([ns(&access["from_ns"]), ns(&access["to_ns"])]);
        }
        times.extend([ns(&drive["completed_ns"]), start + total]);
        assert!(times.len() >= 6 && times.is_sorted(), "{times:?} of {command:#}");
        let sum = |list: &str, key: &str, name: &str| -> u64 {
            let parts = command[list].as_array().unwrap().iter();
            let parts = parts.filter(|part| name.is_empty() || part[key] == name);
            parts.map(|part| part["ns"].as_u64().unwrap()).sum()
        };
        assert_eq!(sum("parts", "part", ""), sum("lanes", "lane", "drive"), "{command:#}");
        assert!(sum("parts", "part", "media") > 0);
        compared += 1;
    }
    assert!(compared > 200, "{compared} commands");
}

/// Checks that `--sort`, `--slower-than` and `--failed` select among the commands of the document
/// `all`.
fn some_are_chosen(host: &str, all: &Value) {
    let number = |command: &Value, key: &str| command[key].as_u64().unwrap_or(0);
    let commands = all["commands"].as_array().unwrap();
    let chosen = |more: &[&str]| {
        let document = json(&[&["trace", host, "--json"], more].concat());
        let numbers = document["commands"].as_array().unwrap().iter();
        let numbers: Vec<u64> = numbers.map(|one| number(one, "number")).collect();
        (document["selected"].as_u64().unwrap(), numbers)
    };
    let tlps = |one: &Value| one["steps"].as_array().unwrap().len() as u64;
    let duration = |one: &Value| number(one, "duration_ns");
    for (key, value) in [("duration", &duration as &dyn Fn(&Value) -> u64), ("tlps", &tlps)] {
        let mut order: Vec<&Value> = commands.iter().collect();
        order.sort_by_key(|one| (std::cmp::Reverse(value(one)), number(one, "number")));
        let largest: Vec<u64> = order.iter().take(5).map(|one| number(one, "number")).collect();
        assert_eq!(chosen(&["--sort", key, "--limit", "5"]), (commands.len() as u64, largest));
    }
    let mut durations: Vec<u64> = commands.iter().map(duration).collect();
    durations.sort_unstable();
    let least = durations[durations.len() / 2];
    let slower = durations.iter().filter(|ns| **ns > least).count() as u64;
    assert!(slower > 0);
    assert_eq!(chosen(&["--slower-than", &format!("{least}ns")]).0, slower);
    let failed = |one: &&Value| one["status"] != 0;
    assert_eq!(chosen(&["--failed"]).0, commands.iter().filter(failed).count() as u64);
}

/// Checks that the default trace has no user data, and that the analyser explains all TLPs without
/// them.
fn payloads_are_left_out(document: &Value) {
    let nodes = document["nodes"].as_array().unwrap();
    if nodes.iter().all(|node| node["lost"] == 0) {
        assert_eq!(document["troubles"], serde_json::json!({}));
    }
    for command in document["commands"].as_array().unwrap() {
        let io = command["queue"] != 0
            && ["read", "write"].contains(&command["command"].as_str().unwrap());
        let left_out = if io { command["blocks"].as_u64().unwrap() * 512 } else { 0 };
        assert_eq!(command["data_unrecorded"], left_out, "{command}");
        assert_eq!(command["data_hash"].is_string(), io, "{command}");
    }
}

#[test]
fn drive_records_every_command() {
    let folder = scratch("events");
    let host = text(&folder.join("run.trace"));
    succeeds(&["demo", "--count", "100", "--trace", &host]);
    let device = format!("{host}.device0");
    let alone = json(&["trace", &device, "--json"]);
    drives_tell(&alone);
    sums_are_exact(&alone);
    let both = json(&["trace", &host, &device, "--json"]);
    sums_are_exact(&both);
    payloads_are_left_out(&both);
    some_are_chosen(&host, &json(&["trace", &host, "--json"]));
    let media = |command: &&Value| command["in_drive"]["media"].as_array().is_some();
    assert!(both["commands"].as_array().unwrap().iter().filter(media).count() > 200);
    let states: Vec<&str> =
        alone["lifecycle"].as_array().unwrap().iter().filter_map(|t| t["state"].as_str()).collect();
    assert!(states.windows(2).any(|pair| pair == ["enabled", "ready"]), "{states:?}");
    let shown = prints(&["trace", &device, "--opcode", "read", "--limit", "1"]);
    for part in
        ["media read", "media done", "in the drive, in us: controller", "Life of the drives"]
    {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    assert!(prints(&["trace", &device, "--stats"]).contains("in the drive: controller"));
    let (svg, perfetto) = (text(&folder.join("read.svg")), text(&folder.join("perfetto.json")));
    prints(&["trace", &host, &device, "--opcode", "read", "--svg", &svg, "--perfetto", &perfetto]);
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.contains("class=\"media\"") && picture.contains("access to the media"));
    let events = std::fs::read_to_string(&perfetto).unwrap();
    assert!(events.contains("media read") && events.contains("\"name\":\"media\""));
}

fn sums_are_exact(document: &Value) {
    for command in document["commands"].as_array().unwrap() {
        let Some(total) = command["duration_ns"].as_u64() else { continue };
        for list in ["segments", "lanes"] {
            let parts = command[list].as_array().unwrap();
            let sum: u64 = parts.iter().map(|part| part["ns"].as_u64().unwrap()).sum();
            assert_eq!(sum, total, "{list} of {command:#}");
        }
    }
}

fn texts(host: &str, switch: &str, device: &str) {
    let shown = prints(&["trace", host, switch, device, "--opcode", "write", "--limit", "2"]);
    for part in [
        "NVMe transaction view of command",
        "Link view",
        "data completion",
        "by stage, in us: host",
        "+ switch",
        "What stands out",
        "+/-",
        "100 %  total",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let shown = prints(&["trace", host, "--stats"]);
    assert!(shown.contains("Read 4 KiB") && shown.contains("Write 128 KiB"), "{shown}");
    assert!(shown.contains("doorbell to entry fetch"));
    let list = prints(&["trace", host, "--list", "--limit", "5"]);
    assert!(list.contains("Identify") && list.contains("more of"), "{list}");
}

#[test]
fn every_filter_selects() {
    let folder = scratch("filters");
    let work = "rw = \"randrw\"\niodepth = 4\nsize = \"1MiB\"\n";
    // With push the drive sends no read requests, so no TLP has a tag.
    let record = "[host]\npush = \"off\"\n[record]\ntrace = \"s.trace\"\n";
    let plan = plan(&folder, "p.toml", &format!("[workload]\n{work}{record}"));
    prints(&["sim", &plan]);
    let host = &text(&folder.join("s.trace"));
    let all = json(&["trace", host, "--json", "--limit", "10"]);
    let total = all["total"].as_u64().unwrap();
    let some = |more: &[&str]| {
        let document = json(&[&["trace", host, "--json"], more].concat());
        assert_eq!(document["total"].as_u64(), Some(total));
        let selected = document["selected"].as_u64().unwrap();
        assert!(selected < total, "{more:?}");
        (selected, document["commands"].as_array().unwrap().clone())
    };
    let (admin, commands) = some(&["--queue", "0"]);
    assert!(admin >= 3 && commands.iter().all(|command| command["queue"] == 0));
    let (reads, _) = some(&["--opcode", "read"]);
    let (writes, _) = some(&["--opcode", "0x01", "--queue", "1"]);
    assert!(reads > 100 && writes > 100);
    let (one, commands) = some(&["--command", "5"]);
    assert_eq!((one, &commands[0]["number"]), (1, &5.into()));
    let (_, commands) = some(&["--lba", "64+64", "--opcode", "read"]);
    assert!(commands.iter().all(|command| command["slba"].as_u64().unwrap() <= 127));
    let address = commands[0]["steps"][0]["address"].to_string();
    assert!(some(&["--address", &address]).0 > 100, "the doorbell of the queue");
    let tag = commands[0]["steps"][1]["tag"].to_string();
    assert!(some(&["--tag", &tag]).0 > 0);
    let start = commands[0]["start_ns"].as_u64().unwrap();
    let at = format!("{start}ns");
    let (during, _) = some(&["--from", &at, "--to", &at]);
    assert!((1..100).contains(&during));
    assert_eq!(some(&["--cid", "65535"]).0, 0);
    let (_, none) = some(&["--drive", "7f:00.0"]);
    assert!(none.is_empty());
}

/// Checks a diagram, a file for Perfetto and a report of one run.
fn pages(demo: &Demo) {
    let [host, switch, device] = demo.files.each_ref().map(String::as_str);
    let names = ["read.svg", "perfetto.json", "report.html"];
    let [svg, perfetto, html] = names.map(|name| text(&demo.folder.join(name)));
    let reads = ["trace", host, switch, device, "--opcode", "read"];
    let pages = ["--svg", &svg, "--perfetto", &perfetto, "--html", &html, "--stats"];
    prints(&[&reads[..], &pages].concat());
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("frame-label"));
    for lane in ["host", "upstream", "network", "switch", "downstream", "drive"] {
        assert!(picture.contains(&format!(">{lane}</text>")), "no {lane}");
    }
    let events: Value = serde_json::from_slice(&std::fs::read(&perfetto).unwrap()).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let phases = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(phases("X") > 2000 && phases("C") > 400 && phases("M") > 5);

    let report = page(&html);
    let document = json(&[&reads[..], &["--json", "--limit", "0"]].concat());
    assert!(!document["stats"].as_array().unwrap().is_empty());
    for kind in document["stats"].as_array().unwrap() {
        let (name, n) = (kind["kind"].as_str().unwrap(), &kind["latency"]["n"]);
        let row = format!("<td class=\"l\">{name}</td><td>{n}</td>");
        assert!(report.contains(&row), "no row {row}");
    }
    for part in ["Distributions", "where the time passes", "The median", "The worst", "± "] {
        assert!(report.contains(part), "no {part}");
    }
    assert!(report.matches("class=\"sequence\"").count() == 2);
    assert!(!report.contains("https:"), "leads outside");
    let out = text(&demo.folder.join("none.html"));
    prints(&["trace", host, "--html", &out, "--queue", "77"]);
    let empty = page(&out);
    assert!(empty.contains("0 of ") && empty.contains("What stands out"), "nothing fits");
}

fn capture(demo: &Demo) {
    let host = demo.files[0].as_str();
    let out = text(&demo.folder.join("run.pcapng"));
    let shown = prints(&["trace", host, "--pcapng", &out, "--from", "0", "--limit", "0"]);
    let document = json(&["trace", host, "--json", "--limit", "0"]);
    let line = format!("{} TLPs in the capture, 0 of them cut", document["nodes"][0]["tlps"]);
    assert!(shown.contains(&line), "no '{line}' in {shown}");
    assert_eq!(std::fs::read(&out).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    fails(&["trace", host, "--pcapng", "/nowhere/x"], &["cannot write /nowhere/x"]);
}

#[test]
fn a_killed_node_leaves_a_trace() {
    let folder = scratch("killed");
    let file = text(&folder.join("device.trace"));
    let (node, address) = device("ram=1M", &["--trace", &file]);
    ping(&address, "50");
    // A node writes its records to the file within a tenth of a second.
    std::thread::sleep(Duration::from_millis(400));
    drop(node);
    let document = json(&["trace", &file, "--json"]);
    let device = &document["nodes"][0];
    assert_eq!((&device["role"], &device["parent"]), (&"device".into(), &Value::Null));
    // Each configuration read of ping is a request and a completion.
    assert_eq!(device["tlps"], 2 * (50 + 6));
    assert_eq!(document["counters"]["config"], 50 + 6);
}

#[test]
fn ctrl_c_closes_a_trace_and_a_ring_stays_small() {
    let folder = scratch("ring");
    let file = text(&folder.join("device.trace"));
    let to = format!("{file},ring=128K");
    let (mut node, address) = device("ram=1M", &["--trace", &to]);
    ping(&address, "20000");
    assert!(node.interrupt().success());
    let size = std::fs::metadata(&file).unwrap().len();
    assert!((200_000..300_000).contains(&size), "{size} bytes");
    let document = json(&["trace", &file, "--json"]);
    // The middle is missing. A chunk of the lap before may remain at the end of the ring, where the
    // last lap ended earlier: then records are missing on both sides of it.
    let gaps = document["nodes"][0]["gaps"].as_u64().unwrap();
    assert!((1..=2).contains(&gaps), "{gaps} gaps");
    assert_eq!(document["troubles"]["records missing in the trace"]["count"], gaps);
}

#[test]
fn mistakes_are_named() {
    let folder = scratch("mistakes");
    let other = text(&folder.join("other"));
    std::fs::write(&other, "no trace").unwrap();
    for (arguments, parts) in [
        (&["trace", &other][..], &[other.as_str(), "is not a farlane trace"][..]),
        (&["trace", "/nowhere/x"], &["/nowhere/x", "No such file"]),
        (&["demo", "--trace", "/nowhere/x"], &["cannot write /nowhere/x", "No such file"]),
    ] {
        fails(arguments, parts);
    }
    for arguments in [
        &["trace"][..],
        &["trace", "x", "--from", "5"],
        &["trace", "x", "--lba", "9..8"],
        &["trace", "x", "--drive", "3"],
        &["trace", "x", "--list", "--stats"],
        &["demo", "--trace", "x,ring=1"],
    ] {
        is_wrong_usage(arguments);
    }
}
