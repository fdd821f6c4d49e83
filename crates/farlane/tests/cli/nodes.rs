//! Nodes in separate processes.

use crate::support::process::LIMIT;
use crate::support::program::{device, document, fails, node, ping, prints, run, scratch, text};
use rustix::process::Signal;
use serde_json::Value;
use std::net::TcpListener;
use std::process::Command;

#[test]
fn ping_measures_link_and_configuration_read() {
    let (_node, address) = device("ram=16M", &[]);
    let document = document(&["ping", &address, "--count", "100", "--json"]);
    for kind in ["link", "config_read"] {
        assert_eq!(document[kind]["n"], 100);
        assert!(document[kind]["p50_ns"].as_u64().unwrap() > 0);
    }
}

/// Returns an address without a listener: the port was bound and closed again.
pub fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Returns a loopback address that no concurrent test uses.
fn own_address() -> String {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    format!("127.{a}.{b}.{}", c.clamp(2, 254))
}

#[test]
fn the_port_has_a_default_and_hosts_have_names() {
    let own = own_address();
    let default = node(&["device", "--listen", &own, "--namespace", "ram=16M"]);
    default.line(&format!("listening on {own}:{}", live::net::DEFAULT_PORT));
    ping(&own, "10");
    // A name may have several addresses. The device listens on one of them.
    let (_device, address) = device("ram=16M", &[]);
    let port = address.rsplit(':').next().unwrap();
    let name = format!("localhost:{port}");
    ping(&name, "10");
    let folder = &text(&scratch("named"));
    let mut host = node(&["host", "--connect", &name, "--vfio-user", folder]);
    host.line("ready");
    assert!(host.interrupt().success());
    for command in ["device", "host", "switch"] {
        let help = prints(&[command, "--help"]);
        assert!(help.contains(&live::net::DEFAULT_PORT.to_string()), "{command}: {help}");
    }
}

#[test]
fn second_host_is_rejected_with_a_line() {
    let (device, address) = device("ram=16M", &[]);
    let folder = &text(&scratch("one-host"));
    let mut host = node(&["host", "--connect", &address, "--vfio-user", folder]);
    host.line("ready");
    let second = ["host", "--connect", &address, "--vfio-user", "/tmp/unused"];
    fails(&second, &["another host uses this device"]);
    let ping = run(&["ping", &address, "--count", "10"]);
    assert!(ping.status.success(), "the link can be measured all the same");
    assert!(String::from_utf8_lossy(&ping.stdout).contains("link"));
    assert!(String::from_utf8_lossy(&ping.stderr).contains("another host"));
    assert!(host.interrupt().success());
    device.line("detached");
}

#[test]
fn ctrl_c_leaves_the_data_on_the_media() {
    let (mut device, _) = device("ram=16M", &[]);
    assert!(device.interrupt().success());
    device.line("data are on the media");
}

#[test]
fn counters_are_shown_on_request_and_at_the_end() {
    let (mut device, address) = device("ram=16M", &[]);
    ping(&address, "10");
    device.signal(Signal::USR1);
    let link = device.line("uplink: traffic: ");
    assert!(link.contains(", tlps_received "), "{link}");
    device.line("uplink: errors: none");
    device.line("uplink: endpoint_errors: none");
    ping(&address, "10");
    device.signal(Signal::USR1);
    device.line("uplink: endpoint_errors: none");
    assert!(device.interrupt().success());
    // Each of the two hosts measures ten times, after two times to warm up.
    let link = device.line("uplink: traffic: ");
    assert!(link.ends_with(", tlps_sent 24") && link.contains(", connections 2,"), "{link}");
    // `farlane ping` pushes nothing.
    device.line("uplink: push: none");
    device.line("data are on the media");
}

#[test]
fn switch_node_reports_links_and_counters() {
    let (mut device, address) = device("ram=16M", &[]);
    let arguments = ["switch", "--listen", "127.0.0.1:0", "--connect", &address];
    let mut switch = node(&arguments);
    let above = switch.listens();
    assert!(device.interrupt().success());
    switch.line("port 0: link down");
    let alone = ["host", "--connect", &above, "--vfio-user", "/tmp/unused"];
    fails(&alone, &[&format!("farlane: no endpoint found behind {above}")]);
    let _again = node(&["device", "--listen", &address, "--namespace", "ram=16M"]);
    switch.line("port 0: link up");
    assert!(switch.interrupt().success());
    switch.line("uplink: endpoint_errors: none");
    switch.line("port 0: traffic: ");
}

#[test]
fn the_host_prints_the_exact_qemu_options() {
    let (_device, address) = device("ram=16M", &[]);
    let path = text(&scratch("options"));
    let host = node(&["host", "--connect", &address, "--vfio-user", &path]);
    let lines = [(); 3].map(|()| host.stdout.wait_for("", LIMIT));
    let socket = format!("{path}/0/cntrl");
    assert_eq!(lines[0], "-machine q35,memory-backend=mem");
    assert!(lines[1].contains("memory-backend-memfd") && lines[1].contains("share=on"));
    let json = lines[2].strip_prefix("-device '").and_then(|rest| rest.strip_suffix('\''));
    let option: Value = serde_json::from_str(json.expect("a quoted option")).unwrap();
    assert_eq!(option["driver"], "vfio-user-pci");
    assert_eq!(option["socket"]["path"], socket.as_str());
}

#[test]
fn host_prints_the_drive_of_each_endpoint() {
    let (_one, one) = device("ram=16M", &["--namespace", "ram=1M", "--serial", "ONE"]);
    let (_other, two) = device("ram=8M", &[]);
    let later = nobody();
    let folder = &text(&scratch("which"));
    let peers = ["--connect", &one, "--connect", &two, "--connect", &later];
    let options = ["host", "--vfio-user", folder, "--hot-plug", "--wait", "500ms"];
    let mut host = node(&[&options[..], &peers].concat());
    let first = host.line("endpoint 0: ");
    assert_eq!(first, "endpoint 0: PCI address 03:00.0, [fa12:0001], serial number ONE, 17 MiB");
    let second = host.line("endpoint 1: ");
    assert!(second.contains(" serial number FL") && second.ends_with(", 8 MiB"), "{second}");
    host.line("ready");
    let options = ["--serial", "LATER", "--namespace", "ram=4M"];
    let _device = node(&[&["device", "--listen", &later], &options[..]].concat());
    let third = host.line("endpoint 2: ");
    assert!(third.starts_with("endpoint 2: offered: PCI address "), "{third}");
    assert!(third.ends_with(", serial number LATER, 4 MiB"), "{third}");
    assert!(host.interrupt().success());
}

#[test]
fn an_idle_device_node_is_small() {
    let (device, address) = device("ram=256M", &[]);
    ping(&address, "10");
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", device.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("peak memory");
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 64 << 10, "an idle device node used {kib} KiB at its peak");
    println!("an idle device node: {kib} KiB at its peak");
}

#[test]
fn duplicate_serial_number_is_a_warning() {
    let folder = &text(&scratch("twins"));
    // The drives have different sizes, but a guest identifies a drive by its serial number.
    let (_a, a) = device("ram=1M", &["--serial", "SAME"]);
    let (_b, b) = device("ram=1M", &["--serial", "OTHER"]);
    let (_c, c) = device("ram=2M", &["--serial", "SAME"]);
    let later = nobody();
    let mut arguments = vec!["host", "--vfio-user", folder, "--hot-plug", "--wait", "1"];
    [&a, &b, &c, &later].into_iter().for_each(|peer| arguments.extend(["--connect", peer]));
    let mut host = node(&arguments);
    let first = host.line("same serial number");
    assert!(first.contains("endpoints ") && first.contains("--serial"), "{first}");
    // A drive that is attached later is checked too.
    let options = ["--serial", "OTHER", "--namespace", "ram=4M"];
    let _d = node(&[&["device", "--listen", &later], &options[..]].concat());
    assert_ne!(host.line("same serial number"), first);
    assert!(host.interrupt().success());
}

#[test]
fn more_interrupt_vectors_than_descriptors_are_refused() {
    let (_device, address) = device("ram=16M", &["--queues", "2048"]);
    let folder = &text(&scratch("vectors"));
    let host = ["host", "--connect", &address, "--vfio-user", folder];
    let mut limited = Command::new("prlimit");
    let output =
        limited.arg("--nofile=1024").arg(env!("CARGO_BIN_EXE_farlane")).args(host).output();
    let output = output.expect("util-linux has prlimit");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("2048 descriptors for interrupt vectors"), "{errors}");
    assert!(errors.contains("--queues"), "{errors}");
    let mut enough = node(&host);
    enough.line("ready");
    assert!(enough.interrupt().success());
}
