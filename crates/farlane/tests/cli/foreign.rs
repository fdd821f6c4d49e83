//! Devices of other programs: `farlane device --vfio-user-endpoint`. The other program is a host node
//! that offers the drive of a device node, and gets its memory by message.

use crate::support::drive::{BLOCK, Drive, pattern};
use crate::support::program::{fails, node, scratch, succeeds, text};
use crate::support::{HostNode, Node, Process};
use rustix::process::Signal;
use std::path::Path;

struct Chain {
    _device: Node,
    endpoint: HostNode,
    foreign: Process,
}

fn chain(folder: &Path) -> Chain {
    let device = Node::device(folder, "device", &["ram=4M"]);
    let endpoint = HostNode::start(folder, "endpoint", &[device.address()], &[]);
    let socket = text(&endpoint.socket(0));
    let listen = ["device", "--listen", "127.0.0.1:0", "--vfio-user-endpoint", &socket];
    Chain { _device: device, endpoint, foreign: node(&listen) }
}

#[test]
fn the_device_of_another_program_is_used_as_its_own() {
    let folder = scratch("foreign");
    let Chain { mut foreign, endpoint, _device } = chain(&folder);
    foreign.line("[fa12:0001], 65 MSI-X vectors");
    let address = foreign.listens();
    let io = ["io", "--connect", &address, "--rw", "randrw", "--bs", "64k", "--size", "2M"];
    let checked = ["--iodepth", "8", "--verify", "--destructive", "--yes"];
    succeeds(&[&io[..], &checked].concat());
    let host = HostNode::start(&folder, "host", &[address.parse().unwrap()], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    let data = pattern(7, 128 * BLOCK);
    drive.write(9, &data);
    drive.reset_function();
    drive.recover_from_reset();
    assert!(drive.read(9, 128) == data);
    drop(drive);
    host.stop();
    assert!(foreign.interrupt().success());
    endpoint.stop();
}

#[test]
fn an_endpoint_that_hangs_or_dies_costs_its_own_port() {
    let folder = scratch("foreign-hangs");
    let local = Node::device(&folder, "local", &["ram=1M"]);
    for (signal, why) in [(Signal::STOP, "no reply within 5 s"), (Signal::KILL, "closed")] {
        let Chain { mut foreign, endpoint, _device } = chain(&folder);
        let address = foreign.listens().parse().unwrap();
        let host =
            HostNode::start(&folder, "host", &[local.address(), address], &["--survive", "0"]);
        let [mut other, drive] = [0, 1].map(|one| Drive::attach_to(&host.socket(one), false));
        endpoint.process.signal(signal);
        drive.wait_until_gone();
        let line = foreign.line("farlane: ");
        assert!(line.contains("/0/cntrl: ") && line.contains(why), "{line}");
        assert_eq!(foreign.wait().code(), Some(1));
        other.write(0, &pattern(1, BLOCK));
        endpoint.process.signal(Signal::CONT);
    }
}

#[test]
fn what_is_no_endpoint_is_refused() {
    let folder = scratch("foreign-refused");
    let missing = text(&folder.join("missing"));
    let command = ["device", "--listen", "127.0.0.1:0", "--vfio-user-endpoint"];
    fails(&[&command[..], &[&missing]].concat(), &["missing: No such file"]);
}
