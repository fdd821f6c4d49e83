//! Input and output of a tunnel.

use super::Cause;
#[cfg(doc)]
use super::Tunnel;
use bytes::Bytes;
use wire::Instant;
use wire::frame::{Hello, Moved};
use wire::tlp::TraceId;

/// Input of a tunnel.
#[derive(Clone, Debug)]
pub enum Input {
    /// The network connection is established.
    Connected,
    /// The trace ID for the next received TLP that has none.
    TraceId(TraceId),
    /// The next bytes of the stream, split anywhere.
    Received(Bytes),
    /// The network takes this number of bytes now.
    CanTransmit {
        /// Number of bytes.
        bytes: usize,
    },
    /// The network connection has ended.
    Disconnected,
}

/// Output of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these bytes: whole frames; a single frame with
    /// [`Policy::PerTlp`](crate::aggregate::Policy::PerTlp). A frame that is sent again on another
    /// connection may be divided.
    ///
    /// The number is the path.
    Transmit(usize, Bytes),
    /// The link is up with a new session: the Hellos were exchanged.
    Up(Hello),
    /// A path is lost, or an attempt to replace it has failed: close its connection. The link stays
    /// up, and its session goes on over another path, or is interrupted until there is one
    /// ([`Tunnel::is_interrupted`]).
    PathLost(usize, Cause),
    /// A path carries the session that was interrupted.
    Resumed,
    /// A further path carries the session.
    Joined(usize),
    /// This path has taken over from another one.
    FailedOver(usize),
    /// The far side requests a hot reset. Answer with [`Tunnel::reset_done`].
    Reset,
    /// The reply to [`Tunnel::echo`].
    EchoReply(u64),
    /// A probe requests that the device belong to this group. Answer with [`Tunnel::answer_move`].
    Move(u16),
    /// The answer to [`Tunnel::move_to`].
    Moved(Moved),
    /// The link is down and queued TLPs are lost: close the connection.
    Down(Cause),
    /// No output now. Poll again after an input or at this time.
    Timeout(Option<Instant>),
}
