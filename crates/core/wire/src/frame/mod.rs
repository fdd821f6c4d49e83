//! The tunnel's frames, between two ports of the distributed switch. `docs/protocol.md` specifies
//! the bytes; tests compare its examples with this codec.
//!
//! A frame is a 12-byte header and up to 65 535 bytes of payload. All numbers are big-endian, as in
//! TLPs.

mod control;
mod hello;
mod moved;
mod reject;
mod report;
#[cfg(test)]
mod tests;

pub use control::{Control, Grant};
pub use hello::{
    FIXED_HELLO, Hello, LinkConnection, MAX_ENTRIES, MAX_HELLO, Paths, REQUIRED, Role, Survival,
};
pub use moved::{HostAfter, MoveStatus, Moved};
pub use reject::Reject;
pub use report::FrameReport;

use thiserror::Error;

/// Size of a frame header in bytes.
pub const HEADER: usize = 12;

/// The largest payload of a frame in bytes.
pub const MAX_PAYLOAD: usize = 65_535;

/// The version of the protocol that this crate implements.
pub const VERSION: u16 = 2;

/// The first bytes of a [`Hello`]'s payload, in every version.
pub const MAGIC: [u8; 8] = *b"FARLANE\0";

numbers! {
    /// The kind of a frame.
    pub enum Kind: u8 {
        /// Whole TLPs, back to back. Only frames of this kind have sequence numbers.
        Tlps = 0,
        /// [`Control::Hello`].
        Hello = 1,
        /// [`Control::Reject`].
        Reject = 2,
        /// [`Control::Credits`].
        Credits = 3,
        /// [`Control::Acknowledge`].
        Acknowledge = 4,
        /// [`Control::Echo`].
        Echo = 5,
        /// [`Control::EchoReply`].
        EchoReply = 6,
        /// [`Control::Reset`].
        Reset = 7,
        /// [`Control::ResetDone`].
        ResetDone = 8,
        /// [`Control::Goodbye`].
        Goodbye = 9,
        /// [`Control::Move`].
        Move = 10,
        /// [`Control::Moved`].
        Moved = 11,
    }
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Payload bytes after the header.
    pub length: u16,
    /// The kind of the payload.
    pub kind: Kind,
    /// Number of this frame among the frames of kind [`Kind::Tlps`], from 0; 0 in other frames.
    pub sequence: u32,
    /// The sequence number expected next from the other side: all frames with lower numbers were
    /// received.
    pub acknowledged: u32,
}

/// Why bytes are not a valid frame.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The kind is unknown.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// Bits that must be zero are not.
    #[error("reserved flags {0:#04x} are set in a frame header")]
    Flags(u8),
    /// The payload's length does not fit its kind.
    #[error("a {kind:?} frame has an invalid payload length of {length} bytes")]
    Length {
        /// The kind in the header.
        kind: Kind,
        /// Length of the payload.
        length: usize,
    },
    /// A greeting that does not begin with the magic.
    #[error("the peer is not a farlane node: its greeting begins with {0:02x?}")]
    Magic([u8; 8]),
    /// An entry of a greeting is malformed or misplaced.
    #[error("entry {number} of the greeting: {fault}")]
    Entry {
        /// Number of the entry; 0 if the greeting ends before the number.
        number: u16,
        /// The fault.
        fault: &'static str,
    },
    /// A well-formed greeting requires the entry of this number.
    #[error("the greeting requires entry {0}, which this version does not support")]
    Required(u16),
    /// A field of a control frame has a value that is not defined.
    #[error("{field} has the undefined value {value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: u64,
    },
}

/// Whether a stream that begins with `bytes` may come from a farlane peer of any version. Such a
/// stream begins with a header of kind [`Kind::Hello`] or [`Kind::Reject`] without flags, at most
/// [`MAX_HELLO`] bytes of payload, and the magic. Checks only the bytes present.
pub fn may_be_greeting(bytes: &[u8]) -> bool {
    let header = bytes.first_chunk::<4>().is_none_or(|[_, _, kind, flags]| {
        *flags == 0 && [Kind::Hello as u8, Kind::Reject as u8].contains(kind)
    });
    let length = match bytes {
        [] => 0,
        [high] => usize::from(*high) << 8,
        [high, low, ..] => usize::from(*high) << 8 | usize::from(*low),
    };
    let magic = bytes.get(HEADER..).unwrap_or_default();
    let magic = magic.iter().zip(MAGIC).all(|(byte, due)| *byte == due);
    header && length <= MAX_HELLO && magic
}

impl Kind {
    /// The kind with this byte in the header.
    ///
    /// # Errors
    /// [`Malformed::Kind`] if the byte is undefined.
    pub fn from_byte(byte: u8) -> Result<Self, Malformed> {
        Self::from_number(byte).ok_or(Malformed::Kind(byte))
    }
}

impl Header {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..2].copy_from_slice(&self.length.to_be_bytes());
        out[2] = self.kind as u8;
        out[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        out[8..12].copy_from_slice(&self.acknowledged.to_be_bytes());
        out
    }

    /// A header from its bytes.
    ///
    /// # Errors
    /// [`Malformed::Kind`] for an undefined kind, [`Malformed::Flags`] for flags other than 0.
    pub fn decode(bytes: [u8; HEADER]) -> Result<Self, Malformed> {
        if bytes[3] != 0 {
            return Err(Malformed::Flags(bytes[3]));
        }
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Ok(Self {
            length: u16::from_be_bytes([bytes[0], bytes[1]]),
            kind: Kind::from_byte(bytes[2])?,
            sequence: word(4),
            acknowledged: word(8),
        })
    }
}
