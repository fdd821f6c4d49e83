//! What goes into a tunnel, and what it wants.

use super::Cause;
#[cfg(doc)]
use super::Tunnel;
use bytes::Bytes;
use wire::Instant;
use wire::frame::{Hello, Moved};
use wire::tlp::Mark;

/// What happens to a link.
#[derive(Clone, Debug)]
pub enum Input {
    /// The network connection stands.
    Connected,
    /// The next TLP that comes and has no mark yet is to have this one.
    Mark(Mark),
    /// Bytes of the stream, in order, cut anywhere.
    Received(Bytes),
    /// The network takes this many bytes now.
    CanTransmit {
        /// Bytes.
        bytes: usize,
    },
    /// The network connection is gone.
    Disconnected,
}

/// What a link wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// So many bytes at the end of the buffer are for the network: whole
    /// frames; a single one with
    /// [`Policy::PerTlp`](crate::aggregate::Policy::PerTlp).
    Transmit(usize),
    /// The greeting is over: TLPs flow.
    Up(Hello),
    /// The far side wants a hot reset; answer with [`Tunnel::reset_done`].
    Reset,
    /// An echo came back.
    EchoReply(u64),
    /// A probe wants the device to belong to this group; answer with
    /// [`Tunnel::answer_move`].
    Move(u16),
    /// The answer to [`Tunnel::move_to`].
    Moved(Moved),
    /// The link is down; close the connection. Queued TLPs are gone.
    Down(Cause),
    /// Nothing more now; call again after an input or at this time.
    Timeout(Option<Instant>),
}
