//! The largest resident set of this process.

use report::Failure;

/// Bytes of `VmHWM` in `/proc/self/status` (proc_pid_status(5)).
///
/// # Errors
/// If the file does not say.
pub fn peak() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| Failure("/proc/self/status has no VmHWM".into()))
}
