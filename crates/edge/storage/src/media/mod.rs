//! The media of namespaces: RAM, a file or a block device.

mod device;
mod file;
mod memory;
mod ram;

pub use file::{Aio, FileMedia, FileOptions};
pub use memory::check_memory;
pub use ram::RamMedia;

use bytes::Bytes;
use nvme::block::{Completion, Error, Request};
use std::io;
use std::os::fd::BorrowedFd;

/// The block store of one namespace; by default every request completes at once and is durable.
pub trait Media: Send {
    /// Starts a request. Some complete at once and return the result; the others come out of
    /// [`poll_completion`](Self::poll_completion), once they were [submitted](Self::submit).
    fn start(&mut self, request: Request) -> Option<Completion>;

    /// Carries out what was started since the last call, if starting did not. Returns whether
    /// something may have completed at once.
    fn submit(&mut self) -> bool {
        false
    }

    /// The next completed request: its ID and result.
    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        None
    }

    /// Makes [`signal`](Self::signal) unreadable again. Call it before
    /// [`poll_completion`](Self::poll_completion), so that no completion in between is missed.
    fn clear_signal(&mut self) {}

    /// A descriptor that is readable when a request may have completed.
    fn signal(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Its size in bytes.
    fn size(&self) -> u64;

    /// Whether writes are refused; that may become so at any time.
    fn read_only(&self) -> bool {
        false
    }

    /// Identifies the contents: the same number, also after restarts, while no data were lost;
    /// another number when they may have been.
    fn incarnation(&self) -> u64;

    /// The node starts to serve it. If this is never called, a file that opening created or
    /// grew is removed or restored.
    fn begin(&mut self) {}

    /// The next message for the user; each is returned once.
    fn take_notice(&mut self) -> Option<String> {
        None
    }

    /// Waits for all requests and makes their data durable.
    ///
    /// # Errors
    /// If the data could not be made durable.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A completion without data.
fn done() -> Completion {
    Ok(Bytes::new())
}

/// The error status of an I/O error.
pub fn status_of(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Error::NoSpace
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::ReadOnly,
        _ => Error::Media,
    }
}
