//! Links whose connections are cut under load.

use crate::support::cutter::{Cutter, Path};
use crate::support::program::{fails, farlane, is_wrong_usage, node, parsed, scratch};
use crate::support::{ANY, BLOCK, Drive, HostNode, Node, Process, pattern};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Cuts of both kinds, in ms.
const CUTS: [(Path, u64); 10] = [
    (Path::Reset, 0),
    (Path::Silent, 100),
    (Path::Reset, 150),
    (Path::Silent, 1_200),
    (Path::Reset, 5),
    (Path::Silent, 30),
    (Path::Reset, 900),
    (Path::Silent, 850),
    (Path::Reset, 40),
    (Path::Silent, 400),
];

/// Runs verified reads and writes with `options` over a path that is cut again and again; returns
/// the results.
fn verified(name: &str, options: &[&str]) -> Value {
    let folder = scratch(name);
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &[]);
    let cutter = Cutter::start(device.address());
    let address = cutter.address().to_string();
    let io = ["io", "--connect", &address, "--rw", "randrw", "--iodepth", "8"];
    let more = ["--verify", "--destructive", "--yes", "--runtime", "10", "--time_based", "--json"];
    let mut load =
        Process::start(&mut farlane(&[&io[..], &more, options].concat()), "load", &folder);
    cutter.carries(1 << 20);
    for (path, ms) in CUTS {
        cutter.cut(path, Duration::from_millis(ms));
        cutter.carries(1 << 18);
    }
    assert!(load.wait().success(), "{}", load.stderr.text());
    let log = device.process.stderr.text();
    assert!(log.contains("resumed") && !log.contains("detached: the connection"), "{log}");
    device.stop();
    parsed(&load.stdout.text())
}

#[test]
fn cuts_under_verified_load_cost_no_transfer() {
    let result = verified("survival", &[]);
    let section = &result["sections"][0];
    assert_eq!(section["outages"], Value::Array(vec![]), "{section}");
    assert_eq!(section["mismatches"], 0, "{section}");
}

/// Nobody but the host goes on with its session, and another host waits until it is over.
#[test]
fn another_host_waits_for_the_end_of_an_interrupted_session() {
    let folder = scratch("survival-other");
    let device = Node::device_at(ANY, &folder, "device", &["ram=16M"], &["--survive", "2s"]);
    let cutter = Cutter::start(device.address());
    let sockets = folder.join("sockets");
    let connect = cutter.address().to_string();
    let arguments = ["host", "--connect", &connect, "--vfio-user", sockets.to_str().unwrap()];
    let mut host = node(&arguments);
    host.line("ready");
    cutter.set(Path::Silent);
    host.line("link interrupted");
    device.process.line("interrupted, waits for a connection");
    // 2 s of survival, and 2 s that a device waits longer.
    let direct = device.address().to_string();
    let refused = ["io", "--connect", &direct, "--wait", "1s", "--rw", "randread"];
    fails(&refused, &["another host uses this device; its link is interrupted and may return"]);
    host.line("link down");
    device.process.line("detached");
    let log = host.stderr.text();
    assert!(!log.contains("resumed"), "{log}");
    host.interrupt();
    device.stop();
}

#[test]
fn times_that_contradict_each_other_are_wrong_usage() {
    let long = ["host", "--connect", "127.0.0.1:9", "--vfio-user", "/nonexistent"];
    for (more, parts) in [
        (&["--survive", "28s"][..], ["--survive 28 s", "after 30 s"]),
        (&["--survive", "8s", "--io-timeout", "10s"][..], ["--survive 8 s", "after 10 s"]),
    ] {
        let out = is_wrong_usage(&[&long[..], more].concat());
        parts.iter().for_each(|part| assert!(out.contains(part), "{out}"));
    }
}

/// A drive behind a path that can be cut, and its client.
fn attached(name: &str) -> (Node, Cutter, HostNode, Drive) {
    let folder = scratch(name);
    let device = Node::device_at(ANY, &folder, "device", &["ram=16M"], &[]);
    let cutter = Cutter::start(device.address());
    let host = HostNode::start(&folder, "host", &[cutter.address()], &[]);
    let drive = Drive::attach_to(&host.socket(0), false);
    (device, cutter, host, drive)
}

#[test]
fn a_client_gets_its_answers_after_a_short_cut_and_all_ones_after_a_long_one() {
    let (device, cutter, host, mut drive) = attached("survival-client");
    drive.write(3, &pattern(1, BLOCK));
    let id = drive.id();
    std::thread::scope(|scope| {
        scope.spawn(|| cutter.cut(Path::Reset, Duration::from_millis(700)));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(drive.id(), id, "a read of configuration space that waited");
    });
    assert_eq!(drive.read(3, 1), pattern(1, BLOCK));
    cutter.set(Path::Silent);
    host.process.line("link interrupted");
    let since = Instant::now();
    assert!(drive.is_gone(), "a register reads as all ones");
    let elapsed = since.elapsed();
    assert!((2_500..4_500).contains(&elapsed.as_millis()), "{elapsed:?}");
    cutter.set(Path::Open);
    host.process.line("link resumed");
    assert_eq!(drive.read(3, 1), pattern(1, BLOCK), "and the drive was not reset");
    drop(drive);
    host.stop();
    device.stop();
}

#[test]
fn a_reset_by_the_client_ends_the_session_in_time() {
    let (device, cutter, host, mut drive) = attached("survival-reset");
    drive.write(3, &pattern(2, BLOCK));
    cutter.set(Path::Silent);
    host.process.line("link interrupted");
    let since = Instant::now();
    drive.reset_device();
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
    host.process.line("link down: the connection was lost, and a guest reset its device meanwhile");
    cutter.set(Path::Open);
    host.process.line("attached again");
    drive.recover_from_reset();
    assert_eq!(drive.read(3, 1), pattern(2, BLOCK));
    drop(drive);
    host.stop();
    device.stop();
}
