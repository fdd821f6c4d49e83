//! The extension point for carriers other than TCP and raw Ethernet.

use super::address::Address;
use bytes::Bytes;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use wire::Instant;

/// An address of another carrier, to connect to or to accept from.
///
/// A node connects to [`Address::Other`] as to any address: it calls [`connect`](Self::connect)
/// again after each connection that ended, and drops unused connections.
pub trait OtherAddress: Debug + Send + Sync {
    /// Begins to connect, without waiting.
    ///
    /// # Errors
    /// Why no connection can begin now; the node tries again later.
    fn connect(&self) -> io::Result<Box<dyn OtherCarrier>>;

    /// The next connection that waits; never blocks.
    fn accept(&self) -> Option<Box<dyn OtherCarrier>>;

    /// Readable while a connection waits.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// A connection that carries a link: a stream of bytes each way, without loss, copies or changes of
/// order. No method blocks.
pub trait OtherCarrier: Debug + Send {
    /// The other end.
    fn peer(&self) -> Address;

    /// Whether the connection is established.
    ///
    /// # Errors
    /// Why the connection failed.
    fn established(&mut self) -> io::Result<bool>;

    /// Passes received bytes to `take`; returns whether the connection has ended. Limits the bytes
    /// per call, so that a fast sender does not block the node.
    fn receive(&mut self, take: &mut dyn FnMut(Bytes)) -> bool;

    /// Sends at most [`room`](Self::room) bytes.
    ///
    /// # Errors
    /// If the connection is gone.
    fn send(&mut self, now: Instant, bytes: Bytes) -> io::Result<()>;

    /// Number of bytes that the network takes now. When it grows, [`fd`](Self::fd) is readable.
    fn room(&mut self) -> usize;

    /// Readable when the result of any other method may have changed.
    fn fd(&self) -> BorrowedFd<'_>;
}
