//! How the bytes of a shared range are reached.
//!
//! A mapping is fast, but if its file is cut afterwards, the next touch kills
//! the process (SIGBUS). So only files that cannot shrink are mapped: those
//! with the seal that QEMU puts on `memory-backend-memfd`, and huge pages,
//! which can be neither sealed nor written with `pwrite`, and which SPDK
//! needs. All others (`memory-backend-file`) are read and written through the
//! descriptor: one system call an access, and no harm if the file is cut.

use super::Rights;
use crate::mapping::Mapping;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, SealFlags};
use rustix::io::Errno;

/// Ranges of one guest that hold a descriptor open.
pub const MAX_COPIED: usize = 64;

/// `HUGETLBFS_MAGIC` of linux/magic.h.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// See the module.
#[derive(Debug)]
pub(super) enum Window {
    /// Through a mapping.
    Mapped(Mapping),
    /// Through the descriptor.
    Copied {
        /// Our own copy of it.
        file: OwnedFd,
        /// Where the range begins in the file.
        offset: u64,
        /// Bytes.
        length: u64,
    },
}

impl Window {
    /// `length` bytes from byte `offset` of a file on.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        length: u64,
        rights: Rights,
    ) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !regular || end > stat.st_size as u64 {
            return Err(Errno::INVAL);
        }
        let sealed = rustix::fs::fcntl_get_seals(fd).is_ok_and(|s| s.contains(SealFlags::SHRINK));
        if sealed || rustix::fs::fstatfs(fd)?.f_type as u64 == HUGETLBFS_MAGIC {
            let mapping = Mapping::new(fd, offset, length, rights.read, rights.write)?;
            return Ok(Self::Mapped(mapping));
        }
        let mode = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
        let may_read = mode != OFlags::WRONLY;
        let may_write = mode != OFlags::RDONLY;
        if (rights.read && !may_read) || (rights.write && !may_write) {
            return Err(Errno::ACCESS);
        }
        let file = fd.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
        Ok(Self::Copied { file, offset, length })
    }

    /// Copies bytes out; `None` if any is not there (any more).
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        let (file, start) = match self {
            Self::Mapped(mapping) => return mapping.read(at as usize, into),
            Self::Copied { file, offset, length } => {
                (file, place(*offset, *length, at, into.len())?)
            }
        };
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(file, &mut into[done..], start + done as u64) {
                Ok(0) => return None,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Copies bytes in; `None` if any has no place.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Option<()> {
        let (file, start) = match self {
            Self::Mapped(mapping) => return mapping.write(at as usize, bytes),
            Self::Copied { file, offset, length } => {
                (file, place(*offset, *length, at, bytes.len())?)
            }
        };
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(file, &bytes[done..], start + done as u64) {
                Ok(0) => return None,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// The file offset of `count` bytes at `at`, if all lie inside.
fn place(offset: u64, length: u64, at: u64, count: usize) -> Option<u64> {
    let inside = at.checked_add(count as u64)? <= length;
    inside.then_some(offset + at)
}
