//! Guests that reboot.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::{HostNode, Node, folder};

#[test]
fn a_guest_that_reboots_finds_its_drive_and_takes_new_contents() {
    let folder = folder::kept("reboot");
    let start = |at: &str, name: &str| {
        let options = ["--serial", "REBOOT"];
        Node::device_at(at, &folder, name, &["ram=64M"], &options)
    };
    let mut device = start("127.0.0.1:0", "device");
    let address = device.address().to_string();
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("reboot/guest").drive(&host, 0).start();
    guest.run(&workload::fill(0, 8));
    guest.reboot();
    guest.run(&workload::attached(1));
    workload::briefly(&mut guest, 0);

    // The drive loses its data while the guest runs. Only after a reboot the guest gets the new
    // contents.
    device.process.kill();
    let device = start(&address, "again");
    host.process.line("new contents");
    assert!(!host.process.stderr.text().contains("attached again"));
    guest.reboot();
    host.process.line("attached again with new contents");
    guest.run(&workload::attached(1));
    guest.run(&workload::empty(0, 8));
    workload::briefly(&mut guest, 0);
    guest.power_off();
    host.stop();
    device.stop();
}
