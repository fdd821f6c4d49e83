//! The media of namespaces: RAM, a file or a block device.

mod backing;
mod device;
mod file;
mod memory;
mod ram;
mod shared_ram;

pub use backing::Backing;
pub(crate) use file::Layout;
#[cfg(test)]
pub(crate) use file::tests::run;
pub use file::{Aio, FileMedia, FileOptions};
pub use memory::check_memory;
pub use ram::RamMedia;
pub use shared_ram::SharedRam;

use bytes::Bytes;
use nvme::block::{Completion, Error, Request};
use std::io;
use std::os::fd::BorrowedFd;

/// The block store of one namespace.
///
/// [`RamMedia`] is the smallest example: every request completes at once and needs no flush, so the
/// default methods are sufficient. Rules for implementations:
///
/// - Each request has one completion: [`start`](Self::start) returns the completion, or
///   [`poll_completion`](Self::poll_completion) returns it later, with the ID of the request.
///   Requests under way may be executed in any order, even for the same bytes.
/// - A read returns exactly the requested number of bytes: the last written bytes, or zeroes if the
///   bytes were never written or were zeroed by Write Zeroes. After a discard, a read returns the
///   old bytes or zeroes.
/// - A flush completes when all writes that completed before its start are durable. If flushed data
///   are lost in a crash, [`incarnation`](Self::incarnation) changes.
/// - A request outside of [`size`](Self::size) fails with [`Error::Internal`]; the size never
///   changes. Other failures have the other errors. [`Error::ReadOnly`] makes the namespace
///   read-only for its hosts.
/// - No method except [`close`](Self::close) waits for a disk, because the loop of a node calls
///   them. If completions come later, [`signal`](Self::signal) becomes readable.
///
/// The owner calls [`submit`](Self::submit) after it has started requests, and
/// [`clear_signal`](Self::clear_signal) before it polls for completions because of the signal. The
/// owner drops the medium when no request is under way, or when no outcome is needed.
pub trait Media: Send {
    /// Starts a request. Returns the completion if the request completed at once.
    fn start(&mut self, request: Request) -> Option<Completion>;

    /// Executes the requests that were started since the last call, for media whose
    /// [`start`](Self::start) only queues requests. Returns whether requests may have completed at
    /// once.
    fn submit(&mut self) -> bool {
        false
    }

    /// The ID and the result of the next completed request; `None` if there is none now.
    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        None
    }

    /// Makes [`signal`](Self::signal) unreadable again.
    fn clear_signal(&mut self) {}

    /// A descriptor that is readable when a request may have completed; always the same descriptor.
    /// `None` if all requests complete at once.
    fn signal(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Size of the medium in bytes.
    fn size(&self) -> u64;

    /// Whether writes are rejected. This can change at any time.
    fn read_only(&self) -> bool {
        false
    }

    /// Identifies the contents. The number does not change while no data are lost, also over
    /// restarts. It changes when data may have been lost.
    fn incarnation(&self) -> u64;

    /// Called when the node starts to serve the medium. Without this call, a created file is
    /// removed on drop, and an extended file gets its old length.
    fn begin(&mut self) {}

    /// The next message for the user. Each message is returned once.
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

/// The status of a request that failed with an I/O error.
pub fn status_of(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Error::NoSpace
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::ReadOnly,
        _ => Error::Media,
    }
}
