//! A stock guest on drives behind farlane: device nodes and a host node in
//! processes of their own, joined by TCP.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::folder;
use crate::guest::{Guest, Memory};
use crate::node::{DeviceNode, HostNode};
use crate::relay::Relay;
use crate::workload;

/// What the host node says when a device node is lost, and when it is back.
const LINK_DOWN: &str = "link down";
const LINK_UP: &str = "link up";

fn namespace(disk: &Path) -> String {
    format!("file={},size=128M", disk.display())
}

#[test]
fn remote_drive_keeps_files() {
    let folder = folder::kept("remote");
    let namespace = namespace(&folder.join("disk.img"));

    let device = DeviceNode::start(&folder, "first-device", &[&namespace]);
    let relay = Relay::start(device.address(), &folder.join("first-capture"));
    let host = HostNode::start(&folder, "first-host", &[relay.address()], &[]);
    let mut guest = Guest::builder("remote/first-guest")
        .device(host.endpoint(0, json!({})).to_string())
        .start();
    let checksums = workload::everything(&mut guest, 0);
    let commands = guest.commands();
    guest.power_off();
    assert!(host.stop().success());
    assert!(device.stop().success());
    let recordings = relay.finish();
    for recording in &recordings {
        println!(
            "{} commands; captured {} bytes to the device, {} to the host, {} chunks",
            commands.len(),
            recording.to_target.len(),
            recording.to_client.len(),
            recording.chunks.len(),
        );
    }

    let device = DeviceNode::start(&folder, "second-device", &[&namespace]);
    let host = HostNode::start(&folder, "second-host", &[device.address()], &[]);
    let mut guest = Guest::builder("remote/second-guest")
        .device(host.endpoint(0, json!({})).to_string())
        .start();
    guest.run(&workload::again(0, &checksums));
    guest.power_off();
}

#[test]
fn remote_drives_from_two_nodes() {
    let folder = folder::kept("two");
    let devices = ["a", "b"].map(|name| {
        let namespace = namespace(&folder.join(format!("{name}.img")));
        DeviceNode::start(&folder, &format!("device-{name}"), &[&namespace])
    });
    let addresses = devices.each_ref().map(DeviceNode::address);
    let host = HostNode::start(&folder, "host", &addresses, &[]);
    let mut guest = Guest::builder("two/guest")
        .device(host.endpoint(0, json!({})).to_string())
        .device(host.endpoint(1, json!({})).to_string())
        .start();
    workload::two_drives(&mut guest);
    guest.power_off();
}

#[test]
fn remote_drive_without_shared_memory() {
    let folder = folder::kept("private");
    let namespace = namespace(&folder.join("disk.img"));
    let device = DeviceNode::start(&folder, "device", &[&namespace]);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("private/guest")
        .memory(Memory::Private)
        .device(host.endpoint(0, json!({})).to_string())
        .start();
    workload::briefly(&mut guest, 0);
    guest.power_off();
}

#[test]
fn remote_drive_is_lost_and_found() {
    let folder = folder::kept("lost");
    let namespace = namespace(&folder.join("disk.img"));
    let mut device = DeviceNode::start(&folder, "device", &[&namespace]);
    let mut host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("lost/guest")
        .kernel("nvme_core.io_timeout=5")
        .kernel(workload::RELAXED)
        .root_port("rp")
        .device(host.endpoint(0, json!({"bus": "rp", "id": "drive"})).to_string())
        .start();

    guest.run(&workload::load(0));
    device.process.kill();
    let output = guest.run(&workload::status_register("0000:01:00.0", u32::MAX));
    // Of which the guest's shell takes some tenths.
    assert!(output.elapsed < Duration::from_secs(1));
    host.process.stderr.wait_for(LINK_DOWN, Duration::from_secs(1));
    guest.run(&workload::lost(0, Duration::from_secs(40)));
    assert!(host.process.is_running());
    guest.run(&workload::remove("0000:01:00.0"));

    let _device = DeviceNode::start_at(device.address(), &folder, "again", &[&namespace]);
    host.process.stderr.wait_for(LINK_UP, Duration::from_secs(10));
    guest.run(&workload::rescan());
    guest.run(&workload::attached(1));
    workload::briefly(&mut guest, 0);

    guest.qmp("device_del", json!({"id": "drive"}));
    guest.qmp_event("DEVICE_DELETED");
    guest.run(&workload::attached(0));
    guest.qmp("device_add", host.endpoint(0, json!({"bus": "rp", "id": "anew"})));
    guest.run(&workload::attached(1));
    workload::briefly(&mut guest, 0);
    guest.power_off();
}
