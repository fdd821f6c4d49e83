//! `farlane io` on drives that are lost while they are under load.

use crate::support::process::wait_until;
use crate::support::program::{fails, farlane, page, parsed, scratch, succeeds, text};
use crate::support::{ANY, HostNode, Node, Process};
use serde_json::Value;
use std::path::{Path, PathBuf};

const READS: &str = "--rw randread --iodepth 4 --runtime 60 --time_based";

/// Starts a run on this target and waits for the first transfers. Returns the run and the file of
/// its rows.
fn load(folder: &Path, target: [&str; 2], more: &str) -> (Process, PathBuf) {
    let csv = folder.join("samples.csv");
    let _ = std::fs::remove_file(&csv);
    let rows = text(&csv);
    let words: Vec<&str> = READS.split(' ').chain(more.split_whitespace()).collect();
    let arguments = [&["io"], &target[..], &["--csv", &rows], &words[..]].concat();
    let load = Process::start(&mut farlane(&arguments), "load", folder);
    grows(&csv);
    (load, csv)
}

/// Waits until further transfers have ended.
fn grows(csv: &Path) {
    let length = || std::fs::metadata(csv).map_or(0, |file| file.len());
    let before = length();
    wait_until("transfers end", || length() > before);
}

#[track_caller]
fn vanishes(mut load: Process, parts: &[&str]) {
    assert_eq!(load.wait().code(), Some(1));
    let log = load.stderr.text();
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("farlane: the drive vanished: "), "{log}");
    parts.iter().for_each(|part| assert!(last.contains(part), "{log}"));
}

/// Returns the number of lost transfers of each outage of the only section.
#[track_caller]
fn outages(found: &Value) -> Vec<u64> {
    let section = &found["sections"][0];
    let outages = section["outages"].as_array().unwrap();
    let lost = outages.iter().map(|outage| outage["lost"].as_u64().unwrap());
    let lost: Vec<u64> = lost.collect();
    assert!(outages.iter().all(|outage| outage["length_ns"].as_u64() > Some(0)), "{outages:?}");
    let starts = outages.iter().map(|outage| outage["start_ns"].as_u64().unwrap());
    assert!(starts.is_sorted(), "{outages:?}");
    let sum: u64 = lost.iter().sum();
    assert_eq!((&section["all"]["lost"], &section["errors"][0]["n"]), (&sum.into(), &sum.into()));
    lost
}

#[test]
fn a_drive_that_is_lost_behind_a_host_node_is_reported_and_not_timed_out() {
    let folder = scratch("io-lost-behind-host");
    let options = ["--serial", "LOST"];
    let mut device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &options);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let socket = text(&host.socket(0));
    for completions in ["msix", "polled"] {
        let more = format!("--completions {completions}");
        let (load, _) = load(&folder, ["--vfio-user", &socket], &more);
        let address = device.address();
        device.process.kill();
        vanishes(
            load,
            &["/0/cntrl: the drive does not answer: its link is lost", "4 transfers failed"],
        );
        // The drive is not there for the next client either.
        fails(&["io", "--vfio-user", &socket, "--rw", "read"], &["the drive does not answer"]);
        device = Node::device_at(address, &folder, "device-again", &["ram=1M"], &options);
        host.process.line("attached again");
    }
    host.stop();
    device.stop();
}

#[test]
fn a_drive_that_is_moved_away_behind_a_host_node_is_reported() {
    let folder = scratch("io-moved-behind-host");
    let device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--group", "1"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--group", "1"]);
    let (load, _) = load(&folder, ["--vfio-user", &text(&host.socket(0))], "");
    succeeds(&["move", &device.address().to_string(), "--group", "2"]);
    vanishes(load, &["/0/cntrl: the drive does not answer", "moved to another host"]);
    host.stop();
    device.stop();
}

#[test]
fn a_drive_that_returns_behind_a_host_node_goes_on_and_the_outage_is_counted() {
    let folder = scratch("io-returns-behind-host");
    let options = ["--serial", "RETURNS"];
    let mut device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &options);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let socket = text(&host.socket(0));
    let (mut load, csv) = load(&folder, ["--vfio-user", &socket], "--on-error continue --json");
    device.process.kill();
    let again = Node::device_at(device.address(), &folder, "again", &["ram=1M"], &options);
    load.line("link down: ");
    load.line("link up: the drive is attached again");
    grows(&csv);
    assert!(load.interrupt().success());
    let lost = outages(&parsed(&load.stdout.text()));
    assert!(matches!(lost[..], [1..=4]), "{lost:?}");
    host.stop();
    again.stop();
}

#[test]
fn a_drive_that_is_lost_behind_a_switch_node_is_reported_and_not_timed_out() {
    let folder = scratch("io-lost-behind-switch");
    let mut device = Node::device(&folder, "device", &["ram=1M"]);
    let switch = Node::switch(&folder, "switch", device.address());
    let (load, _) = load(&folder, ["--connect", &switch.address().to_string()], "");
    device.process.kill();
    vanishes(load, &["the drive does not answer", "4 transfers failed"]);
    switch.stop();
}

#[test]
fn each_outage_is_listed_and_lost_transfers_have_a_column() {
    let folder = scratch("io-outages");
    let html = folder.join("io.html");
    let device = || Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--serial", "LISTED"]);
    let mut device = device();
    let address = device.address();
    let more = format!("--on-error continue --html {}", text(&html));
    let (mut load, csv) = load(&folder, ["--connect", &address.to_string()], &more);
    for _ in 0..2 {
        device.process.kill();
        load.line("link down: ");
        let options = ["--serial", "LISTED"];
        device = Node::device_at(address, &folder, "again", &["ram=1M"], &options);
        load.line("link up: the drive is attached again");
        grows(&csv);
    }
    assert!(load.interrupt().success());
    let printed = load.stdout.text();
    let head: Vec<&str> = printed
        .lines()
        .find(|line| line.starts_with("  job"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(head[..4], ["job", "op", "n", "lost"]);
    assert!(printed.contains("\n  outages: 2\n  outage at "), "{printed}");
    let lines = |text: &str| text.matches("outage at ").count();
    assert_eq!((lines(&printed), lines(&page(&html))), (2, 2), "{printed}");
    device.stop();
}
