//! A client's file descriptor of any kind. The node's loop makes no call on it that a file system
//! could block.

use super::Disposal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// A client's file descriptor. The client's worker closes it: closing a file on FUSE or NFS, or
/// a socket that lingers, can block for ever.
#[derive(Debug)]
pub struct ClientFile {
    /// `None` only during drop.
    file: Option<OwnedFd>,
    disposal: Disposal,
}

impl ClientFile {
    /// Takes over `file`; `disposal` is the disposal of its client.
    pub(crate) fn new(file: OwnedFd, disposal: Disposal) -> Self {
        Self { file: Some(file), disposal }
    }

    /// Whether the file is memory: a file of tmpfs (a memfd, `/dev/shm`) or hugetlbfs. Only such
    /// files have seals (Linux mm/memfd.c, `memfd_file_seals_ptr`), so the kernel answers without
    /// the file system. System calls on such files do not block.
    pub fn is_memory(&self) -> bool {
        rustix::fs::fcntl_get_seals(self.as_fd()).is_ok()
    }

    /// The descriptor, if its kind is known and closing it does not block.
    pub fn into_inner(mut self) -> OwnedFd {
        self.file.take().expect("there until it is dropped")
    }
}

impl AsFd for ClientFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_ref().expect("there until it is dropped").as_fd()
    }
}

impl Drop for ClientFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.disposal.dispose(file);
        }
    }
}
