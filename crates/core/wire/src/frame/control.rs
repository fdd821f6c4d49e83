//! Control frames: without sequence numbers and credits.

use super::moved;
use super::{Hello, Kind, Malformed, Moved, Reject};
use bytes::{Buf, BufMut};

/// Cumulative flow-control limits of one class: how many headers and 16-byte data credits the other
/// side may have sent since the link came up, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Headers: one per TLP.
    pub headers: u32,
    /// Data credits of 16 bytes (PCIe Base 4.0, section 2.6.1).
    pub data: u32,
}

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The greeting, see [`Hello`].
    Hello(Hello),
    /// Rejects the peer's Hello; the connection ends.
    Reject {
        /// The reason.
        reason: Reject,
        /// The protocol version of the sender.
        version: u16,
    },
    /// New credit limits for posted, non-posted and completion TLPs, in this order.
    Credits([Grant; 3]),
    /// Only the header's acknowledgement; also keeps an idle link alive.
    Acknowledge,
    /// Requests an [`EchoReply`](Self::EchoReply) with the same number.
    Echo(u64),
    /// Answers an [`Echo`](Self::Echo) with the same number.
    EchoReply(u64),
    /// Hot reset of all endpoints below the receiver. The receiver drops queued TLPs, then answers
    /// [`ResetDone`](Self::ResetDone) with the same number. Numbers count from 1 on each
    /// connection, modulo 2^32.
    Reset(u32),
    /// The reset with this number and all earlier resets are done. The TLPs after this frame were
    /// sent after the reset.
    ResetDone(u32),
    /// The sender closes the link on purpose.
    Goodbye,
    /// Assigns the device to the hosts of this group; group 0 means any host. The answer is
    /// [`Moved`](Self::Moved).
    Move(u16),
    /// Answers a [`Move`](Self::Move).
    Moved(Moved),
}

impl Control {
    /// The kind in the frame header.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Reject { .. } => Kind::Reject,
            Self::Credits(_) => Kind::Credits,
            Self::Acknowledge => Kind::Acknowledge,
            Self::Echo(_) => Kind::Echo,
            Self::EchoReply(_) => Kind::EchoReply,
            Self::Reset(_) => Kind::Reset,
            Self::ResetDone(_) => Kind::ResetDone,
            Self::Goodbye => Kind::Goodbye,
            Self::Move(_) => Kind::Move,
            Self::Moved(_) => Kind::Moved,
        }
    }

    /// Appends the payload, without the frame header.
    pub fn encode(&self, out: &mut impl BufMut) {
        match self {
            Self::Hello(hello) => hello.encode(out),
            Self::Reject { reason, version } => reason.encode(*version, out),
            Self::Credits(grants) => put_grants(out, grants),
            Self::Echo(number) | Self::EchoReply(number) => out.put_u64(*number),
            Self::Reset(number) | Self::ResetDone(number) => out.put_u32(*number),
            Self::Move(group) => out.put_u16(*group),
            Self::Moved(moved) => moved.encode(out),
            Self::Acknowledge | Self::Goodbye => {}
        }
    }

    /// A control frame from its payload.
    ///
    /// # Errors
    /// [`Malformed`] names the fault. A Hello of another version is not an error if magic and
    /// version are readable. The other fields of such a Hello are placeholders, except for version
    /// 1.
    pub fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Malformed> {
        let (length, mut payload) = (payload.len(), payload);
        Ok(match kind {
            Kind::Tlps => return Err(Malformed::Kind(0)),
            Kind::Hello => Self::Hello(Hello::decode(payload)?),
            Kind::Reject => {
                let (reason, version) = Reject::decode(payload)?;
                Self::Reject { reason, version }
            }
            Kind::Credits if length == 24 => Self::Credits(get_grants(&mut payload)),
            Kind::Acknowledge if length == 0 => Self::Acknowledge,
            Kind::Echo if length == 8 => Self::Echo(payload.get_u64()),
            Kind::EchoReply if length == 8 => Self::EchoReply(payload.get_u64()),
            Kind::Reset if length == 4 => Self::Reset(payload.get_u32()),
            Kind::ResetDone if length == 4 => Self::ResetDone(payload.get_u32()),
            Kind::Goodbye if length == 0 => Self::Goodbye,
            Kind::Move if length == 2 => Self::Move(payload.get_u16()),
            Kind::Moved if length == moved::LENGTH => Self::Moved(Moved::decode(payload)?),
            _ => return Err(Malformed::Length { kind, length }),
        })
    }
}

pub(super) fn undefined(field: &'static str, value: impl Into<u64>) -> Malformed {
    Malformed::Field { field, value: value.into() }
}

pub(super) fn put_grants(out: &mut impl BufMut, grants: &[Grant; 3]) {
    for grant in grants {
        out.put_u32(grant.headers);
        out.put_u32(grant.data);
    }
}

pub(super) fn get_grants(payload: &mut &[u8]) -> [Grant; 3] {
    std::array::from_fn(|_| Grant { headers: payload.get_u32(), data: payload.get_u32() })
}
