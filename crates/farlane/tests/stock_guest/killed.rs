//! A guest whose drive's process is killed under verified reads and writes.

use std::time::Duration;

use crate::cli::drive::create;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::restarts::Restarts;
use crate::support::{HostNode, folder};

/// Kills the process after these times, in ms, while fio runs in the guest.
pub fn survives(name: &str, times: impl IntoIterator<Item = u64>) {
    let folder = folder::kept(name);
    let place = folder.join("drive");
    create(&place, "64M", &[]);
    let mut restarts = Restarts::start(&folder, &place);
    let host = HostNode::start(&folder, "host", &[restarts.address()], &[]);
    let mut guest = Guest::builder(&format!("{name}/guest")).drive(&host, 0).start();
    guest.run(&workload::attached(1));
    guest.run(&workload::verifying(0));
    for time in times {
        restarts.kill(Duration::from_millis(time), Duration::ZERO);
    }
    println!("{}", guest.run(&workload::verified()).text);
    guest.power_off();
    host.stop();
    restarts.stop();
}

#[test]
fn a_guest_notices_no_error_through_ten_kills() {
    survives("kills", (0..10).map(|kill| kill * 370 % 1_100));
}
