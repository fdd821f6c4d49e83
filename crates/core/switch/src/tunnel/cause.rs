//! Why a link went down, with messages for the user.

use wire::frame::{self, Reject, Role, VERSION};
use wire::tlp;

/// Why a link went down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The connection was closed or reset.
    #[error("the connection was closed")]
    Disconnected,
    /// This end closed it: the device belongs to another group now.
    #[error("the device was moved to another group")]
    Moved,
    /// The far side sent Goodbye.
    #[error("the far side closed the link")]
    Goodbye,
    /// The connection was closed or reset before the far side's Hello.
    #[error("the connection was closed without a greeting: no farlane node, or one that ends")]
    ClosedUngreeted,
    /// The far side's Hello did not come within the loss limit.
    #[error("connected, but no greeting came: no farlane node, or one that hangs")]
    Ungreeted,
    /// Nothing was received for the loss limit.
    #[error("nothing heard from the far side within the limit")]
    Lost,
    /// The far side sends, but has accepted no posted request or completion for the loss limit.
    #[error("the far side takes nothing any more")]
    Stuck,
    /// The protocol versions differ.
    #[error(
        "the {far} speaks version {theirs} of the protocol, this node version {VERSION}: \
         upgrade {older}",
        far = far(*.own),
        older = if *.theirs < VERSION { format!("the {} node", far(*.own)) } else { "this node".into() }
    )]
    Version {
        /// Which end this is.
        own: Role,
        /// The version of the far side.
        theirs: u16,
    },
    /// The far side rejected the Hello.
    #[error("rejected: {0}")]
    Rejected(Reject),
    /// The far side's Hello requires the entry of this number, which this end does not know.
    #[error(
        "the far side requires entry {0} of the greeting, which this version does not know: \
         upgrade this node"
    )]
    Requires(u16),
    /// The roles of the ends do not match.
    #[error("the far side is a {0:?} too, or no link end")]
    Role(Role),
    /// The far side speaks another protocol. Holds its first bytes, at most 12.
    #[error("it does not speak farlane's protocol (it sent '{}…')", .0.escape_ascii())]
    UnknownProtocol(Vec<u8>),
    /// The far side sent a malformed frame.
    #[error("malformed frame: {0}")]
    Frame(frame::Malformed),
    /// The far side sent a malformed TLP.
    #[error("malformed TLP: {0}")]
    Tlp(tlp::Malformed),
    /// The far side broke a rule of sequence, credit or size.
    #[error("protocol violation: {0}")]
    Violation(&'static str),
}

/// Bytes kept of a peer with another protocol, for the message.
pub(super) const FIRST_BYTES: usize = 12;

fn far(own: Role) -> &'static str {
    if own == Role::Device { "host" } else { "device" }
}
