//! What is behind namespaces: RAM or a file.

mod file;
mod ram;

pub use file::FileMedia;
pub use ram::RamMedia;

use bytes::Bytes;
use nvme::block::{Completion, Error, Request};
use std::io;
use std::os::fd::BorrowedFd;

/// The block store of one namespace.
pub trait Media: Send {
    /// Starts a request. Some are done at once and yield what they end in;
    /// the rest come out of [`finished`](Self::finished).
    fn start(&mut self, request: Request) -> Option<Completion>;

    /// A request that is done, by its id.
    fn finished(&mut self) -> Option<(u64, Completion)>;

    /// Readable when something may be finished.
    fn signal(&self) -> Option<BorrowedFd<'_>>;

    /// Bytes.
    fn size(&self) -> u64;

    /// Identifies the contents: the same number as long as no data were lost,
    /// over restarts too; another one when they may have been.
    fn incarnation(&self) -> u64;

    /// Whether writes are refused.
    fn read_only(&self) -> bool;

    /// Waits for everything started and makes it durable.
    ///
    /// # Errors
    /// If the data could not be made durable.
    fn close(&mut self) -> io::Result<()>;
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
