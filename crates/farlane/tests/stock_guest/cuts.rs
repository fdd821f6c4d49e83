//! A guest whose drive's connection is cut under verified reads and writes.

use std::time::Duration;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::cutter::{Cutter, Path};
use crate::support::{ANY, HostNode, Node, folder};

/// Cuts the connection for these times, in ms, while fio runs in the guest.
pub fn survives(name: &str, cuts: impl IntoIterator<Item = (Path, u64)>) {
    let folder = folder::kept(name);
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &[]);
    let cutter = Cutter::start(device.address());
    let host = HostNode::start(&folder, "host", &[cutter.address()], &[]);
    let mut guest = Guest::builder(&format!("{name}/guest")).drive(&host, 0).start();
    guest.run(&workload::attached(1));
    guest.run(&workload::verifying(0));
    for (path, ms) in cuts {
        cutter.cut(path, Duration::from_millis(ms));
        cutter.carries(1 << 16);
    }
    println!("{}", guest.run(&workload::verified()).text);
    guest.power_off();
    host.stop();
    device.stop();
}

#[test]
fn a_guest_notices_no_error_through_ten_cuts() {
    let cuts = [50, 1_300, 5, 400, 950, 20, 2_000, 100, 700, 10];
    let paths = [Path::Silent, Path::Reset].into_iter().cycle();
    survives("cuts", paths.zip(cuts));
}
