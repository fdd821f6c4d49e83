//! Stock guests with drives of farlane: device nodes and a host node are separate processes,
//! connected by TCP.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::stock_guest::capture;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::traced::Traces;
use crate::stock_guest::workload;
use crate::support::{ANY, HostNode, Node, Relay, check, folder};

fn namespace(disk: &Path) -> String {
    format!("file={},size=128M", disk.display())
}

#[test]
fn remote_drive_keeps_files() {
    let folder = folder::kept("remote");
    let disk = folder.join("disk.img");
    let namespace = namespace(&disk);

    let traces = Traces::new(&folder);
    let [host_options, device_options] = traces.options();
    let device = Node::device_at(ANY, &folder, "first-device", &[&namespace], &device_options);
    let relay = Relay::start(device.address());
    let host = HostNode::start(&folder, "first-host", &[relay.address()], &host_options);
    let mut guest = Guest::builder("remote/first-guest").drive(&host, 0).start();
    let checksums = workload::everything(&mut guest, 0);
    let commands = guest.commands();
    guest.power_off();
    host.stop();
    device.stop();
    let recordings = relay.finish();
    capture::check(&recordings, &commands, &disk);
    // Wireshark and the traces of the nodes must show the same run.
    let [recording] = &recordings[..] else { panic!("{} connections", recordings.len()) };
    check::recorded(&folder, recording, |expected| traces.check(expected));

    let device = Node::device(&folder, "second-device", &[&namespace]);
    let host = HostNode::start(&folder, "second-host", &[device.address()], &[]);
    let mut guest = Guest::builder("remote/second-guest").drive(&host, 0).start();
    guest.run(&workload::again(0, &checksums));
    guest.power_off();
}

#[test]
fn remote_drives_from_two_nodes() {
    let folder = folder::kept("two");
    let devices = ["a", "b"].map(|name| {
        let namespace = namespace(&folder.join(format!("{name}.img")));
        Node::device(&folder, &format!("device-{name}"), &[&namespace])
    });
    let addresses = devices.each_ref().map(Node::address);
    let host = HostNode::start(&folder, "host", &addresses, &[]);
    let mut guest = Guest::builder("two/guest")
        .kernel("nvme_core.io_timeout=5")
        .drive(&host, 0)
        .drive(&host, 1)
        .start();
    workload::two_drives(&mut guest);

    // The end of a host node removes its drives. The guest continues.
    host.stop();
    guest.run(&workload::dead(&[0, 1], Duration::from_secs(40)));
    for device in devices {
        device.stop();
    }
    guest.power_off();
}

#[test]
fn remote_drive_without_shared_memory() {
    let folder = folder::kept("private");
    let namespace = namespace(&folder.join("disk.img"));
    let device = Node::device(&folder, "device", &[&namespace]);
    // A second switch is in front of the drive in the same run of the guest.
    let switch = Node::switch(&folder, "switch", device.address());
    let host = HostNode::start(&folder, "host", &[switch.address()], &[]);
    let mut guest = Guest::builder("private/guest").memory(None).drive(&host, 0).start();
    workload::briefly(&mut guest, 0);
    guest.power_off();
    host.stop();
    switch.stop();
    device.stop();
}

#[test]
fn remote_drive_with_mapped_doorbells() {
    let folder = folder::kept("mapped");
    let namespace = namespace(&folder.join("disk.img"));
    let device = Node::device(&folder, "device", &[&namespace]);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--mmap-doorbells"]);
    let mut guest = Guest::builder("mapped/guest").drive(&host, 0).start();
    // The page is memory of the guest, so writes of doorbells do not reach QEMU.
    let tree = guest.qmp("human-monitor-command", json!({"command-line": "info mtree"}));
    assert!(tree.as_str().unwrap().contains("BAR 0 mmaps[0]"), "{tree}");
    workload::briefly(&mut guest, 0);
    guest.power_off();
}

#[test]
fn remote_drive_and_stock_tools() {
    let folder = folder::kept("tools");
    let [first, second, third] = ["first", "second", "third"].map(|name| folder.join(name));
    fs::write(&third, vec![b'Z'; 4 << 20]).unwrap();
    let namespaces = [
        format!("file={},size=64M", first.display()),
        format!("file={},size=64M,block=4096", second.display()),
        format!("file={},ro", third.display()),
    ];
    let device = Node::device(&folder, "device", &namespaces.each_ref().map(|n| &n[..]));
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("tools/guest").kernel(workload::RELAXED).drive(&host, 0).start();
    guest.run(&workload::tools(0));
    guest.power_off();
}
