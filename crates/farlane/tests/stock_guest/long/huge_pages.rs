//! Guests whose memory is huge pages.

use std::io::Write;

use crate::stock_guest::guest::{Guest, Memory};
use crate::stock_guest::workload;
use crate::support::folder;
use crate::support::huge::{FileSystem, PAGE, Pool};
use crate::support::node::{HostNode, Node};

/// Pages of one guest's memory.
const PAGES: u64 = (512 << 20) / PAGE;

#[test]
fn remote_drive_with_huge_pages() {
    let had = Pool::reserve(PAGES).and_then(|pool| Ok((pool, FileSystem::new(PAGES)?)));
    let (_pool, system) = match had {
        Ok(had) => had,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "NOT TESTED: guests with huge pages: {why}");
            return;
        }
    };
    let folder = folder::kept("huge");
    let device = Node::device(&folder, "device", &["ram=128M"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    for (name, memory) in [("memfd", Memory::Huge), ("file", Memory::Folder(system.path()))] {
        let mut guest =
            Guest::builder(&format!("huge/{name}")).memory(memory).drive(&host, 0).start();
        workload::briefly(&mut guest, 0);
        guest.power_off();
    }
    host.stop();
    device.stop();
}
