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
/// [`RamMedia`] is the smallest example: every request completes at once and is as durable as it
/// gets, so that the methods with defaults stay as they are. An implementor holds this:
///
/// - Each request has one completion: [`start`](Self::start) returns it, or
///   [`poll_completion`](Self::poll_completion) does later, with the request's ID. Requests under
///   way may be carried out in any order, also those for the same bytes.
/// - A read returns as many bytes as were requested: those last written, zeroes where nothing was
///   written or where Write Zeroes has completed. After a discard the bytes are as before or zeroes.
/// - A flush completes once all that completed before its start is durable; data of a flush that
///   succeeded outlive a crash, or [`incarnation`](Self::incarnation) changes.
/// - What lies outside of [`size`](Self::size) is [`Error::Internal`]; the size stays the same.
///   What the medium cannot do is one of the other errors. [`Error::ReadOnly`] makes the namespace
///   read-only for its hosts.
/// - No method but [`close`](Self::close) waits for a disk: they run in the loop of a node. If
///   completions come later, [`signal`](Self::signal) becomes readable when one may be there.
///
/// The owner calls [`submit`](Self::submit) after it has started requests, and
/// [`clear_signal`](Self::clear_signal) before it polls for completions because of the signal. It
/// drops the medium when no request is under way, or when nobody needs the outcomes.
pub trait Media: Send {
    /// Starts a request. Returns its completion if it completed at once.
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

    /// Makes [`signal`](Self::signal) unreadable again.
    fn clear_signal(&mut self) {}

    /// A descriptor that is readable when a request may have completed; always the same one.
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
