//! Guests with memory in huge pages.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::huge::{PAGE, reserve};
use crate::support::{HostNode, Node, folder};

/// Number of huge pages of one guest's memory.
const PAGES: u64 = (512 << 20) / PAGE;

#[test]
fn remote_drive_with_huge_pages() {
    let Some((_pool, system)) = reserve("guests with huge pages", PAGES) else { return };
    let folder = folder::kept("huge");
    let device = Node::device(&folder, "device", &["ram=128M"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let file = format!("file,mem-path={}", system.path());
    for (name, memory) in [("memfd", "memfd,hugetlb=on"), ("file", &file)] {
        let mut guest =
            Guest::builder(&format!("huge/{name}")).memory(Some(memory)).drive(&host, 0).start();
        workload::briefly(&mut guest, 0);
        guest.power_off();
    }
    host.stop();
    device.stop();
}
