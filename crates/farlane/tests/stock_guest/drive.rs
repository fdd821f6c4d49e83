//! A drive in a folder that is used, killed, used again, and moved to another folder.

use crate::cli::drive::create;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::program::json;
use crate::support::{ANY, HostNode, Node, folder};

#[test]
fn a_drive_is_killed_and_moved() {
    let folder = folder::kept("folder-drive");
    let [place, moved] = ["drive", "moved"].map(|name| folder.join(name));
    create(&place, "128M", &["size=64M", "size=64M,block=4096"]);
    let shown = json(&["drive", "show", place.to_str().unwrap(), "--json"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let nguids = [0, 1].map(|index| text(&shown["namespaces"][index]["nguid"]));
    let look = |cycles, shutdowns, when| {
        workload::folder_drive(0, &text(&shown["serial"]), &nguids)
            .argument(cycles)
            .argument(shutdowns)
            .argument(when)
    };

    let mut device = Node::drive_at(ANY, &folder, "first-device", &place);
    let address = device.address();
    let host = HostNode::start(&folder, "host", &[address], &[]);
    let mut guest = Guest::builder("folder-drive/guest")
        .kernel("nvme_core.io_timeout=5")
        .drive(&host, 0)
        .start();
    guest.run(&look(1, 0, "first"));

    // The next process goes on: no loss of power, and no reset.
    device.process.kill();
    let device = Node::drive_at(address, &folder, "killed-device", &place);
    host.process.line("link resumed");
    guest.run(&look(1, 0, "again"));

    // The device node ends in order, but the guest's driver has not shut the controller down.
    device.stop();
    host.process.line("link down");
    std::fs::rename(&place, &moved).unwrap();
    let device = Node::drive_at(address, &folder, "moved-device", &moved);
    host.process.line("attached again");
    guest.run(&look(2, 1, "again"));
    guest.power_off();
    host.stop();
    device.stop();
    // Linux shuts the controller down before the guest ends.
    let shown = json(&["drive", "show", moved.to_str().unwrap(), "--json"]);
    assert_eq!(shown["health"]["running"], false);
    assert_eq!(shown["health"]["unsafe_shutdowns"], 1);
    // The last counts of the killed process were not stored.
    assert!(shown["health"]["bytes_read"].as_u64().unwrap() >= 2 * 2 * 65536, "{shown}");
}

#[test]
fn nvme_cli_manages_a_drive() {
    let folder = folder::kept("managed-drive");
    let place = folder.join("drive");
    create(&place, "128M", &["size=16M"]);
    let device = Node::drive_at(ANY, &folder, "device", &place);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("managed-drive/guest").drive(&host, 0).start();
    guest.run(&workload::admin(0));
    println!("{}", guest.run(&workload::manage(0)).text);
    guest.power_off();
    host.stop();
    device.stop();
    // The contents of the deleted namespace no longer exist.
    let shown = json(&["drive", "show", place.to_str().unwrap(), "--json"]);
    assert_eq!(shown["namespaces"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(place.join("contents")).unwrap().count(), 1);
}

#[test]
fn a_stock_guest_uses_protection_information() {
    let folder = folder::kept("protected-drive");
    let place = folder.join("drive");
    create(&place, "16M", &["size=16M"]);
    let device = Node::drive_at(ANY, &folder, "device", &place);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut guest = Guest::builder("protected-drive/guest").drive(&host, 0).start();
    guest.run(&workload::protection(0));
    guest.power_off();
    host.stop();
    device.stop();
}
