//! A path: one connection that carries, or may carry, a link. The owner of the node opens, reads
//! and writes it.

use crate::Rights;
use bytes::Bytes;
use std::sync::Arc;
use wire::tlp::TraceId;

/// Identifies a path; numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);

/// An event of a path.
#[derive(Clone, Debug)]
pub enum Input {
    /// A peer has connected to this node.
    Accepted {
        /// Whether the path closes at once when the peer's process is
        /// killed. TCP does, raw Ethernet does not.
        signals_close: bool,
        /// What the peer may do.
        rights: Rights,
        /// The name of the peer, if it has proved its identity. Sessions belong to it.
        peer: Option<Arc<str>>,
    },
    /// An attempt to connect has succeeded.
    Connected,
    /// An attempt to connect has failed, or a path is broken, with the reason.
    Failed(String),
    /// One end refuses the other for good, with the reason. The path is closed.
    Refused(String),
    /// The trace ID of the next received TLP without one.
    TraceId(TraceId),
    /// Bytes of the stream, in order, split anywhere.
    Received(Bytes),
    /// The path takes this many bytes now.
    Room(usize),
    /// The path is closed.
    Closed,
}
