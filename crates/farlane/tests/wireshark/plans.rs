//! Captures of all wires of the plans in `plans/`. In any order of packets, the dissector reports
//! no error in a correct frame.

use std::path::{Path, PathBuf};
use std::{fs, thread};

use crate::support::program::{document, plan_of, run, text};
use crate::support::tshark::repository;
use crate::support::{Tshark, folder};
use crate::wireshark::sharkd::Sharkd;

/// Keys that make a plan short. Plans that are not listed run unchanged.
const SHORT: [(&str, &[&str]); 19] = [
    ("mesh-of-rings", &["runtime=200us", "parameters.side=2"]),
    ("vehicle", &["workload.runtime=300us"]),
    ("saihu-demo", &["runtime=5ms"]),
    ("dual-homed-drive", &["workload.runtime=500us"]),
    ("switch-node", &["workload.size=64KiB"]),
    ("shapers", &["workload.size=64KiB"]),
    ("direct", &["workload.count=4"]),
    ("live", &["workload.size=64KiB"]),
    ("tcp", &["workload.count=20"]),
    ("tsn", &["workload.count=20"]),
    ("handover", &["hosts.one.workload.runtime=1ms", "moves.handover.at=500us"]),
    (
        "incast",
        &["nodes.box.count=3", "drives.ssd.count=3", "workload.numjobs=3", "workload.runtime=50us"],
    ),
    ("scale-out", &["hosts.host.count=2", "workload.size=128KiB", "workload.runtime=50us"]),
    ("industrial-cell", &["workload.size=32KiB"]),
    ("zonal-vehicle", &["workload.size=8KiB", "hosts.cabin.workload.size=64KiB"]),
    // Without the refused writes, which the dissector reports.
    (
        "shared-vehicle",
        &[
            "hosts.front.workload.number_ios=4",
            "hosts.rear.workload.number_ios=8",
            "hosts.cabin.workload.number_ios=4",
            "hosts.cabin.workload.rwmixread=100",
        ],
    ),
    ("redundant-drive", &["workload.runtime=1ms", "hosts.host.deadline=1s"]),
    ("babbling-camera", &["workload.runtime=3ms", "hosts.host.deadline=1s"]),
    ("reordered-tcp", &["workload.runtime=1ms"]),
];

/// A session over two paths at the same time, which the dissector does not follow
/// (`docs/wireshark.md`, "Not done").
const TWO_PATHS: &str = "two-paths";

/// Keys for raw Ethernet. The frames of these plans have priorities, so they need tags.
const RAW: [&str; 2] = ["transport=raw", "link.vlan=1"];

/// Options of tshark: one pass; two passes, of which the first has no fields; two passes with
/// fields.
const PASSES: [&[&str]; 3] = [&[], &["-2"], &["-2", "-Y", "farlane"]];

/// Runs a plan. Returns the capture, and the number of commands that the hosts issued. `None` if
/// the plan cannot be captured with this transport.
fn simulate(folder: &Path, plan: &str, raw: bool) -> Option<(PathBuf, u64)> {
    let name = format!("{plan}-{}", if raw { "raw" } else { "as-it-is" });
    let capture = folder.join(format!("{name}.pcapng"));
    let traces = folder.join(&name);
    fs::create_dir(&traces).unwrap();
    let (path, trace) = (plan_of(plan), traces.join("run"));
    let [capture_text, trace_text] = [&capture, &trace].map(|path| path.to_str().unwrap());
    let mut arguments = vec!["sim", &path, "--pcapng", capture_text, "--trace", trace_text];
    let short = SHORT.iter().find(|(known, _)| *known == plan);
    let keys = short.iter().flat_map(|(_, keys)| *keys).chain(RAW.iter().filter(|_| raw));
    keys.for_each(|key| arguments.extend(["--set", key]));
    let output = run(&arguments);
    let log = String::from_utf8_lossy(&output.stderr);
    // Without hosts there are no commands, with any transport.
    let without = ["the plan has no Ethernet to capture", "the plan has no host", "requires hosts"];
    if without.iter().any(|said| log.contains(said)) {
        return None;
    }
    assert!(output.status.success(), "{name}: {log}");
    Some((capture, commands(&traces)))
}

/// Returns the number of commands in the traces of all hosts, by the analyser.
fn commands(traces: &Path) -> u64 {
    let hosts = fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    let is_below = |path: &Path| {
        let name = path.to_string_lossy();
        name.contains(".device") || name.contains(".switch")
    };
    let hosts = hosts.filter(|path| !is_below(path));
    let total = |path: PathBuf| {
        document(&["trace", &text(&path), "--list", "--json"])["total"].as_u64().unwrap()
    };
    hosts.map(total).sum()
}

/// Functions that a host looks for and does not find on a bus with one port: device numbers 1 to 31.
const PROBES: u32 = 31;

/// Returns the lines of tshark's expert statistics under Errors and Warns, except lines about TCP
/// itself, such as connections that are reset, and about functions that a host looks for behind a
/// switch node.
fn complaints(statistics: &str) -> Vec<&str> {
    let mut wrong = false;
    let mut found = Vec::new();
    for line in statistics.lines() {
        if let Some((title, _)) = line.split_once(" (") {
            match title {
                "Errors" | "Warns" => wrong = true,
                "Notes" | "Chats" => wrong = false,
                _ => {}
            }
        }
        let counted = line.trim_start().starts_with(|first: char| first.is_ascii_digit());
        let probes = counted && line.contains("Unsupported Request");
        let number = line.split_whitespace().next().filter(|_| probes);
        let is_probe = number.is_some_and(|number| number.parse::<u32>().unwrap() % PROBES == 0);
        // A host whose drive has moved away tries again, and is rejected.
        let rejects = line.contains("Turned down");
        if wrong && counted && !line.contains(" TCP  ") && !is_probe && !rejects {
            found.push(line);
        }
    }
    found
}

/// Returns the number that `io,stat` counted in the whole capture.
fn counted(statistics: &str) -> u64 {
    let row = statistics.lines().find(|line| line.contains("<>")).expect("a row of io,stat");
    let last = row.split('|').rev().map(str::trim).find(|cell| !cell.is_empty());
    last.and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("{row}"))
}

/// Checks a capture of tunnels, `tunnels` of which each command passes.
fn check(capture: &Path, commands: u64, tunnels: u64) {
    // Counts each submission queue entry where it is seen first.
    let count = "io,stat,0,COUNT(nvme_pcie.sqe.cid)nvme_pcie.sqe.cid && !farlane.seen_in";
    for pass in PASSES {
        let mut options = pass.to_vec();
        options.extend(["-q", "-z", "expert", "-z", count]);
        let statistics = Tshark::ready().run(capture, &options);
        let name = format!("{} {pass:?}", capture.display());
        assert_eq!(complaints(&statistics), [""; 0], "{name}");
        assert_eq!(counted(&statistics), commands * tunnels, "{name}: commands");
        assert!(!statistics.contains("Lua Error"), "{name}");
    }
}

fn check_plan(folder: &Path, plan: &str) -> usize {
    let captures = [false, true].into_iter().filter_map(|raw| simulate(folder, plan, raw));
    let tunnels = if plan == "switch-node" { 2 } else { 1 };
    captures.map(|(capture, commands)| check(&capture, commands, tunnels)).count()
}

#[test]
fn no_plan_has_errors_in_its_capture() {
    let folder = folder::kept("wireshark-plans");
    let plans = fs::read_dir(repository().join("plans")).unwrap();
    let names = plans.map(|entry| entry.unwrap().path());
    let names = names.filter(|path| path.extension() == Some("toml".as_ref()));
    let mut names: Vec<String> =
        names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.retain(|name| name != TWO_PATHS);
    names.sort();
    Tshark::ready();
    // One run of tshark uses one core, so two run at the same time.
    let (odd, even): (Vec<_>, Vec<_>) = names.iter().enumerate().partition(|(at, _)| at % 2 == 1);
    let all = |plans: Vec<(usize, &String)>| -> usize {
        plans.into_iter().map(|(_, plan)| check_plan(&folder, plan)).sum()
    };
    let captures = thread::scope(|scope| {
        let other = scope.spawn(|| all(odd));
        all(even) + other.join().unwrap()
    });
    // Without a capture are the plan without a wire, unchanged, and the four plans without hosts,
    // with both transports.
    assert_eq!(captures, 2 * names.len() - 9);
}

/// Packets are decoded as in Wireshark: once in order, then in any order.
#[test]
fn packets_decode_in_any_order() {
    let folder = folder::kept("wireshark-clicks");
    for raw in [false, true] {
        let (capture, _) = simulate(&folder, "industrial-cell", raw).unwrap();
        let mut sharkd = Sharkd::start(&folder, &capture);
        let packets = sharkd.packets();
        // Packets 0, k, 2k, and so on, modulo a prime above the last packet, in both directions.
        let order = |step: u64| (0..200).map(move |i| 1 + i * step % 10_007 % packets);
        let mut decoded = 0;
        let first: Vec<_> = order(7919).map(|number| (number, sharkd.packet(number))).collect();
        for (number, shown) in first.iter().rev() {
            assert!(!shown.contains(r#""s":"Error""#), "packet {number}: {shown}");
            assert!(!shown.contains(r#""s":"Warning""#), "packet {number}: {shown}");
            assert!(!shown.contains("Lua Error"), "packet {number}: {shown}");
            decoded += usize::from(shown.contains("farlane tunnel, "));
            assert_eq!(sharkd.packet(*number), *shown, "packet {number}, again");
        }
        assert!(decoded > 20, "{}: {decoded} packets are decoded", capture.display());
    }
}
