//! Links over two interfaces, of which one at a time is cut under verified load.

use crate::support::Process;
use crate::support::isolated::isolated;
use crate::support::program::{farlane, is_wrong_usage, node, parsed, scratch};
use live::net::Namespace;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

/// How long each path is cut, and mended.
const CUT: Duration = Duration::from_millis(300);

/// Runs verified load over both cables. Cuts the first one by taking its interface down, the second
/// one by losing all frames in silence.
fn cut_either(name: &str, listen: &str, paths: &str) {
    isolated(&format!("cli::paths::{name}"), |home| {
        let away = Namespace::new().unwrap();
        for cable in 0..2 {
            home.cable(&format!("near{cable}"), &away, &format!("far{cable}")).unwrap();
            for (place, end, host) in [(home, "near", 1), (&away, "far", 2)] {
                let address = format!("10.77.{cable}.{host}/24");
                place.run(&format!("ip address add {address} dev {end}{cable}")).unwrap();
            }
        }
        let folder = scratch(name);
        let listen = ["device", "--listen", listen, "--insecure", "--namespace", "ram=16M"];
        let device = away.enter(|| node(&listen)).unwrap();
        let address = device.listens().replace("raw:far", "raw:near");
        let io = ["io", "--connect", &address, "--insecure", "--rw", "randrw", "--iodepth", "8"];
        let more = ["--paths", paths, "--verify", "--destructive", "--yes", "--runtime", "4"];
        let arguments = [&io[..], &more, &["--time_based", "--json"]].concat();
        let mut load = Process::start(&mut farlane(&arguments), "load", &folder);
        device.line("further path up");
        sleep(CUT);
        home.run("ip link set near0 down").unwrap();
        sleep(CUT);
        home.run("ip link set near0 up").unwrap();
        sleep(CUT);
        let silence = |what: &str| {
            for (place, end) in [(home, "near1"), (&away, "far1")] {
                place.run(&format!("tc qdisc {what} dev {end} root blackhole")).unwrap();
            }
        };
        silence("add");
        sleep(CUT);
        silence("delete");
        assert!(load.wait().success(), "{}", load.stderr.text());
        let section = &parsed(&load.stdout.text())["sections"][0];
        let results = (&section["outages"], &section["mismatches"]);
        assert_eq!(results, (&Value::Array(vec![]), &0.into()));
        if paths == "active" {
            let log = device.stderr.text();
            assert!(log.contains("takes over"), "{log}");
        }
        println!(
            "{name}: p99 {} ns, max {} ns",
            section["all"]["p99_ns"], section["all"]["max_ns"]
        );
    });
}

#[test]
fn active_path_over_tcp_hands_over() {
    let listen = "10.77.0.2:61420,10.77.1.2:61420";
    cut_either("active_path_over_tcp_hands_over", listen, "active");
}

#[test]
fn both_paths_over_tcp_lose_one() {
    cut_either("both_paths_over_tcp_lose_one", "10.77.0.2:61420,10.77.1.2:61420", "both");
}

#[test]
fn active_path_over_raw_ethernet_hands_over() {
    cut_either("active_path_over_raw_ethernet_hands_over", "raw:far0,raw:far1", "active");
}

#[test]
fn both_paths_over_raw_ethernet_lose_one() {
    cut_either("both_paths_over_raw_ethernet_lose_one", "raw:far0,raw:far1", "both");
}

#[test]
fn paths_over_tcp_and_raw_ethernet_lose_one() {
    let listen = "10.77.0.2:61420,raw:far1";
    cut_either("paths_over_tcp_and_raw_ethernet_lose_one", listen, "both");
}

#[test]
fn third_address_to_listen_on_is_wrong_usage() {
    let three =
        ["device", "--listen", "127.0.0.1,127.0.0.1:1,127.0.0.1:2", "--namespace", "ram=1M"];
    let error = is_wrong_usage(&three);
    assert!(error.contains("--listen has 3 addresses: expected at most 2"), "{error}");
}
