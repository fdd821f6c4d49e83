//! What nodes give up when they start (`--sandbox`), as the kernel reports it.

use crate::support::isolated::isolated;
use crate::support::process::cannot;
use crate::support::program::{device, is_wrong_usage, node, scratch, text};
use crate::support::{ANY, Drive, HostNode, Node, Process, pattern};
use live::net::Namespace;
use rustix::process::Signal;
use std::collections::BTreeSet;

/// Bits of sets (linux/capability.h).
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;

/// The values of a key in the status of each thread (proc_pid_status(5)), each value once.
fn states(node: &Process, key: &str) -> BTreeSet<u64> {
    states_of(&node.pid().as_raw_nonzero().to_string(), key)
}

fn states_of(process: &str, key: &str) -> BTreeSet<u64> {
    let key = format!("{key}:");
    let mut values = BTreeSet::new();
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        // A thread may end between the listing and the reading of its file.
        let Ok(status) = std::fs::read_to_string(task.unwrap().path().join("status")) else {
            continue;
        };
        let value = status.lines().find_map(|line| line.strip_prefix(&key)).unwrap().trim();
        values.insert(u64::from_str_radix(value, 16).unwrap());
    }
    values
}

/// Checks that each thread has at most the capabilities `kept`, which a user other than root lacks.
#[track_caller]
fn is_restricted(node: &Process, kept: u64) {
    let own = states_of("self", "CapPrm").into_iter().next().unwrap();
    for set in ["CapPrm", "CapEff"] {
        assert_eq!(states(node, set), [kept & own].into(), "{set}");
    }
    assert_eq!((states(node, "CapInh"), states(node, "CapAmb")), ([0].into(), [0].into()));
    assert_eq!(states(node, "NoNewPrivs"), [1].into());
    assert_eq!(states(node, "Seccomp"), [2].into(), "SECCOMP_MODE_FILTER (seccomp(2))");
}

fn threads(node: &Process) -> usize {
    let tasks = format!("/proc/{}/task", node.pid().as_raw_nonzero());
    std::fs::read_dir(tasks).unwrap().count()
}

#[test]
fn every_thread_of_a_node_is_restricted_while_it_serves() {
    let folder = scratch("sandbox");
    let (image, trace) = (folder.join("disk.img"), text(&folder.join("traces/x.trace")));
    std::fs::create_dir(folder.join("traces")).unwrap();
    let namespace = format!("file={},size=16M", image.display());
    let options = ["--trace", &trace];
    let device = Node::device_at(ANY, &folder, "device", &[&namespace], &options);
    let host = HostNode::start(&folder, "host", &[device.address()], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    drive.write(0, &pattern(3, 4096));
    assert_eq!(drive.read(0, 8), pattern(3, 4096));
    device.process.signal(Signal::USR2);
    device.process.line("stopped; SIGUSR2 starts it again");
    device.process.signal(Signal::USR2);
    device.process.line("started again");
    assert!(threads(&device.process) > 3, "threads of the file and of the trace");
    is_restricted(&device.process, 0);
    is_restricted(&host.process, 0);
    drop(drive);
    host.stop();
    device.stop();
}

#[test]
fn a_line_states_what_is_in_force() {
    let folder = scratch("sandbox-line");
    let namespace = format!("file={},size=1M", folder.join("disk.img").display());
    let arguments = ["device", "--listen", ANY, "--namespace", &namespace];
    let line = node(&arguments).line("sandbox: ");
    let parts = line.split("; ").collect::<Vec<_>>();
    assert_eq!(parts[0], "sandbox: capabilities none");
    match parts[1].strip_prefix("Landlock ABI ") {
        Some(landlock) => {
            assert!(landlock.ends_with(": 3 folders"), "file, /proc, control: {line}")
        }
        None => cannot("the line about Landlock", parts[1]),
    }
    assert!(parts[2].starts_with("seccomp: ") && parts[2].ends_with(" system calls denied"));
    let (one, _) = device("ram=1M", &["--sandbox", "landlock"]);
    assert_eq!(states(&one, "CapPrm"), states_of("self", "CapPrm"));
    assert_eq!(states(&one, "Seccomp"), states_of("self", "Seccomp"));
    let usage = is_wrong_usage(&["device", "--namespace", "ram=1M", "--sandbox", "selinux"]);
    assert!(usage.contains("invalid layer 'selinux': expected on, off"), "{usage}");
}

#[test]
fn off_leaves_everything() {
    let node = node(&["device", "--listen", ANY, "--namespace", "ram=1M", "--sandbox", "off"]);
    assert_eq!(node.line("sandbox: "), "sandbox: off");
    for key in ["CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"] {
        assert_eq!(states(&node, key), states_of("self", key), "{key}");
    }
}

#[test]
fn a_restricted_switch_connects_again_to_a_device_that_returns() {
    let folder = scratch("sandbox-switch");
    let device = Node::device(&folder, "device", &["ram=1M"]);
    let address = device.address();
    let switch = Node::switch(&folder, "switch", address);
    is_restricted(&switch.process, 0);
    let host = HostNode::start(&folder, "host", &[switch.address()], &[]);
    device.stop();
    switch.process.line("port 0: link down");
    let _device = Node::device_at(address, &folder, "again", &["ram=1M"], &[]);
    switch.process.line("port 0: link up");
    host.stop();
}

#[test]
fn nodes_on_raw_ethernet_keep_what_a_new_connection_needs() {
    isolated("cli::sandbox::nodes_on_raw_ethernet_keep_what_a_new_connection_needs", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let listen = ["device", "--listen", "raw:far0", "--insecure", "--namespace", "ram=1M"];
        let start = || away.enter(|| node(&[&listen[..], &["--priority", "7"]].concat())).unwrap();
        let first = start();
        let address = first.listens().replace("raw:far0,", "raw:near0,");
        is_restricted(&first, NET_RAW | NET_ADMIN);
        let folder = &text(&scratch("sandbox-raw"));
        let options = ["--connect", &address, "--insecure", "--vfio-user", folder];
        let host = node(&[&["host"], &options[..]].concat());
        host.line("ready");
        is_restricted(&host, NET_RAW);
        drop(first);
        host.line("link down");
        let _second = start();
        host.line("link up");
    });
}
