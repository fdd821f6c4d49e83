//! Kernel, clock and CPUs.

use super::{found, text};
use latency_linux::Setting;

/// Properties of the machine, as the kernel reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The kernel's release (uname(2)).
    pub kernel: String,
    /// Whether the kernel is PREEMPT_RT: `/sys/kernel/realtime` is 1.
    pub realtime: bool,
    /// CPUs on which this process may run.
    pub cpus: usize,
    /// CPUs that the scheduler does not use, such as `2-3`; empty if there are none (Linux
    /// Documentation/admin-guide/cputopology.rst, `isolated`).
    pub isolated: String,
    /// CPUs without a tick while one thread runs; empty if there are none (`nohz_full`, same
    /// document).
    pub nohz_full: String,
    /// The clock source, such as `tsc`.
    pub clock_source: String,
    /// Whether a hypervisor reports its presence; only x86 has the flag (Linux
    /// arch/x86/include/asm/cpufeatures.h, `X86_FEATURE_HYPERVISOR`).
    pub hypervisor: bool,
}

/// Reads the properties. Properties that the kernel does not report are empty.
pub fn system() -> System {
    let cpu = |name: &str| list(&text(format!("/sys/devices/system/cpu/{name}")));
    System {
        kernel: text("/proc/sys/kernel/osrelease"),
        realtime: text("/sys/kernel/realtime") == "1",
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        isolated: cpu("isolated"),
        nohz_full: cpu("nohz_full"),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hypervisor: has_hypervisor(&text("/proc/cpuinfo")),
    }
}

/// Parses a list of CPUs. Kernels without `nohz_full=` on their command line print `(null)`.
fn list(text: &str) -> String {
    if text == "(null)" { String::new() } else { text.to_owned() }
}

fn has_hypervisor(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.flat_map(str::split_whitespace).any(|flag| flag == "hypervisor")
}

impl System {
    /// Returns the properties as rows of a table.
    pub fn settings(&self) -> Vec<Setting> {
        let cpus = |list: &String| if list.is_empty() { "none".to_owned() } else { list.clone() };
        let kind = if self.realtime { "PREEMPT_RT" } else { "not PREEMPT_RT" };
        let hypervisor = if self.hypervisor { "yes" } else { "no" };
        vec![
            found("kernel", &*self.kernel, kind),
            found("CPUs", self.cpus.to_string(), "on which this process may run"),
            found("isolated CPUs", cpus(&self.isolated), ""),
            found("CPUs without tick", cpus(&self.nohz_full), ""),
            found("clock source", &*self.clock_source, ""),
            found("under a hypervisor", hypervisor, ""),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_is_a_flag_and_no_part_of_one() {
        // Shortened /proc/cpuinfo of a virtual machine.
        let guest =
            "processor\t: 0\nmodel name\t: QEMU TCG CPU\nflags\t\t: fpu hypervisor lahf_lm\n";
        assert!(has_hypervisor(guest));
        assert!(!has_hypervisor(&guest.replace("hypervisor", "hypervisor2")));
        assert!(!has_hypervisor("model name\t: hypervisor\n"));
    }

    #[test]
    fn no_list_is_empty() {
        assert_eq!([list("(null)"), list(""), list("2-3,5")], ["", "", "2-3,5"]);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let system = system();
        assert!(system.cpus >= 1 && system.kernel.contains('.'), "{system:?}");
        let rows = system.settings();
        assert!(rows.iter().all(|row| row.in_force && !row.name.is_empty()), "{rows:?}");
    }
}
