//! Nodes with keys at work: rights, switches, rotation, removal.

use super::Keys;
use crate::support::program::{fails, node, succeeds, text};
use rustix::process::Signal;
use std::process::Command;

#[test]
fn key_decides_who_uses_moves_and_probes() {
    let keys = Keys::new("keys-rights", &["device", "host", "ops"]);
    keys.peers("device", "host-a {host} use groups=2\nops {ops} move");
    for name in ["host", "ops"] {
        keys.peers(name, "store {device} serve");
    }
    let (mut device, address) = keys.device("device", &["--group", "1"]);
    let sockets = text(&keys.folder.join("sockets"));
    let arguments = ["host", "--connect", &address, "--vfio-user", &sockets, "--wait", "2"];
    let host = |group| keys.with("host", &[&arguments[..], &["--group", group]].concat());
    fails(&host("1"), &[&address, "rejected", "right for this role and group"]);
    fails(&keys.with("host", &["ping", &address]), &["right for this role and group"]);
    let moves = |name, group| keys.with(name, &["move", &address, "--group", group]);
    fails(&moves("host", "2"), &["right for this role and group"]);
    succeeds(&moves("ops", "2"));
    let mut attached = node(&host("2"));
    attached.line("ready");
    let (host_a, ops) = (keys.fingerprint("host"), keys.fingerprint("ops"));
    device.line(&format!("ops ({ops}) moved this device from group 1 to group 2"));
    device.line(&format!("host-a ({host_a}) attached"));
    assert!(attached.interrupt().success());
    assert!(device.interrupt().success());
}

#[test]
fn key_covers_each_hop_of_a_switch() {
    let keys = Keys::new("keys-switch", &["device", "switch", "host"]);
    keys.peers("device", "switch {switch} use");
    keys.peers("switch", "store {device} serve\nhost-a {host} use,probe");
    keys.peers("host", "switch {switch} serve");
    let (_device, address) = keys.device("device", &[]);
    let switch = ["switch", "--listen", "127.0.0.1:0", "--connect", &address];
    let switch = node(&keys.with("switch", &switch));
    let behind = switch.listens();
    let io = ["io", "--rw", "randread", "--runtime", "200ms", "--time_based", "--connect"];
    succeeds(&keys.with("host", &[&io[..], &[&format!("{behind},peer=switch")]].concat()));
    fails(&keys.with("host", &[&io[..], &[&address, "--wait", "1"]].concat()), &["unknown key"]);
}

/// A host with the key `host`, attached to `address`.
fn host(keys: &Keys, name: &str, address: &str) -> crate::support::Process {
    let sockets = text(&keys.folder.join(format!("sockets-{name}")));
    let host = node(&keys.with(name, &["host", "--connect", address, "--vfio-user", &sockets]));
    host.line("ready");
    host
}

#[test]
fn key_is_rotated_without_an_outage_and_a_removed_key_ends_its_link() {
    let keys = Keys::new("keys-rotation", &["device", "host", "next"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (device, address) = keys.device("device", &[]);
    let rotated = host(&keys, "host", &address);
    // Two keys of one peer are valid, and the link stays up.
    keys.peers("device", "host-a {host} use\nhost-a {next} use");
    device.line("read the file of peers again; keys: 2");
    keys.peers("device", "host-a {next} use,mvoe");
    device.line("the earlier keys stay valid");
    device.signal(Signal::HUP);
    device.line("invalid right 'mvoe'");
    assert!(!device.stderr.text().contains("detached"));
    // The host takes its next key, and comes back with it when the link with the earlier one ends.
    let (fingerprint, next) = (keys.fingerprint("host"), keys.fingerprint("next"));
    std::fs::rename(keys.key("next"), keys.key("host")).unwrap();
    rotated.signal(Signal::HUP);
    rotated.line(&format!("further connections use this node's new key {next}"));
    assert!(!device.stderr.text().contains("detached"));
    keys.peers("device", "host-a {host} use");
    let line = device.line("detached");
    assert!(line.contains(&format!("no longer accepted: unknown key {fingerprint}")), "{line}");
    rotated.line("port 0: link down: the far side closed the link");
    device.line(&format!("host-a ({next}) attached"));
}

#[test]
fn key_expires_while_its_link_is_up() {
    let keys = Keys::new("keys-expiry", &["device", "host"]);
    keys.peers("host", "store {device} serve");
    let arguments = ["-u", "-d", "3 seconds", "+%FT%TZ"];
    let soon = Command::new("date").args(arguments).output().unwrap();
    let soon = String::from_utf8(soon.stdout).unwrap();
    keys.peers("device", &format!("host-a {{host}} use not-after={}", soon.trim()));
    let (device, address) = keys.device("device", &[]);
    let host = host(&keys, "host", &address);
    let line = device.line("detached");
    assert!(line.contains("not valid after"), "{line}");
    host.line("port 0: link down");
    host.line("the key is expired or not yet valid");
}

#[test]
fn link_belongs_to_the_peer_that_it_had_first() {
    let keys = Keys::new("keys-identity", &["device", "other", "host"]);
    for name in ["device", "other"] {
        keys.peers(name, "host-a {host} use");
    }
    keys.peers("host", "store {device} serve\nother {other} serve");
    let (device, address) = keys.device("device", &[]);
    let host = host(&keys, "host", &address);
    drop(device);
    host.line("port 0: link down");
    let other = ["device", "--listen", &address, "--namespace", "ram=16M"];
    let _other = node(&keys.with("other", &other));
    let line = host.line("expected the key of store");
    assert!(line.contains(&format!("other ({})", keys.fingerprint("other"))), "{line}");
    drop(_other);
    // The same peer with another key comes back.
    keys.peers("host", "store {other} serve");
    host.line("keys: 1");
    let _back = node(&keys.with("other", &other));
    let other = keys.fingerprint("other");
    host.line(&format!("port 0: link up: store ({other})"));
}

#[test]
fn handshake_passes_a_gate_that_is_mostly_closed() {
    let keys = Keys::new("keys-gate", &["device", "host"]);
    keys.peers("device", "host-a {host} use,probe");
    keys.peers("host", "store {device} serve");
    let list = text(&keys.folder.join("gates"));
    std::fs::write(&list, "sched-entry S 1 3ms\nsched-entry S fe 27ms\n").unwrap();
    let gate = ["--gate", &list, "--line-rate", "1G", "--gate-clock", "realtime"];
    let gate = [&gate[..], &["--gate-margin", "500us"]].concat();
    let (_device, address) = keys.device("device", &gate);
    succeeds(&keys.with("host", &[&["ping", &address, "--count", "5"], &gate[..]].concat()));
}
