//! A guest with two paths to one namespace, each of which is lost under verified reads and writes.

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::cutter::{Cutter, Path};
use crate::support::{ANY, HostNode, Node, folder};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn a_guest_survives_the_loss_of_either_path() {
    let folder = folder::kept("multipath");
    let options = ["--listen", ANY, "--access", "optimized,non-optimized"];
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &options);
    let second = device.process.listens().parse().expect("an address");
    let cutters = [device.address(), second].map(Cutter::start);
    let addresses = [0, 1].map(|path| cutters[path].address());
    let host = HostNode::start(&folder, "host", &addresses, &[]);
    let guest = Guest::builder("multipath/guest").drive(&host, 0).drive(&host, 1);
    let mut guest = guest.start();
    println!("{}", guest.run(&workload::multipath("both")).text);
    guest.run(&workload::verifying_the_only());
    guest.run(&workload::multipath("only 1 2"));
    for (lost, how, kept) in [(0, Path::Silent, "only 2 1"), (1, Path::Reset, "only 1 2")] {
        cutters[lost].set(how);
        host.process.line("interrupted");
        guest.run(&workload::multipath(kept));
        sleep(Duration::from_secs(3));
        cutters[lost].set(Path::Open);
        guest.run(&workload::multipath(&format!("back {}", lost + 1)));
    }
    println!("{}", guest.run(&workload::multipath("end")).text);
    guest.power_off();
    host.stop();
    device.stop();
}
