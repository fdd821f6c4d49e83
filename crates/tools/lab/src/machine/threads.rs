//! Kernel threads that process frames.

use super::{found, names, text};
use latency_linux::Setting;
use linux::proc_stat::behind_name;
use std::collections::BTreeMap;

/// Prefixes of the threads' names: softirqs, copying for virtual machines, polling of interfaces,
/// interrupts (Linux kernel/softirq.c, drivers/vhost/vhost.c, net/core/dev.c, kernel/irq/manage.c).
const KINDS: [&str; 4] = ["ksoftirqd/", "vhost-", "napi/", "irq/"];

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Number of the thread.
    pub pid: u32,
    /// Name of the thread, such as `ksoftirqd/0`.
    pub name: String,
    /// Scheduling policy, such as `SCHED_FIFO` (sched(7)).
    pub policy: &'static str,
    /// Real-time priority, 1 to 99; 0 for ordinary threads.
    pub priority: u32,
    /// The CPUs on which the thread may run, such as `0-1,3`.
    pub cpus: String,
    /// Whether the thread belongs to the kernel.
    pub is_kernel: bool,
}

/// Returns all threads with a name of [`KINDS`], in every process: since Linux 6.4 vhost threads
/// belong to their VMM.
pub fn threads() -> Vec<Thread> {
    let pids = names("/proc").into_iter().filter(|name| name.parse::<u32>().is_ok());
    let tasks = pids.flat_map(|pid| {
        let folder = format!("/proc/{pid}/task");
        names(&folder).into_iter().map(move |task| format!("{folder}/{task}"))
    });
    let wanted = tasks.filter(|task| kind(&text(format!("{task}/comm"))).is_some());
    let mut threads: Vec<Thread> = wanted
        .filter_map(|task| thread(&text(format!("{task}/stat")), &text(format!("{task}/status"))))
        .collect();
    threads.sort_by_key(|thread| thread.pid);
    threads
}

fn kind(name: &str) -> Option<&'static str> {
    KINDS.into_iter().find(|kind| name.starts_with(kind))
}

/// `PF_KTHREAD` of include/linux/sched.h.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Parses `/proc/PID/stat` (proc_pid_stat(5): fields 1, 2, 9, 40 and 41) and `Cpus_allowed_list` of
/// `/proc/PID/status` (proc_pid_status(5)).
fn thread(stat: &str, status: &str) -> Option<Thread> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, _) = rest.rsplit_once(')')?;
    let mut fields = behind_name(stat)?;
    let flags: u32 = fields.nth(9 - 3)?.parse().ok()?;
    let is_kernel = flags & KERNEL_THREAD != 0;
    let mut fields = fields.skip(40 - 10);
    let priority = fields.next()?.parse().ok()?;
    let policy = policy(fields.next()?.parse().ok()?);
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let (name, cpus) = (name.to_owned(), cpus.trim().to_owned());
    Some(Thread { pid: pid.parse().ok()?, name, policy, priority, cpus, is_kernel })
}

/// The policies of linux/sched.h.
fn policy(number: u32) -> &'static str {
    match number {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        _ => "unknown",
    }
}

/// Returns one row per kind of thread and scheduling settings.
pub fn settings(threads: &[Thread]) -> Vec<Setting> {
    let mut alike = BTreeMap::<_, Vec<&str>>::new();
    for thread in threads {
        let Some(kind) = kind(&thread.name) else { continue };
        alike.entry((kind, thread.policy, thread.priority)).or_default().push(&thread.cpus);
    }
    let rows = alike.into_iter().map(|((kind, policy, priority), mut cpus)| {
        let threads = cpus.len();
        cpus.sort_unstable();
        cpus.dedup();
        let value = match priority {
            0 => format!("{threads} x {policy}"),
            priority => format!("{threads} x {policy} {priority}"),
        };
        found(&format!("threads {kind}*"), value, &format!("CPUs {}", cpus.join("; ")))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with Debian's Linux 6.12.117 in a guest with two CPUs.
    const SOFTIRQ: &str = "27 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0 0 3 0 0 20 0 1 0 122 0 0 \
        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0";
    const IRQ: &str = "45 (irq/9-acpi) S 2 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 -51 0 1 0 208 0 0 \
        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 50 1 0 0 0 0 0 0 0 0 0 0 0";
    const STATUS: &str = "Name:\tksoftirqd/1\nCpus_allowed:\t2\nCpus_allowed_list:\t1\n";

    #[test]
    fn policy_priority_and_cpus() {
        let softirq = thread(SOFTIRQ, STATUS).unwrap();
        let golden = Thread {
            pid: 27,
            name: "ksoftirqd/1".to_owned(),
            policy: "SCHED_OTHER",
            priority: 0,
            cpus: "1".to_owned(),
            is_kernel: true,
        };
        assert_eq!(softirq, golden);
        let irq = thread(IRQ, STATUS).unwrap();
        assert_eq!((irq.policy, irq.priority, &*irq.name), ("SCHED_FIFO", 50, "irq/9-acpi"));
        let odd = thread(&IRQ.replace("irq/9-acpi", "irq/9 (a) b) S 1"), STATUS).unwrap();
        assert_eq!((odd.policy, odd.priority, &*odd.name), ("SCHED_FIFO", 50, "irq/9 (a) b) S 1"));
        assert_eq!(thread("27 (ksoftirqd/1) S 2 0", STATUS), None);
        assert_eq!(thread(SOFTIRQ, "Name:\tx\n"), None);
    }

    #[test]
    fn threads_that_are_treated_alike_share_a_row() {
        let softirq = thread(SOFTIRQ, STATUS).unwrap();
        let first = Thread { pid: 17, cpus: "0".to_owned(), ..softirq.clone() };
        let irq = thread(IRQ, STATUS).unwrap();
        let stranger = Thread { name: "bash".to_owned(), ..first.clone() };
        let rows = settings(&[first, softirq, irq, stranger]);
        let rows: Vec<_> = rows.iter().map(|row| [&*row.name, &row.value, &row.note]).collect();
        let golden = [
            ["threads irq/*", "1 x SCHED_FIFO 50", "CPUs 1"],
            ["threads ksoftirqd/*", "2 x SCHED_OTHER", "CPUs 0; 1"],
        ];
        assert_eq!(rows, golden);
    }
}
