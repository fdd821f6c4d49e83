//! CPUs and threads: a CPU reserved for the talker, and kernel threads with real-time priority.

use super::place::Place;
use super::step::Steps;
use crate::machine::threads::{Thread, threads};
use std::os::unix::fs::MetadataExt;

/// Where control groups are (Linux Documentation/admin-guide/cgroup-v2.rst).
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the control group of the talker.
pub fn group(place: &Place) -> String {
    format!("{GROUPS}/{}-talker", place.0)
}

/// Adds the steps that reserve a CPU for the talker's group: a cpuset partition without load
/// balancing (cpuset.cpus.partition in cgroup-v2.rst).
pub fn isolate(cpu: usize, place: &Place, steps: &mut Steps) {
    let (all, group) = (format!("{GROUPS}/cgroup.subtree_control"), group(place));
    // Other programs may have enabled the controller already.
    let controllers = std::fs::read_to_string(&all).unwrap_or_default();
    if !controllers.split_whitespace().any(|controller| controller == "cpuset") {
        steps.undone(format!("echo +cpuset >{all}"), format!("echo -cpuset >{all}"));
    }
    steps.undone(format!("mkdir {group}"), format!("test ! -d {group} || rmdir {group}"));
    steps.run(format!("echo {cpu} >{group}/cpuset.cpus"));
    steps.run(format!("echo isolated >{group}/cpuset.cpus.partition"));
    // The file contains `isolated invalid (why)` if the partition is not valid.
    steps.run(format!(
        "grep -qx isolated {group}/cpuset.cpus.partition || \
         {{ cat {group}/cpuset.cpus.partition >&2; false; }}"
    ));
}

/// Returns the kernel threads that process the frames: softirq threads, and vhost threads of
/// processes in the bridge's namespace. The name of a vhost thread contains the number of its
/// process (Linux drivers/vhost/vhost.c). Names are checked because they become part of a shell
/// line, and any process may choose such names for its threads.
pub fn waited_for(place: &Place) -> Vec<Thread> {
    let namespace = identity(&format!("/run/netns/{}", place.bridge()));
    let is_ours = |pid: &str| {
        pid.parse::<u32>().is_ok()
            && namespace.is_some()
            && identity(&format!("/proc/{pid}/ns/net")) == namespace
    };
    let waited_for = |thread: &Thread| match thread.name.split_once(['/', '-']) {
        Some(("ksoftirqd", cpu)) => thread.is_kernel && cpu.parse::<u32>().is_ok(),
        Some(("vhost", owner)) => is_ours(owner),
        _ => false,
    };
    threads().into_iter().filter(waited_for).collect()
}

/// Returns device and inode, which identify a file.
fn identity(path: &str) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Adds the steps that run these threads as SCHED_FIFO. Threads with a real-time priority are not
/// changed.
pub fn prioritise(priority: u8, place: &Place, steps: &mut Steps) {
    for Thread { pid, name, .. } in waited_for(place).iter().filter(|thread| thread.priority == 0) {
        // The number may belong to another thread now.
        let is_it = format!("grep -qx '{name}' /proc/{pid}/comm");
        steps.undone(
            format!("{is_it} && chrt -f -p {priority} {pid}"),
            format!("! {is_it} || chrt -o -p 0 {pid}"),
        );
    }
}
