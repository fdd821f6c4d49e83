//! Links whose connections are cut under load.

use crate::cli::drive::create;
use crate::cli::keys::Keys;
use crate::support::cutter::{Cutter, Path};
use crate::support::isolated::isolated;
use crate::support::program::{fails, farlane, is_wrong_usage, json, node, parsed, scratch};
use crate::support::restarts::Restarts;
use crate::support::{ANY, BLOCK, Drive, HostNode, Node, Process, pattern};
use live::net::Namespace;
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

/// Runs verified reads and writes over a path to a node at `target` that is cut again and again;
/// returns the results. `with` adds the options of the host.
fn verified(
    folder: &std::path::Path,
    target: &str,
    with: &dyn Fn(&[&str]) -> Vec<&'static str>,
) -> Value {
    let cutter = Cutter::start(target.parse().expect("an address"));
    let address = cutter.address().to_string();
    let io = ["io", "--connect", &address, "--rw", "randrw", "--iodepth", "8", "--verify"];
    let more = ["--destructive", "--yes", "--runtime", "10", "--time_based", "--json"];
    let arguments = with(&[&io[..], &more].concat());
    let mut load = Process::start(&mut farlane(&arguments), "load", folder);
    cuts(&cutter);
    undisturbed(&mut load)
}

/// Cuts a path with traffic again and again.
fn cuts(cutter: &Cutter) {
    cutter.carries(1 << 20);
    for (path, ms) in CUTS {
        cutter.cut(path, Duration::from_millis(ms));
        cutter.carries(1 << 18);
    }
}

/// Waits for the load, which had neither an outage nor wrong data; returns the results.
#[track_caller]
pub fn undisturbed(load: &mut Process) -> Value {
    assert!(load.wait().success(), "{}", load.stderr.text());
    let result = parsed(&load.stdout.text());
    let section = &result["sections"][0];
    assert_eq!(section["outages"], Value::Array(vec![]), "{section}");
    assert_eq!(section["mismatches"], 0, "{section}");
    result
}

/// The arguments as they are.
fn plain(arguments: &[&str]) -> Vec<&'static str> {
    arguments.iter().map(|text| &*(*text).to_owned().leak()).collect()
}

/// Checks the log of the node behind the cuts.
#[track_caller]
fn resumed(log: &str) {
    assert!(log.matches("resumed").count() >= 5, "{log}");
    assert!(!log.contains("detached: the connection"), "{log}");
}

#[test]
fn cuts_under_verified_load_cost_no_transfer() {
    let folder = scratch("survival");
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &[]);
    verified(&folder, &device.address().to_string(), &plain);
    resumed(&device.process.stderr.text());
    device.stop();
}

/// The drive's process is killed; the next one goes on from its folder.
#[test]
fn kills_of_a_drive_under_verified_load_cost_no_transfer() {
    let folder = scratch("survival-killed");
    let place = folder.join("drive");
    create(&place, "64M", &[]);
    let mut restarts = Restarts::start(&folder, &place);
    let address = restarts.address().to_string();
    let io = ["io", "--connect", &address, "--rw", "randrw", "--iodepth", "8", "--verify"];
    let more = ["--destructive", "--yes", "--runtime", "10", "--time_based", "--json"];
    let mut load = Process::start(&mut farlane(&[&io[..], &more].concat()), "load", &folder);
    for kill in 0..10 {
        let pause = Duration::from_millis(if kill == 5 { 1_500 } else { 0 });
        restarts.kill(Duration::from_millis(200 + kill * 170 % 500), pause);
    }
    undisturbed(&mut load);
    restarts.stop();
    let health = json(&["drive", "show", place.to_str().unwrap(), "--json"])["health"].clone();
    assert_eq!((&health["power_cycles"], &health["unsafe_shutdowns"]), (&1.into(), &0.into()));
}

/// The host of the killed process does not come back.
#[test]
fn a_restarted_drive_gives_its_former_host_up() {
    let folder = scratch("survival-gone");
    let place = folder.join("drive");
    create(&place, "1M", &[]);
    let mut device = Node::drive_at(ANY, &folder, "device", &place);
    let mut host = HostNode::start(&folder, "host", &[device.address()], &["--survive", "2s"]);
    device.process.kill();
    host.process.kill();
    let device = Node::drive_at(device.address(), &folder, "device-1", &place);
    device.process.line("the host of the killed process detached");
    let next = HostNode::start(&folder, "next", &[device.address()], &[]);
    next.stop();
    device.stop();
}

/// The switch node behind the cuts has a link of its own to the device node.
#[test]
fn cuts_in_front_of_a_switch_node_cost_no_transfer() {
    let folder = scratch("survival-switch");
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &[]);
    let switch = Node::switch(&folder, "switch", device.address());
    verified(&folder, &switch.address().to_string(), &plain);
    resumed(&switch.process.stderr.text());
    assert!(!device.process.stderr.text().contains("interrupted"), "its link was up");
    switch.stop();
    device.stop();
}

/// Each connection has its own TLS handshake.
#[test]
fn cuts_under_tls_cost_no_transfer() {
    let keys = Keys::new("survival-tls", &["device", "host"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (mut device, address) = keys.device("device", &[]);
    verified(&keys.folder, &address, &|arguments| keys.with("host", arguments));
    resumed(&device.stderr.text());
    assert!(device.interrupt().success());
}

/// The cable of a raw Ethernet link is pulled and plugged in.
#[test]
fn cuts_of_raw_ethernet_cost_no_transfer() {
    isolated("cli::survival::cuts_of_raw_ethernet_cost_no_transfer", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let folder = scratch("survival-raw");
        let listen = ["device", "--listen", "raw:far0", "--insecure", "--namespace", "ram=16M"];
        let device = away.enter(|| node(&listen)).unwrap();
        let address = device.listens().replace("raw:far0,", "raw:near0,");
        let io = ["io", "--connect", &address, "--insecure", "--rw", "randrw", "--verify"];
        let more = ["--destructive", "--yes", "--runtime", "9", "--time_based", "--json"];
        let mut load = Process::start(&mut farlane(&[&io[..], &more].concat()), "load", &folder);
        device.line("attached");
        for ms in [100, 1_300, 30] {
            std::thread::sleep(Duration::from_millis(700));
            home.run("ip link set near0 down").unwrap();
            std::thread::sleep(Duration::from_millis(ms));
            home.run("ip link set near0 up").unwrap();
            device.line("resumed");
        }
        undisturbed(&mut load);
    });
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
    host.process.line("a guest reset or read its device meanwhile");
    host.process.line("attached again");
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
    host.process
        .line("link down: the connection was lost, and a guest reset or read its device meanwhile");
    cutter.set(Path::Open);
    host.process.line("attached again");
    drive.recover_from_reset();
    assert_eq!(drive.read(3, 1), pattern(2, BLOCK));
    drop(drive);
    host.stop();
    device.stop();
}

/// Runs verified reads and writes over two paths to one device node, of which one at a time is cut;
/// returns the log of the device node.
fn over_two_paths(
    folder: &std::path::Path,
    device: &Process,
    target: &str,
    host: &[&'static str],
) -> String {
    let cutters = [0, 1].map(|_| Cutter::start(target.parse().expect("an address")));
    let [a, b] = cutters.each_ref().map(Cutter::address);
    let both = format!("{a},{b}");
    let io = ["io", "--connect", &both, "--rw", "randrw", "--iodepth", "8", "--verify"];
    let more = ["--destructive", "--yes", "--runtime", "8", "--time_based", "--json"];
    let mut load = Process::start(&mut farlane(&[&io[..], &more, host].concat()), "load", folder);
    device.line("further path up");
    cutters[0].carries(1 << 18);
    for (turn, (path, ms)) in CUTS.into_iter().enumerate() {
        let (cut, other) = (&cutters[turn % 2], &cutters[1 - turn % 2]);
        cut.set(path);
        other.carries(1 << 16);
        std::thread::sleep(Duration::from_millis(ms));
        cut.set(Path::Open);
        // The cut path is back before the other one is cut.
        if path == Path::Reset || ms > 800 {
            device.line("further path up");
        }
    }
    assert!(load.wait().success(), "{}", load.stderr.text());
    let section = &parsed(&load.stdout.text())["sections"][0];
    assert_eq!((&section["outages"], &section["mismatches"]), (&Value::Array(vec![]), &0.into()));
    // A cut costs less than the time that it takes to notice a lost connection.
    let longest = section["all"]["max_ns"].as_u64().expect("a latency");
    assert!(longest < 700_000_000, "{longest} ns");
    let log = device.stderr.text();
    assert!(!log.contains("interrupted"), "{log}");
    log
}

#[test]
fn another_path_takes_over_under_verified_load() {
    let folder = scratch("two-paths");
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &[]);
    let target = device.address().to_string();
    let log = over_two_paths(&folder, &device.process, &target, &[]);
    assert!(log.matches("this path takes over").count() >= 3, "{log}");
    device.stop();
}

#[test]
fn both_paths_carry_everything_under_tls() {
    let keys = Keys::new("two-paths-tls", &["device", "host"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (device, address) = keys.device("device", &[]);
    let host = keys.with("host", &["--paths", "both"]);
    over_two_paths(&keys.folder, &device, &address, &host);
}
