//! The media of namespaces: RAM, a file or a block device.

mod backing;
mod device;
mod file;
mod memory;
mod ram;

pub use backing::Backing;
pub use file::{Aio, FileMedia, FileOptions};
pub use memory::check_memory;
pub use ram::RamMedia;

use bytes::Bytes;
use nvme::block::{Completion, Error, Request};
use std::io;
use std::os::fd::BorrowedFd;

/// The block store of one namespace.
///
/// [`RamMedia`] is the smallest example: every request completes at once and needs no flush, so the
/// default methods suffice. Rules for implementations:
///
/// - Each request has one completion: [`start`](Self::start) returns it, or
///   [`poll_completion`](Self::poll_completion) returns it later, with the request's ID. Requests
///   under way may be executed in any order, even for the same bytes.
/// - A read returns as many bytes as requested: the bytes last written, or zeroes where nothing was
///   written or Write Zeroes has completed. After a discard, the old bytes or zeroes.
/// - A flush completes once everything that completed before its start is durable. Flushed data
///   survive a crash, or [`incarnation`](Self::incarnation) changes.
/// - A request outside of [`size`](Self::size) fails with [`Error::Internal`]; the size never
///   changes. Other failures have the other errors. [`Error::ReadOnly`] makes the namespace
///   read-only for its hosts.
/// - No method except [`close`](Self::close) waits for a disk, because the loop of a node calls
///   them. If completions come later, [`signal`](Self::signal) becomes readable.
///
/// The owner calls [`submit`](Self::submit) after it has started requests, and
/// [`clear_signal`](Self::clear_signal) before it polls for completions because of the signal. It
/// drops the medium when no request is under way, or when the outcomes are not needed.
pub trait Media: Send {
    /// Starts a request. Returns its completion if it completed at once.
    fn start(&mut self, request: Request) -> Option<Completion>;

    /// Executes the requests started since the last call, if [`start`](Self::start) only queues
    /// them. Returns whether requests may have completed at once.
    fn submit(&mut self) -> bool {
        false
    }

    /// The next completed request: its ID and result.
    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        None
    }

    /// Makes [`signal`](Self::signal) unreadable again.
    fn clear_signal(&mut self) {}

    /// A descriptor that is readable when a request may have completed; always the same one.
    fn signal(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Size of the medium in bytes.
    fn size(&self) -> u64;

    /// Whether writes are refused; this can change at any time.
    fn read_only(&self) -> bool {
        false
    }

    /// Identifies the contents: constant, also over restarts, while no data are lost; another
    /// number when data may have been lost.
    fn incarnation(&self) -> u64;

    /// Notes that the node starts to serve the medium. Without this call, a file that opening
    /// created or extended is removed or restored.
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
