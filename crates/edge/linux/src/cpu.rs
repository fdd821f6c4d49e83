//! The CPUs of a thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread on one CPU.
///
/// # Errors
/// A sentence: there is no such CPU, or this process may not run there.
pub fn pin(cpu: usize) -> Result<(), String> {
    let none = || format!("no CPU '{cpu}' exists, or this process may not run on it");
    if cpu >= CpuSet::MAX_CPU {
        return Err(none());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| match error {
        rustix::io::Errno::INVAL => none(),
        error => error.to_string(),
    })
}

/// The CPUs on which this thread may run, at least one.
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    if all.is_empty() { vec![0] } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        for cpu in [1023, 1_000_000] {
            let error = pin(cpu).unwrap_err();
            assert!(error.contains(&format!("no CPU '{cpu}'")), "{error}");
        }
    }
}
