//! Why a link went down, with messages for the user.

use wire::frame::{self, Reject, Role, VERSION};
use wire::tlp;

/// Why a link went down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The connection was closed or reset.
    #[error("the connection was closed")]
    Disconnected,
    /// This end closed the link, because the device now belongs to another group.
    #[error("the device was moved to another group")]
    Moved,
    /// The far side sent Goodbye.
    #[error("the far side closed the link")]
    Goodbye,
    /// The connection was closed or reset before the far side's Hello.
    #[error("the far side closed the connection before its greeting: no farlane node, or it exits")]
    ClosedUngreeted,
    /// No Hello of the far side arrived within the loss limit.
    #[error("connected, but no greeting arrived: the far side is no farlane node, or it hangs")]
    Ungreeted,
    /// No bytes were received for the loss limit.
    #[error("nothing was received from the far side within the loss limit")]
    Lost,
    /// The far side sends, but has accepted no posted request or completion for the loss limit.
    #[error("the far side sends, but has accepted no TLP within the loss limit")]
    Stuck,
    /// The far side no longer has the session, or has replaced it.
    #[error("the far side was restarted, or gave the session up")]
    SessionGone,
    /// This end closed the connection, because another connection of the link has ended.
    #[error("another connection of the link has ended")]
    OtherConnection,
    /// This end gave an interrupted session up, because a guest reset a device behind the link, or
    /// read its registers.
    #[error("the connection was lost, and a guest reset or read its device meanwhile")]
    GuestReset,
    /// The protocol versions differ.
    #[error(
        "the {far} uses version {theirs} of the protocol, this node uses version {VERSION}; \
         upgrade {older}",
        far = far(*.own),
        older = if *.theirs < VERSION { format!("the {} node", far(*.own)) } else { "this node".into() }
    )]
    Version {
        /// The role of this end.
        own: Role,
        /// The version of the far side.
        theirs: u16,
    },
    /// The far side rejected the Hello.
    #[error("rejected: {0}")]
    Rejected(Reject),
    /// The far side's Hello requires the entry of this number, which this end does not support.
    #[error(
        "the far side requires entry {0} of the greeting, which this version does not support; \
         upgrade this node"
    )]
    Requires(u16),
    /// The roles of the ends do not match.
    #[error("the roles do not fit: the far side is a {0:?}; connect a host to a device")]
    Role(Role),
    /// The far side does not have this number of queue pairs per connection; 0: a link to it has one
    /// connection.
    #[error(
        "this node has {own} queue pairs per connection, and the far side {}; start both with the \
         same --queues-per-link",
        if *.theirs == 0 { "one connection per link".to_owned() } else { .theirs.to_string() }
    )]
    QueuePairs {
        /// The number of this end.
        own: u16,
        /// The number of the far side.
        theirs: u16,
    },
    /// An end refuses the key of the other. Has the reason.
    #[error("{0}")]
    Refused(String),
    /// The far side uses another protocol. Has the first received bytes, at most 12.
    #[error("{}", unknown_protocol(.0))]
    UnknownProtocol(Vec<u8>),
    /// The far side sent a malformed frame.
    #[error("malformed frame: {0}")]
    Frame(frame::Malformed),
    /// The far side sent a malformed TLP.
    #[error("malformed TLP: {0}")]
    Tlp(tlp::Malformed),
    /// The far side violated a rule about sequence numbers, credits or sizes.
    #[error("protocol violation: {0}")]
    Violation(&'static str),
}

impl Cause {
    /// Whether only the connection is lost, so that a session can go on over another one.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Disconnected | Self::Lost)
    }

    /// Whether a connection that fails so, before it carries an interrupted session on, ends the
    /// session.
    pub(super) fn ends_session(&self) -> bool {
        matches!(
            self,
            Self::SessionGone
                | Self::Rejected(_)
                | Self::Refused(_)
                | Self::Moved
                | Self::Version { .. }
                | Self::Requires(_)
                | Self::Role(_)
                | Self::QueuePairs { .. }
        )
    }
}

/// The maximum number of bytes of another protocol that a message shows.
pub(super) const FIRST_BYTES: usize = 12;

/// The start of a TLS alert or handshake record of TLS 1.0 to 1.3 (RFC 8446, 5.1).
const TLS_RECORD: [[u8; 2]; 2] = [[21, 3], [22, 3]];

fn unknown_protocol(first: &[u8]) -> String {
    match TLS_RECORD.iter().any(|record| first.starts_with(record)) {
        true => "the far side uses TLS: start this node with --key and --peers".to_owned(),
        false => {
            format!(
                "the far side does not use farlane's protocol: it sent '{}…'",
                first.escape_ascii()
            )
        }
    }
}

fn far(own: Role) -> &'static str {
    if own == Role::Device { "host" } else { "device" }
}
