//! The memory available for RAM drives.

use std::io;
use std::path::{Path, PathBuf};

/// Checks that `size` bytes of RAM drives fit the available memory of the machine, and the memory
/// limits of the control groups of this process.
///
/// # Errors
/// A sentence with `size` and the exceeded limit in bytes.
pub fn check_memory(size: u64) -> io::Result<()> {
    check(size, Path::new("/"))
}

/// As [`check_memory`], with `/proc` and `/sys` below `root`.
fn check(size: u64, root: &Path) -> io::Result<()> {
    let available = available(root).map(|bytes| (bytes, "of memory are available".to_owned()));
    let limits = limit_files(root).into_iter().filter_map(|path| {
        // "max" means no limit, as does the huge number of version 1.
        let bytes = read(&path)?.trim().parse().ok()?;
        Some((bytes, format!("are allowed by this control group ({})", path.display())))
    });
    let Some((bytes, limit)) = available.into_iter().chain(limits).min() else { return Ok(()) };
    if size <= bytes {
        return Ok(());
    }
    let why = format!("namespaces need {size} bytes of RAM, but only {bytes} bytes {limit}");
    Err(io::Error::new(io::ErrorKind::OutOfMemory, why))
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// MemAvailable (proc_meminfo(5)) in bytes.
fn available(root: &Path) -> Option<u64> {
    let text = read(&root.join("proc/meminfo"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files with the memory limits of the control group of this process and of all groups above
/// (cgroups(7); `memory.max` in version 2, `memory.limit_in_bytes` in version 1).
fn limit_files(root: &Path) -> Vec<PathBuf> {
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut files = Vec::new();
    for line in groups.lines() {
        // The fields are hierarchy, controllers and path. Version 2 is hierarchy 0 with an empty
        // list of controllers.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        let mount = root.join(mount);
        files.extend(path.ancestors().map(|group| mount.join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Folder;

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:    1000 kB\nBuffers: 1 kB\n");

    /// Checks that these files give a limit of `bytes`, and that the error contains `named`.
    #[track_caller]
    fn most(files: &[(&str, &str)], bytes: u64, named: &str) {
        let root = Folder::new();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        check(bytes, &root).unwrap();
        let error = check(bytes + 1, &root).unwrap_err().to_string();
        let only = format!("but only {bytes} bytes");
        assert!(error.contains(&only) && error.contains(named), "{error}");
    }

    #[test]
    fn available_memory_is_a_limit() {
        most(&[MEMINFO], 1_024_000, "available");
    }

    #[test]
    fn tightest_cgroup_v2_limit_is_used() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/user.slice/job.scope\n"),
            ("sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "500000\n"),
            ("sys/fs/cgroup/memory.max", "600000\n"),
        ];
        most(&files, 500_000, "user.slice/memory.max");
    }

    #[test]
    fn cgroup_v1_limit_is_used() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/x\n4:cpuset,memory:/docker/1\n0::/\n"),
            ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n"),
            ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"),
        ];
        most(&files, 400_000, "memory.limit_in_bytes");
    }

    #[test]
    fn a_machine_without_these_files_has_no_limit() {
        check(u64::MAX, Path::new("/nonexistent")).unwrap();
    }
}
