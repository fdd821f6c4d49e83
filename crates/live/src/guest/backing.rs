//! What backs a shared range.
//!
//! Memory is mapped: memfds and other files on tmpfs, and huge pages. A client can take their pages
//! away, which a mapping survives (`mapping`), but accesses to them do not block. A page fault on a
//! file of FUSE or NFS sleeps until its server answers, and cannot be left to another thread. The
//! client's worker therefore reads and writes all other files through the descriptor.

use super::Rights;
use super::worker::ClientFile;
use super::worker::FilePosition;
use crate::mapping::Mapping;
use rustix::fd::AsFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::Arc;

/// Ranges of one guest that hold a descriptor open.
pub const MAX_OPEN: usize = 64;

#[derive(Debug)]
pub(super) enum Backing {
    /// Through a mapping.
    Mapped(Mapping),
    /// Through the descriptor; the position of the range's first byte.
    File(FilePosition),
}

impl Backing {
    /// Backs a range by `length` bytes of a file from byte `offset` on. For a file that is not
    /// memory the first access shows whether they exist: a check could block.
    pub(super) fn new(
        file: ClientFile,
        offset: u64,
        length: u64,
        rights: Rights,
    ) -> Result<Self, Errno> {
        if file.is_memory() {
            let mapping = Mapping::new(file.as_fd(), offset, length, rights.read, rights.write)?;
            return Ok(Self::Mapped(mapping));
        }
        // Flags of the descriptor, without an access to the file.
        let flags = rustix::fs::fcntl_getfl(&file)?;
        let mode = flags & OFlags::RWMODE;
        let may_read = mode != OFlags::WRONLY;
        let may_write = mode != OFlags::RDONLY;
        let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
        if end > i64::MAX as u64 || flags.intersects(OFlags::APPEND | OFlags::PATH) {
            return Err(Errno::INVAL);
        }
        if (rights.read && !may_read) || (rights.write && !may_write) {
            return Err(Errno::ACCESS);
        }
        Ok(Self::File(FilePosition { file: Arc::new(file), offset }))
    }
}
