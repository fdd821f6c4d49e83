//! CPUs and threads: one CPU for the talker alone, and the kernel's threads before all others.

use super::place::Place;
use super::step::Steps;
use crate::commands::latency::machine::threads::{Thread, threads};

/// Where control groups are (Linux Documentation/admin-guide/cgroup-v2.rst).
const GROUPS: &str = "/sys/fs/cgroup";

/// The control group of the talker.
pub fn group(place: &Place) -> String {
    format!("{GROUPS}/{}-talker", place.0)
}

/// Adds the steps that take a CPU from everything but the talker's group: a cpuset partition
/// without load balancing (cpuset.cpus.partition in cgroup-v2.rst).
pub fn isolate(cpu: usize, place: &Place, steps: &mut Steps) {
    let (all, group) = (format!("{GROUPS}/cgroup.subtree_control"), group(place));
    // Others may use it already.
    let controllers = std::fs::read_to_string(&all).unwrap_or_default();
    if !controllers.split_whitespace().any(|controller| controller == "cpuset") {
        steps.undone(format!("echo +cpuset >{all}"), format!("echo -cpuset >{all}"));
    }
    steps.undone(format!("mkdir {group}"), format!("rmdir {group}"));
    steps.run(format!("echo {cpu} >{group}/cpuset.cpus"));
    steps.run(format!("echo isolated >{group}/cpuset.cpus.partition"));
    // It says `isolated invalid (why)` where it is not.
    steps.run(format!(
        "grep -qx isolated {group}/cpuset.cpus.partition || \
         {{ cat {group}/cpuset.cpus.partition >&2; false; }}"
    ));
}

/// Adds the steps that run the kernel's threads that frames wait for as SCHED_FIFO: those of softirqs
/// and of vhost. Those that are real-time threads already stay as they are.
pub fn prioritise(priority: u8, steps: &mut Steps) {
    let waited_for =
        |of: &Thread| of.name.starts_with("ksoftirqd/") || of.name.starts_with("vhost-");
    for Thread { pid, name, .. } in
        threads().into_iter().filter(|of| waited_for(of) && of.priority == 0)
    {
        // Its number may be another thread's when it is taken back.
        steps.undone(
            format!("chrt -f -p {priority} {pid}"),
            format!("! grep -qx '{name}' /proc/{pid}/comm || chrt -o -p 0 {pid}"),
        );
    }
}
