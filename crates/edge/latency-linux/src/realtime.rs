//! Real-time threads. Each error is a sentence.

use crate::kernel;
use rustix::mm::{MlockAllFlags, mlockall};
use std::io;

/// Sets this thread to `SCHED_FIFO` with this priority, 1 to 99 (sched(7)).
///
/// # Errors
/// A sentence, for example that CAP_SYS_NICE is missing.
pub(crate) fn prioritise(priority: u8) -> Result<(), String> {
    kernel::set_fifo(priority).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("needs CAP_SYS_NICE or an RLIMIT_RTPRIO of {priority} (`ulimit -r`)")
        }
        _ => error.to_string(),
    })
}

/// Keeps all memory of the process in RAM (mlockall(2)).
///
/// # Errors
/// A sentence, for example that CAP_IPC_LOCK is missing.
pub(crate) fn lock_memory() -> Result<(), String> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| match error {
        rustix::io::Errno::PERM | rustix::io::Errno::NOMEM => {
            "needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK (`ulimit -l`)".to_owned()
        }
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_above_99_is_refused() {
        assert!(prioritise(100).is_err());
    }
}
