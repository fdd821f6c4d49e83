//! Huge pages, reserved for as long as a test runs.

use crate::support::cannot;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of a page: the size that every x86-64 machine has by default.
pub const PAGE: u64 = 2 << 20;

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// Pages of this test, on top of what the machine had; given back on drop.
pub struct Pool {
    before: u64,
    /// Other tests that reserve pages wait.
    _turn: File,
}

impl Pool {
    /// Reserves `pages`; the error names what the machine lacks.
    fn reserve(pages: u64) -> Result<Self, String> {
        let path = std::env::temp_dir().join("farlane-huge-pages");
        let turn = File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        flock(&turn, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
        let count = || -> u64 {
            fs::read_to_string(RESERVED).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        let pool = Self { before: count(), _turn: turn };
        fs::write(RESERVED, (pool.before + pages).to_string())
            .map_err(|error| format!("{RESERVED}: {error}"))?;
        if count() < pool.before + pages {
            return Err(format!("{RESERVED}: no {pages} pages more can be had"));
        }
        Ok(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = fs::write(RESERVED, self.before.to_string());
    }
}

/// Pages that are reserved for `test`, and a file system with so many; `None`, and a word on it, on
/// a machine that has none to give.
pub fn reserve(test: &str, pages: u64) -> Option<(Pool, FileSystem)> {
    let mounted = || FileSystem::new(pages).map_err(|why| format!("mounting hugetlbfs: {why}"));
    let reserved = Pool::reserve(pages).and_then(|pool| Ok((pool, mounted()?)));
    reserved.map_err(|why| cannot(test, why)).ok()
}

/// Mounts a file system of this kind nowhere: only the descriptor reaches it. Needs the right to
/// mount.
pub fn mount(kind: &str, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(&system, *key, *value)?;
    }
    rustix::mount::fsconfig_create(&system)?;
    rustix::mount::fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// A hugetlbfs with that many pages, mounted nowhere.
pub struct FileSystem(OwnedFd);

impl FileSystem {
    pub fn new(pages: u64) -> Result<Self, Errno> {
        let [page, size] = [PAGE, pages * PAGE].map(|bytes| bytes.to_string());
        mount("hugetlbfs", &[("pagesize", &page), ("size", &size)]).map(Self)
    }

    /// A path for other processes, as long as this value lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// A file of `pages` pages.
    pub fn file(&self, name: &str, pages: u64) -> File {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::RWXU).unwrap();
        rustix::fs::ftruncate(&file, pages * PAGE).unwrap();
        File::from(file)
    }
}
