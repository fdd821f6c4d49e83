//! A path: one connection that carries, or may come to carry, a link. The
//! shell makes, reads and writes it.

use bytes::Bytes;

/// What happened to a path.
#[derive(Clone, Debug)]
pub enum Input {
    /// An attempt to connect has succeeded.
    Connected,
    /// An attempt to connect has failed, and why.
    Failed(String),
    /// Bytes of the stream, in order, cut anywhere.
    Received(Bytes),
    /// The path takes this many bytes now.
    Room(usize),
    /// The path is gone.
    Gone,
}
