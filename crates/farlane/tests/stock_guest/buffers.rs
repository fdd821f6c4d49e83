//! A drive with shadow doorbells in the guest's memory.

use crate::cli::drive::create;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::{ANY, HostNode, Node, folder};

#[test]
fn a_guest_keeps_the_doorbells() {
    let folder = folder::kept("doorbell-buffer");
    let place = folder.join("drive");
    create(&place, "64M", &["size=64M"]);
    let options = ["--drive", place.to_str().unwrap(), "--doorbell-buffer"];
    let device = Node::device_at(ANY, &folder, "device", &[], &options);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("doorbell-buffer/guest").drive(&host, 0).start();
    guest.run(&workload::events(0));
    guest.run(&workload::transfer(0, 8));
    guest.run(&workload::fio(8, &[0]));
    guest.run(&workload::events(0));
    guest.run(&workload::transfer(0, 4));
    guest.power_off();
    host.stop();
    device.stop();
}
