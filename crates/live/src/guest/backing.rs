//! How the bytes of a shared range are reached.
//!
//! Memory is mapped: memfds and other files on tmpfs, and huge pages. Their
//! pages can be taken away, which a mapping survives (`mapping`), but nobody can
//! make us wait for them. Any other file could: a page fault on a file of FUSE
//! or NFS sleeps until its server answers, as a read does, and a fault can be
//! left to no other thread. So those are read and written through the
//! descriptor, by the client's worker.

use super::Rights;
use super::client_file::ClientFile;
use super::worker::Place;
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
    /// Through the descriptor; the place is that of the range's first byte.
    File(Place),
}

impl Backing {
    /// `length` bytes from byte `offset` of a file on. Whether a file that is
    /// no memory has them is found out when they are used: asking could take
    /// for ever.
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
        // What the descriptor itself says, without a look at the file.
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
        Ok(Self::File(Place { file: Arc::new(file), offset }))
    }
}
