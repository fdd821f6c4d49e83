//! Why a link went down, with messages for the user.

use std::fmt;
use wire::frame::{self, Reject, Role, VERSION};
use wire::tlp;

/// Why a link went down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection was closed or reset.
    Disconnected,
    /// This end closed it: the device belongs to another group now.
    Moved,
    /// The far side sent Goodbye.
    Goodbye,
    /// Nothing was received for the loss limit.
    Lost,
    /// The far side sends, but has accepted no posted request or completion for
    /// the loss limit.
    Stuck,
    /// The protocol versions differ.
    Version {
        /// Which end this is.
        own: Role,
        /// The version of the far side.
        theirs: u16,
    },
    /// The far side rejected the Hello.
    Rejected(Reject),
    /// The far side's Hello requires the entry of this number, which this end
    /// does not know.
    Requires(u16),
    /// The roles of the ends do not match.
    Role(Role),
    /// The far side speaks another protocol. Holds its first bytes, at most
    /// [`FIRST_BYTES`].
    UnknownProtocol(Vec<u8>),
    /// The far side sent a malformed frame.
    Frame(frame::Malformed),
    /// The far side sent a malformed TLP.
    Tlp(tlp::Malformed),
    /// The far side broke a rule of sequence, credit or size.
    Violation(&'static str),
}

/// Bytes kept of a peer with another protocol, for the message.
pub(super) const FIRST_BYTES: usize = 12;

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("the connection was closed"),
            Self::Moved => f.write_str("the device was moved to another group"),
            Self::Goodbye => f.write_str("the far side closed the link"),
            Self::Lost => f.write_str("nothing heard from the far side within the limit"),
            Self::Stuck => f.write_str("the far side takes nothing any more"),
            Self::Version { own, theirs } => {
                let far = if *own == Role::Device { "host" } else { "device" };
                write!(
                    f,
                    "the {far} speaks version {theirs} of the protocol, this node version \
                     {VERSION}: upgrade "
                )?;
                if *theirs < VERSION {
                    write!(f, "the {far} node")
                } else {
                    f.write_str("this node")
                }
            }
            Self::Rejected(reason) => rejected(*reason, f),
            Self::Requires(number) => write!(
                f,
                "the far side requires entry {number} of the greeting, which this version does \
                 not know: upgrade this node"
            ),
            Self::Role(role) => write!(f, "the far side is a {role:?} too, or no link end"),
            Self::UnknownProtocol(first) => write!(
                f,
                "it does not speak farlane's protocol (it sent '{}…')",
                first.escape_ascii()
            ),
            Self::Frame(error) => write!(f, "malformed frame: {error}"),
            Self::Tlp(error) => write!(f, "malformed TLP: {error}"),
            Self::Violation(rule) => write!(f, "protocol violation: {rule}"),
        }
    }
}

fn rejected(reason: Reject, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("rejected: ")?;
    match reason {
        // Normally reported as `Cause::Version`, with the peer's version.
        Reject::Version => f.write_str("protocol version mismatch"),
        Reject::Busy => f.write_str("another host uses this device"),
        Reject::Role => f.write_str("roles do not fit"),
        Reject::Group => f.write_str("the device belongs to another group"),
        Reject::UnknownEntry(number) => write!(
            f,
            "the device does not know entry {number} of the greeting, which this node requires: \
             upgrade the device node"
        ),
        Reject::MissingEntry(number) => write!(
            f,
            "the device requires entry {number} of the greeting, which this version does not \
             send: upgrade this node"
        ),
        Reject::Other(reason) => write!(f, "for reason {reason}, which this version does not know"),
    }
}
