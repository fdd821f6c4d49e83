//! Nodes in processes of their own.

use crate::cli::process::{Node, one_line, run};
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

/// A loopback address that other tests at the same time do not have.
fn own_address() -> String {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    format!("127.{a}.{b}.{}", c.clamp(2, 254))
}

#[test]
fn the_port_has_a_default_and_hosts_have_names() {
    let own = own_address();
    let node = Node::start(&["device", "--listen", &own, "--namespace", "ram=16M"]);
    node.line(&format!("listening on {own}:{}", live::net::DEFAULT_PORT));
    let ping = run(&["ping", &own, "--count", "10"]);
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    // A name may have several addresses; the device is at one of them.
    let (_device, address) = Node::device("ram=16M");
    let port = address.rsplit(':').next().unwrap();
    let name = format!("localhost:{port}");
    let ping = run(&["ping", &name, "--count", "10"]);
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("named");
    let folder = folder.to_str().unwrap();
    let mut host = Node::start(&["host", "--connect", &name, "--vfio-user", folder]);
    host.line("ready");
    assert!(host.interrupt().success());
    for command in ["device", "host", "switch"] {
        let help = run(&[command, "--help"]);
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(help.contains(&live::net::DEFAULT_PORT.to_string()), "{command}: {help}");
    }
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
    let above = switch.line("listening on ").replace("listening on ", "");
    assert!(device.interrupt().success());
    switch.line("port 0: link down");
    let alone = run(&["host", "--connect", &above, "--vfio-user", "/tmp/unused"]);
    let error = format!("farlane: no endpoint found behind {above}");
    assert_eq!(one_line(&alone), error, "the address is told");
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
    let mut host =
        crate::cli::process::farlane(&["host", "--connect", &address, "--vfio-user", path]);
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
fn the_host_says_which_drive_each_endpoint_is() {
    let arguments = ["device", "--listen", "127.0.0.1:0", "--namespace", "ram=16M"];
    let more = ["--namespace", "ram=1M", "--serial", "ONE"];
    let device = Node::start(&[&arguments[..], &more].concat());
    let one = device.line("listening on ").replace("listening on ", "");
    let (_other, two) = Node::device("ram=8M");
    // Bound and closed again: nobody listens on it yet.
    let later = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let later = later.to_string();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("which");
    let folder = folder.to_str().unwrap();
    let peers = ["--connect", &one, "--connect", &two, "--connect", &later];
    let options = ["host", "--vfio-user", folder, "--hot-plug", "--wait", "500ms"];
    let mut host = Node::start(&[&options[..], &peers].concat());
    let first = host.line("endpoint 0: ");
    assert_eq!(first, "endpoint 0: PCI address 03:00.0, [fa12:0001], serial number ONE, 17 MiB");
    let second = host.line("endpoint 1: ");
    assert!(second.contains(" serial number FL") && second.ends_with(", 8 MiB"), "{second}");
    host.line("ready");
    let options = ["--serial", "LATER", "--namespace", "ram=4M"];
    let _device = Node::start(&[&["device", "--listen", &later], &options[..]].concat());
    let third = host.line("endpoint 2: ");
    assert!(third.starts_with("endpoint 2: offered: PCI address "), "{third}");
    assert!(third.ends_with(", serial number LATER, 4 MiB"), "{third}");
    assert!(host.interrupt().success());
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

/// A device node with this serial number, and its address.
fn named(serial: &str, namespace: &str) -> (Node, String) {
    let options = ["--serial", serial, "--namespace", namespace];
    let node = Node::start(&[&["device", "--listen", "127.0.0.1:0"], &options[..]].concat());
    let address = node.line("listening on ").replace("listening on ", "");
    (node, address)
}

#[test]
fn two_drives_with_one_serial_number_are_told_of() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("twins");
    let folder = folder.to_str().unwrap();
    // Their sizes differ; a guest takes them for one all the same.
    let (_a, a) = named("SAME", "ram=1M");
    let (_b, b) = named("OTHER", "ram=1M");
    let (_c, c) = named("SAME", "ram=2M");
    // Bound and closed again: nobody listens on it yet.
    let later = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let later = later.to_string();
    let mut arguments = vec!["host", "--vfio-user", folder, "--hot-plug", "--wait", "1"];
    [&a, &b, &c, &later].into_iter().for_each(|peer| arguments.extend(["--connect", peer]));
    let mut host = Node::start(&arguments);
    let first = host.line("same serial number");
    assert!(first.contains("endpoints ") && first.contains("--serial"), "{first}");
    // Whoever comes later is looked at too.
    let options = ["--serial", "OTHER", "--namespace", "ram=4M"];
    let _d = Node::start(&[&["device", "--listen", &later], &options[..]].concat());
    assert_ne!(host.line("same serial number"), first);
    assert!(host.interrupt().success());
}
