//! A path: one connection that carries, or may come to carry, a link. The
//! shell makes, reads and writes it.

use bytes::Bytes;
use wire::tlp::Mark;

/// What a shell calls a path: never the same for two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);

/// What happened to a path.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody has connected to this node.
    Accepted {
        /// Whether the path ends at once when the far side's process is
        /// killed, as TCP does and raw Ethernet does not.
        signals_close: bool,
    },
    /// An attempt to connect has succeeded.
    Connected,
    /// An attempt to connect has failed, and why.
    Failed(String),
    /// The next TLP that comes and has no mark yet is to have this one.
    Mark(Mark),
    /// Bytes of the stream, in order, cut anywhere.
    Received(Bytes),
    /// The path takes this many bytes now.
    Room(usize),
    /// The path is closed.
    Closed,
}
