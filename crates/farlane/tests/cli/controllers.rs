//! Drives with several controllers: one `--listen` for each.

use super::keys::Keys;
use super::survival::undisturbed;
use crate::support::program::{fails, farlane, is_wrong_usage, node, scratch, succeeds};
use crate::support::{ANY, Node, Process};
use std::thread;
use std::time::Duration;

/// A device node with two controllers, and their addresses.
pub fn two(options: &[&str]) -> (Process, [String; 2]) {
    let listen = ["device", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let device = node(&[&listen[..], &["--namespace", "ram=8M"], options].concat());
    let addresses = [(); 2].map(|()| device.listens());
    (device, addresses)
}

#[test]
fn two_hosts_use_one_drive_at_once() {
    let (mut device, addresses) = two(&[]);
    let io = |address: &str, offset: &str, more: &[&str]| {
        let work = ["io", "--connect", address, "--bs", "16k", "--offset", offset, "--size", "2M"];
        succeeds(&[&work[..], more].concat())
    };
    let write = ["--rw", "randrw", "--iodepth", "8", "--loops", "4", "--verify", "--destructive"];
    let write = [&write[..], &["--yes", "--randseed", "5"]].concat();
    thread::scope(|scope| {
        for (address, offset) in addresses.iter().zip(["0", "4M"]) {
            scope.spawn(|| io(address, offset, &write));
        }
    });
    // What one has written, the other reads.
    let fill = ["--rw", "write", "--randseed", "9", "--destructive", "--yes"];
    io(&addresses[0], "0", &[&fill[..], &["--verify"]].concat());
    let check = ["--rw", "write", "--randseed", "9", "--verify_only"];
    io(&addresses[1], "0", &check);
    assert!(device.interrupt().success());
    let said = device.stderr.text();
    for number in 1..=2 {
        assert!(
            said.contains(&format!("controller {number}: uplink: endpoint_errors: none")),
            "{said}"
        );
    }
}

/// Both hosts go on with the next process.
#[test]
fn kills_of_a_drive_cost_neither_host_a_transfer() {
    let folder = scratch("controllers-killed");
    let place = folder.join("drive");
    let name = place.to_str().unwrap();
    succeeds(&["drive", "create", name, "--capacity", "64M", "--controllers", "2"]);
    let (mut device, second) = Node::controllers([ANY; 2], &folder, "device", &place, &[]);
    let addresses = [device.address(), second].map(|address| address.to_string());
    let mut loads: Vec<Process> = (0..2)
        .map(|number| {
            let offset = format!("{}M", 32 * number);
            let io = ["io", "--connect", &addresses[number], "--rw", "randrw", "--iodepth", "4"];
            let part = ["--offset", &offset, "--size", "32M", "--verify", "--destructive"];
            let more = ["--yes", "--runtime", "4", "--time_based", "--json"];
            let load = farlane(&[&io[..], &part, &more].concat());
            Process::start(&mut { load }, &format!("load-{number}"), &folder)
        })
        .collect();
    for kill in 0..5 {
        thread::sleep(Duration::from_millis(300 + kill * 170 % 500));
        device.process.kill();
        let addresses = [&*addresses[0], &*addresses[1]];
        let name = format!("device-{kill}");
        (device, _) = Node::controllers(addresses, &folder, &name, &place, &[]);
        for _ in 0..2 {
            device.process.line("resumed");
        }
    }
    for load in &mut loads {
        undisturbed(load);
    }
    device.stop();
}

#[test]
fn key_decides_which_controller_a_host_has() {
    let keys = Keys::new("keys-controllers", &["store", "one", "any"]);
    keys.peers("store", "one {one} use controllers=2\nany {any} use,probe");
    for name in ["one", "any"] {
        keys.peers(name, "store {store} serve");
    }
    let options = keys.with("store", &[]);
    let (mut device, [first, second]) = two(&options);
    let io = |name, address: &str| {
        let work = ["io", "--connect", address, "--rw", "randread", "--number_ios", "8"];
        keys.with(name, &[&work[..], &["--wait", "1"]].concat())
    };
    fails(&io("one", &first), &["right for this role and group"]);
    device.line("controller 1: rejected");
    succeeds(&io("one", &second));
    for address in [&first, &second] {
        succeeds(&io("any", address));
    }
    assert!(device.interrupt().success());
}

#[test]
fn a_trace_has_one_controller() {
    let listen = ["device", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let more = ["--namespace", "ram=8M", "--trace", "x"];
    is_wrong_usage(&[&listen[..], &more].concat());
}
