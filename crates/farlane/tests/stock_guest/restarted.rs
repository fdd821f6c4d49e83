//! Nodes that restart or end while a guest with default timeouts reads.

use std::time::Duration;

use crate::stock_guest::guest::{Builder, Guest};
use crate::stock_guest::workload;
use crate::support::{ANY, HostNode, Node, folder};

/// Maximum time until reads continue. The aim is 2 s, and an emulated guest takes 1.3 s on a busy
/// machine. Linux aborts a command only after 30 s, and resets the controller after 30 s more.
const AT_ONCE: Duration = Duration::from_secs(5);

/// The controller was reset without the driver. An event informs the driver.
#[test]
fn a_guest_with_default_time_outs_goes_on_at_once_after_a_restart_of_its_device_node() {
    let stops = [("stopped", true), ("killed", false), ("stopped-again", true)];
    goes_on_at_once("at-once", |guest| guest, &stops);
}

/// The host node accesses the guest's memory by messages.
#[test]
fn a_guest_without_shared_memory_goes_on_at_once_after_a_restart_of_its_device_node() {
    goes_on_at_once("by-message", |guest| guest.memory(None), &[("stopped", true)]);
}

/// Restarts the device node of a guest that reads. `stops` has a name for each restart, and whether
/// the node ends in order.
fn goes_on_at_once(name: &str, with: impl FnOnce(Builder) -> Builder, stops: &[(&str, bool)]) {
    let folder = folder::kept(name);
    let namespace = format!("file={},size=64M", folder.join("disk.img").display());
    let mut device = Node::device_at(ANY, &folder, "device", &[&namespace], &[]);
    let address = device.address();
    let host = HostNode::start(&folder, "host", &[address], &[]);
    let mut guest = with(Guest::builder(&format!("{name}/guest")).drive(&host, 0)).start();
    guest.run(&workload::attached(1));
    guest.run(&workload::fill(0, 8));
    guest.run(&workload::reading(&[0]));
    for (name, orderly) in stops {
        if *orderly {
            device.stop();
            host.process.line("link down");
            device = Node::device_at(address, &folder, name, &[&namespace], &[]);
        } else {
            device.process.kill();
            host.process.line("link interrupted");
            device = Node::device_at(address, &folder, name, &[&namespace], &[]);
            host.process.line("link down");
        }
        host.process.line("attached again");
        let output = guest.run(&workload::stalled(0, AT_ONCE));
        println!("{name}: reads go on {} ms after the drive", output.elapsed.as_millis());
    }
    guest.power_off();
    host.stop();
    device.stop();
}

/// QEMU 11.1 aborts if it loses its server while two processors access the endpoint.
#[test]
fn a_host_node_that_ends_under_the_io_of_two_processors_leaves_qemu_running() {
    let folder = folder::kept("ended");
    let devices = ["a", "b"].map(|name| {
        Node::device(
            &folder,
            name,
            &[&format!("file={}.img,size=64M", folder.join(name).display())],
        )
    });
    let host = HostNode::start(&folder, "host", &devices.each_ref().map(Node::address), &[]);
    let mut guest = Guest::builder("ended/guest")
        .kernel("nvme_core.io_timeout=5")
        .drive(&host, 0)
        .drive(&host, 1)
        .start();
    guest.run(&workload::attached(2));
    for drive in [0, 1] {
        guest.run(&workload::load(drive));
    }
    host.stop();
    guest.run(&workload::dead(&[0, 1], Duration::from_secs(40)));
    guest.power_off();
    for device in devices {
        device.stop();
    }
}
