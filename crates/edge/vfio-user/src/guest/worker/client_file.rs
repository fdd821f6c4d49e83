//! A client's file descriptor of any kind. The node's event loop makes no call on the descriptor
//! that could block in a file system.

use super::Disposal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// A client's file descriptor. The client's worker closes the descriptor, because closing can block
/// for ever: for example of a file on FUSE or NFS, or of a socket with SO_LINGER.
#[derive(Debug)]
pub struct ClientFile {
    /// `None` only during drop.
    file: Option<OwnedFd>,
    disposal: Disposal,
}

impl ClientFile {
    /// Takes over `file`. `disposal` is the disposal of the client that sent the file.
    pub(crate) fn new(file: OwnedFd, disposal: Disposal) -> Self {
        Self { file: Some(file), disposal }
    }

    /// Whether the file is memory: a file of tmpfs (such as a memfd or a file in `/dev/shm`) or of
    /// hugetlbfs. Only these files have seals (Linux mm/memfd.c, `memfd_file_seals_ptr`), and the
    /// kernel returns the seals without a call of the file system. System calls on these files do
    /// not block.
    pub fn is_memory(&self) -> bool {
        rustix::fs::fcntl_get_seals(self.as_fd()).is_ok()
    }

    /// The descriptor, without its disposal. May be called only if closing the descriptor does not
    /// block.
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
