//! Huge pages that are reserved while a test runs.

use crate::support::cannot;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};

/// Size of a huge page in bytes: the default size on x86-64.
pub const PAGE: u64 = 2 << 20;

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// Huge pages of this test, in addition to the pages that were reserved before. Drop restores the
/// previous number.
pub struct Pool {
    before: u64,
    /// A lock. Other tests that reserve pages wait for the lock.
    _turn: File,
}

impl Pool {
    /// Reserves `pages` huge pages. The error is the reason why the machine cannot.
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

/// Reserves huge pages for `test`, with a hugetlbfs of this size. Returns `None`, and prints the
/// reason, if the machine cannot.
pub fn reserve(test: &str, pages: u64) -> Option<(Pool, FileSystem)> {
    let mounted = || FileSystem::new(pages).map_err(|why| format!("mounting hugetlbfs: {why}"));
    let reserved = Pool::reserve(pages).and_then(|pool| Ok((pool, mounted()?)));
    reserved.map_err(|why| cannot(test, why)).ok()
}

/// Mounts a file system without a mount point: only the descriptor reaches it. Fails without the
/// right to mount.
pub fn mount(kind: &str, options: &[(&str, &str)]) -> Result<OwnedFd, Errno> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(&system, *key, *value)?;
    }
    rustix::mount::fsconfig_create(&system)?;
    rustix::mount::fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// A hugetlbfs with a limited number of pages, without a mount point.
pub struct FileSystem(OwnedFd);

impl FileSystem {
    pub fn new(pages: u64) -> Result<Self, Errno> {
        let [page, size] = [PAGE, pages * PAGE].map(|bytes| bytes.to_string());
        mount("hugetlbfs", &[("pagesize", &page), ("size", &size)]).map(Self)
    }

    /// Returns a path for other processes. The path is valid as long as this value exists.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Creates a file of `pages` pages.
    pub fn file(&self, name: &str, pages: u64) -> File {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::RWXU).unwrap();
        rustix::fs::ftruncate(&file, pages * PAGE).unwrap();
        File::from(file)
    }
}
