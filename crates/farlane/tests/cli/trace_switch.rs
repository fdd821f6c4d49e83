//! Traces that are stopped and restarted while nodes run, and trace files on a full disk.

use crate::support::drive::Drive;
use crate::support::program::{farlane, json, ping, scratch, text};
use crate::support::{ANY, HostNode, Node, Process};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};
use std::path::Path;

/// Returns the number of reads in a trace.
fn reads(trace: &Path) -> u64 {
    json(&["trace", &text(trace), "--opcode", "read", "--json"])["selected"].as_u64().unwrap()
}

#[test]
fn traces_of_running_nodes_are_stopped_and_started_again_by_sigusr2() {
    let folder = scratch("trace-switch");
    let [device_trace, host_trace] = ["device.trace", "host.trace"].map(|name| folder.join(name));
    let device =
        Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--trace", &text(&device_trace)]);
    let options = ["--trace", &text(&host_trace)];
    let host = HostNode::start(&folder, "host", &[device.address()], &options);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    let read = |drive: &mut Drive, times| (0..times).for_each(|_| _ = drive.read(0, 1));
    let switch = |says: &str| {
        for node in [&device.process, &host.process] {
            node.signal(Signal::USR2);
            let line = node.line("trace ");
            assert!(line.ends_with(says), "{line}");
        }
    };
    read(&mut drive, 10);
    switch(".trace stopped; SIGUSR2 starts it again");
    read(&mut drive, 200);
    switch(".trace started again");
    read(&mut drive, 30);
    drop(drive);
    host.stop();
    device.stop();
    // The analyser continues with the queues from before the gap. It may miss a command whose
    // doorbell is in the gap.
    for trace in [device_trace, host_trace] {
        assert!((39..=41).contains(&reads(&trace)), "{trace:?}: {}", reads(&trace));
    }
}

#[test]
fn a_node_without_a_trace_survives_a_signal_for_it() {
    let folder = scratch("trace-none");
    let device = Node::device(&folder, "device", &["ram=1M"]);
    device.process.signal(Signal::USR2);
    device.process.line("no trace to start: the node has no --trace");
    device.stop();
}

/// Starts a device node that records into `trace`. A file size limit (RLIMIT_FSIZE) of
/// `blocks_of_512` blocks replaces a small disk.
fn device_on_small_disk(folder: &Path, trace: &Path, blocks_of_512: u32) -> (Process, String) {
    let program = farlane(&["device", "--listen", ANY, "--namespace", "ram=1M", "--trace"]);
    let script = format!("trap '' XFSZ; ulimit -S -f {blocks_of_512}; exec \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(program.get_program()).args(program.get_args());
    let node = Process::start(command.arg(trace), "device", folder);
    let address = node.listens();
    (node, address)
}

#[test]
fn a_full_disk_is_reported_when_it_happens_and_the_last_lines_appear_all_the_same() {
    let folder = scratch("trace-full");
    let trace = folder.join("full.trace");
    let (mut node, address) = device_on_small_disk(&folder, &trace, 1);
    ping(&address, "20");
    let full = node.line("cannot write");
    assert!(full.contains("full.trace: File too large") && full.ends_with("; the trace stops"));
    ping(&address, "20");
    assert_eq!(node.interrupt().code(), Some(1));
    let log = node.stderr.text();
    assert_eq!(log.matches("cannot write").count(), 1, "{log}");
    let last: Vec<&str> = log.lines().rev().take(2).collect();
    assert_eq!(last[1], "all data are on the media");
    assert!(log.contains("\nuplink: rejected: "), "{log}");
    assert!(last[0].starts_with("farlane: the trace ") && last[0].contains("is not complete"));
}

#[test]
fn a_trace_on_a_disk_with_room_again_goes_on_after_a_signal() {
    let folder = scratch("trace-room");
    let trace = folder.join("room.trace");
    let (mut node, address) = device_on_small_disk(&folder, &trace, 1);
    let load = ["io", "--connect", &address, "--rw", "read", "--size", "64k"];
    let run = || assert!(farlane(&load).status().unwrap().success());
    run();
    node.line("cannot write");
    run();
    let most = getrlimit(Resource::Fsize).maximum;
    prlimit(Some(node.pid()), Resource::Fsize, Rlimit { current: most, maximum: most }).unwrap();
    node.signal(Signal::USR2);
    node.line("room.trace started again");
    run();
    assert_eq!(node.interrupt().code(), Some(1));
    let log = node.stderr.text();
    assert_eq!(log.matches("cannot write").count(), 1, "{log}");
    let found = json(&["trace", &text(&trace), "--opcode", "read", "--json"]);
    // The recorded run has 16 transfers of 4 KiB.
    assert_eq!(found["selected"], 16);
    assert_eq!(found["nodes"][0]["cut"], false);
    assert!(found["nodes"][0]["gaps"].as_u64() > Some(0), "{}", found["nodes"][0]);
}
