//! What is behind namespaces: RAM or a file.

mod file;
mod memory;
mod ram;
mod record;

pub use file::{FileMedia, FileOptions};
pub use memory::check_memory;
pub use ram::RamMedia;

use crate::random_number;
use bytes::Bytes;
use nvme::block::{Completion, Error, Request};
use std::fs::Metadata;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The block store of one namespace; by default all is done at once and durable.
pub trait Media: Send {
    /// Starts a request. Some are done at once and yield what they end in;
    /// the rest come out of [`poll_completion`](Self::poll_completion).
    fn start(&mut self, request: Request) -> Option<Completion>;

    /// A request that is done, by its id.
    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        None
    }

    /// Makes [`signal`](Self::signal) unreadable again: before looking at what
    /// is finished, so that nothing that ends between is missed.
    fn clear_signal(&mut self) {}

    /// Readable when something may be finished.
    fn signal(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Bytes.
    fn size(&self) -> u64;

    /// Whether writes are refused.
    fn read_only(&self) -> bool {
        false
    }

    /// Identifies the contents: the same number as long as no data were lost,
    /// over restarts too; another one when they may have been.
    fn incarnation(&self) -> u64;

    /// The node starts to serve it. What opening it created or grew goes
    /// again if this is never called.
    fn begin(&mut self) {}

    /// What its user should know and has not been told.
    fn take_notice(&mut self) -> Option<String> {
        None
    }

    /// Waits for everything started and makes it durable.
    ///
    /// # Errors
    /// If the data could not be made durable.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A number for contents that nobody has seen before; never 0.
fn new_incarnation() -> u64 {
    random_number().max(1)
}

/// Whether `path` leads to the file with this metadata.
fn leads_to(path: &Path, file: &Metadata) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|named| (named.dev(), named.ino()) == (file.dev(), file.ino()))
}

/// Nothing to bring back.
fn done() -> Completion {
    Ok(Bytes::new())
}

/// What an I/O error means to the host.
fn status_of(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::ReadOnly,
        _ => Error::Media,
    }
}
