//! A descriptor that a client gave us: a file of any kind, and nothing may be
//! done with it on the node's loop that its file system could make us wait for.

use super::worker::Disposal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// See the module. It is closed by the client's worker: closing a file on FUSE
/// or NFS, or a socket that lingers, can take for ever.
#[derive(Debug)]
pub struct ClientFile {
    /// `None` only while it is dropped.
    file: Option<OwnedFd>,
    disposal: Disposal,
}

impl ClientFile {
    /// Takes over `file`; `disposal` is that of its client.
    pub fn new(file: OwnedFd, disposal: Disposal) -> Self {
        Self { file: Some(file), disposal }
    }

    /// Whether it is memory: a file of tmpfs (a memfd, `/dev/shm`) or
    /// hugetlbfs. The kernel answers without asking the file system, for these
    /// are the only ones with seals (Linux mm/memfd.c, `memfd_file_seals_ptr`),
    /// and none of our looks at them waits for anybody.
    pub fn is_memory(&self) -> bool {
        rustix::fs::fcntl_get_seals(self.as_fd()).is_ok()
    }

    /// The descriptor, for one whose kind is known and whose end waits for
    /// nobody.
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
