//! The memory of this process.

use report::Failure;

/// Resets [`peak`], if Linux allows it, by writing 5 to `/proc/self/clear_refs`
/// (proc_pid_clear_refs(5)).
pub fn forget_peak() {
    // Without the reset, the peak covers the whole process and is not smaller.
    _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the largest resident set of this process in bytes: `VmHWM` in `/proc/self/status`
/// (proc_pid_status(5)).
pub fn peak() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| Failure("/proc/self/status: no line VmHWM".into()))
}
