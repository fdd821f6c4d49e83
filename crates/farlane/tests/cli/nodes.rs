//! Nodes in processes of their own.

use crate::process::{Node, run};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn ping_measures_link_and_configuration_read() {
    let (node, address) = Node::device("ram=16M");
    let output = run(&["ping", &address, "--count", "100", "--json"]);
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    for kind in ["link", "config_read"] {
        assert_eq!(document[kind]["n"], 100);
        assert!(document[kind]["p50_ns"].as_u64().unwrap() > 0);
    }
    drop(node);
}

#[test]
fn a_device_has_one_host_and_says_so() {
    let (device, address) = Node::device("ram=16M");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("one-host");
    let folder = folder.to_str().unwrap();
    let mut host = Node::start(&["host", "--connect", &address, "--vfio-user", folder]);
    host.line("ready");
    let second = run(&["host", "--connect", &address, "--vfio-user", "/tmp/unused"]);
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(text.contains("another host uses this device"), "{text}");
    let ping = run(&["ping", &address, "--count", "10"]);
    assert!(ping.status.success(), "the link can be measured all the same");
    assert!(String::from_utf8_lossy(&ping.stdout).contains("link"));
    assert!(String::from_utf8_lossy(&ping.stderr).contains("another host"));
    assert!(host.interrupt().success());
    device.line("gone");
}

#[test]
fn ctrl_c_leaves_the_data_on_the_media() {
    let (mut device, _) = Node::device("ram=16M");
    assert!(device.interrupt().success());
    device.line("data are on the media");
}

#[test]
fn counters_are_shown_on_request_and_at_the_end() {
    let (mut device, address) = Node::device("ram=16M");
    assert!(run(&["ping", &address, "--count", "10"]).status.success());
    device.signal(rustix::process::Signal::USR1);
    let link = device.line("link: sent");
    assert!(!link.contains("received 0 TLPs") && link.contains("errors: none"), "{link}");
    device.line("endpoint: errors: none");
    assert!(run(&["ping", &address, "--count", "10"]).status.success(), "it serves on");
    device.signal(rustix::process::Signal::USR1);
    device.line("endpoint: errors: none");
    assert!(device.interrupt().success());
    // Both hosts: ten measured and two to warm up, each.
    let link = device.line("link: sent");
    assert!(link.contains("sent 24 TLPs") && link.contains("connections: 2"), "{link}");
    device.line("data are on the media");
}

#[test]
fn a_switch_node_tells_of_its_links_and_counts() {
    let (mut device, address) = Node::device("ram=16M");
    let arguments = ["switch", "--listen", "127.0.0.1:0", "--connect", &address];
    let mut switch = Node::start(&arguments);
    switch.line("listening on");
    assert!(device.interrupt().success());
    switch.line("port 0: link down");
    let _again = Node::start(&["device", "--listen", &address, "--namespace", "ram=16M"]);
    switch.line("port 0: link up");
    assert!(switch.interrupt().success());
    switch.line("upstream port: errors: none");
    switch.line("downstream port 0: sent");
}

#[test]
fn the_host_prints_the_exact_qemu_options() {
    let (_device, address) = Node::device("ram=16M");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("options");
    let path = folder.to_str().unwrap();
    let mut host = crate::process::farlane(&["host", "--connect", &address, "--vfio-user", path]);
    let mut child = host.spawn().unwrap();
    let stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> =
        std::io::BufRead::lines(stdout).map_while(Result::ok).take(3).collect();
    let socket = format!("{path}/0/cntrl");
    assert_eq!(lines[0], "-machine q35,memory-backend=mem");
    assert!(lines[1].contains("memory-backend-memfd") && lines[1].contains("share=on"));
    let json = lines[2].strip_prefix("-device '").and_then(|rest| rest.strip_suffix('\''));
    let option: Value = serde_json::from_str(json.expect("a quoted option")).unwrap();
    assert_eq!(option["driver"], "vfio-user-pci");
    assert_eq!(option["socket"]["path"], socket.as_str());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_idle_device_node_is_small() {
    let (device, address) = Node::device("ram=256M");
    assert!(run(&["ping", &address, "--count", "10"]).status.success());
    let status = std::fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("peak memory");
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 64 << 10, "an idle device node used {kib} KiB at its peak");
    println!("an idle device node: {kib} KiB at its peak");
}
