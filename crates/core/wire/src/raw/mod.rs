//! The header of the raw-Ethernet transport: the bytes between EtherType 0x88B5 and one segment of
//! a link's stream. `docs/protocol.md`, "Raw Ethernet", specifies the bytes; tests compare its
//! examples with this codec.
//!
//! 12 bytes, big-endian. Sequence numbers have 24 bits: at 10 Gb/s and the smallest frames they
//! wrap around after 1.1 s, longer than a bridge keeps a frame.

mod sequence;
#[cfg(test)]
mod tests;

pub use sequence::Sequence;

use thiserror::Error;

/// IEEE Std 802, local experimental EtherType 1 (IEEE 802-2014, 9.2.3).
pub const ETHERTYPE: u16 = 0x88b5;

/// Bytes of the header. A data frame has no other overhead after its EtherType.
pub const HEADER: usize = 12;

/// The version of this header, in the high four bits of its first byte.
pub const VERSION: u8 = 1;

/// The smallest payload of an Ethernet frame (IEEE 802.3, 4.4.2: 64 bytes minus header and FCS);
/// shorter payloads are padded.
pub const MIN_PAYLOAD: usize = 46;

/// The maximum number of bytes of a bitmap of a selective acknowledgement. An acknowledgement with
/// the longest bitmap still fits the smallest Ethernet frame.
pub const MAX_BITMAP: usize = MIN_PAYLOAD - HEADER - 2;

/// The bits of a connection identifier: 24.
pub const CONNECTION_MASK: u32 = 0x00ff_ffff;

numbers! {
    /// The purpose of a frame.
    pub enum Kind: u8 {
        /// Requests a connection.
        Open = 1,
        /// Grants a connection.
        Accept = 2,
        /// One segment of the stream. Only frames of this kind have sequence numbers.
        Data = 3,
        /// An acknowledgement without data.
        Ack = 4,
        /// Ends the connection.
        Close = 5,
    }
}

/// The limits that one end accepts: the payload of [`Kind::Open`] and [`Kind::Accept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The largest segment in bytes.
    pub segment: u16,
    /// The maximum number of unacknowledged data frames. This end can buffer this number of frames
    /// out of order.
    pub window: u16,
}

numbers! {
    /// Why a connection ended.
    pub enum Reason: u8 {
        /// On purpose.
        Done = 0 "closed the connection",
        /// This end has no such connection, because it was restarted.
        Unknown = 1 "has no such connection",
        /// This end has another connection.
        Busy = 2 "has another connection",
        /// The peer violated the protocol.
        Violation = 3 "reports a violation of the protocol",
    }
}

/// The data frames received after the first missing one. Bit `i` stands for sequence number
/// [`Frame::acknowledged`] + 1 + `i`. Bit 0 is the lowest bit of the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    bytes: [u8; MAX_BITMAP],
}

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// See [`Kind::Open`].
    Open(Offer),
    /// See [`Kind::Accept`].
    Accept(Offer),
    /// See [`Kind::Data`].
    Data {
        /// Sequence number of the frame.
        sequence: Sequence,
        /// Bytes of the stream, at least one.
        segment: &'a [u8],
    },
    /// See [`Kind::Ack`].
    Ack {
        /// Sequence number of the data frame that caused this acknowledgement, for measuring its
        /// round trip.
        newest: Sequence,
        /// Delay of this acknowledgement in units of 16 ns; saturates.
        waited: u16,
        /// The frames received out of order.
        bitmap: Bitmap,
    },
    /// See [`Kind::Close`].
    Close(Reason),
}

/// A frame after its EtherType, without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Identifier of the connection between two stations, 24 bits.
    pub connection: u32,
    /// The number of the next expected data frame: all earlier ones were received.
    pub acknowledged: Sequence,
    /// The contents of the frame.
    pub body: Body<'a>,
}

/// Why bytes are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The frame is shorter than its header, or shorter than its length field states.
    #[error("truncated raw frame of {0} bytes")]
    Cut(usize),
    /// Another version, or another protocol on this experimental EtherType.
    #[error("unknown version {0} of a raw frame")]
    Version(u8),
    /// The kind is unknown.
    #[error("unknown kind {0} of a raw frame")]
    Kind(u8),
    /// The payload's length does not fit its kind.
    #[error("a raw {kind:?} frame has an invalid payload length of {length} bytes")]
    Length {
        /// The kind in the header.
        kind: Kind,
        /// The length field.
        length: usize,
    },
    /// A field has a value that is not defined.
    #[error("{field} of a raw frame has the undefined value {value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: u32,
    },
}

impl Bitmap {
    /// Number of sequence numbers that the bitmap covers.
    pub const BITS: usize = 8 * MAX_BITMAP;

    /// Marks the segment of this bit as received; ignores bits beyond the bitmap.
    pub fn set(&mut self, bit: usize) {
        if let Some(byte) = self.bytes.get_mut(bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }

    /// Whether the segment of this bit was received.
    pub fn get(&self, bit: usize) -> bool {
        self.bytes.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// Whether no bit is set: no frame was received out of order.
    pub fn is_empty(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// The bytes without trailing zeros.
    fn trimmed(&self) -> &[u8] {
        let used = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &self.bytes[..used]
    }
}

impl Body<'_> {
    /// The kind of the frame.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Open(_) => Kind::Open,
            Self::Accept(_) => Kind::Accept,
            Self::Data { .. } => Kind::Data,
            Self::Ack { .. } => Kind::Ack,
            Self::Close(_) => Kind::Close,
        }
    }
}

impl<'a> Frame<'a> {
    /// Appends the frame: the bytes after the EtherType, without padding.
    ///
    /// # Panics
    /// If a segment is longer than 65 535 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(VERSION << 4 | self.body.kind() as u8);
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.connection.to_be_bytes()[1..]);
        let sequence = match self.body {
            Body::Data { sequence, .. } => sequence,
            Body::Ack { newest, .. } => newest,
            _ => Sequence::default(),
        };
        out.extend_from_slice(&sequence.to_bytes());
        out.extend_from_slice(&self.acknowledged.to_bytes());
        match &self.body {
            Body::Open(offer) | Body::Accept(offer) => {
                out.extend_from_slice(&offer.segment.to_be_bytes());
                out.extend_from_slice(&offer.window.to_be_bytes());
            }
            Body::Data { segment, .. } => out.extend_from_slice(segment),
            Body::Ack { waited, bitmap, .. } => {
                out.extend_from_slice(&waited.to_be_bytes());
                out.extend_from_slice(bitmap.trimmed());
            }
            Body::Close(reason) => out.push(*reason as u8),
        }
        let length = u16::try_from(out.len() - start - HEADER).expect("a segment fits a frame");
        out[start + 1..start + 3].copy_from_slice(&length.to_be_bytes());
    }

    /// Length in bytes of the frame at the front of `bytes`, according to its header; `None` if the
    /// header is incomplete.
    pub fn wire_length(bytes: &[u8]) -> Option<usize> {
        let [_, high, low, ..] = *bytes.first_chunk::<HEADER>()?;
        Some(HEADER + usize::from(u16::from_be_bytes([high, low])))
    }

    /// Decodes the bytes after the EtherType, padding included.
    ///
    /// # Errors
    /// [`Malformed`]: the receiver must drop the frame.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or(Malformed::Cut(bytes.len()))?;
        if header[0] >> 4 != VERSION {
            return Err(Malformed::Version(header[0] >> 4));
        }
        let kind = header[0] & 0x0f;
        let kind = Kind::from_number(kind).ok_or(Malformed::Kind(kind))?;
        let length = usize::from(u16::from_be_bytes([header[1], header[2]]));
        let payload = &bytes[HEADER..];
        let payload = payload.get(..length).ok_or(Malformed::Cut(bytes.len()))?;
        let sequence = Sequence::from_bytes([header[6], header[7], header[8]]);
        let body = match kind {
            Kind::Open => Body::Open(Offer::decode(kind, payload)?),
            Kind::Accept => Body::Accept(Offer::decode(kind, payload)?),
            Kind::Data if payload.is_empty() => return Err(Malformed::Length { kind, length }),
            Kind::Data => Body::Data { sequence, segment: payload },
            Kind::Ack => acknowledgement(sequence, payload)?,
            Kind::Close => match payload {
                [reason] => {
                    let undefined = Malformed::Field { field: "reason", value: (*reason).into() };
                    Body::Close(Reason::from_number(*reason).ok_or(undefined)?)
                }
                _ => return Err(Malformed::Length { kind, length }),
            },
        };
        let numbered = matches!(kind, Kind::Data | Kind::Ack);
        if !numbered && sequence != Sequence::default() {
            return Err(Malformed::Field { field: "sequence", value: sequence.number() });
        }
        Ok(Self {
            connection: u32::from_be_bytes([0, header[3], header[4], header[5]]),
            acknowledged: Sequence::from_bytes([header[9], header[10], header[11]]),
            body,
        })
    }
}

fn acknowledgement(newest: Sequence, payload: &[u8]) -> Result<Body<'_>, Malformed> {
    let wrong = Malformed::Length { kind: Kind::Ack, length: payload.len() };
    let (waited, marks) = payload.split_first_chunk::<2>().ok_or(wrong)?;
    let mut bitmap = Bitmap::default();
    bitmap.bytes.get_mut(..marks.len()).ok_or(wrong)?.copy_from_slice(marks);
    if marks.last() == Some(&0) {
        return Err(Malformed::Field { field: "bitmap", value: 0 });
    }
    Ok(Body::Ack { newest, waited: u16::from_be_bytes(*waited), bitmap })
}

impl Offer {
    fn decode(kind: Kind, payload: &[u8]) -> Result<Self, Malformed> {
        let [c0, c1, w0, w1] = *payload else {
            return Err(Malformed::Length { kind, length: payload.len() });
        };
        let offer =
            Self { segment: u16::from_be_bytes([c0, c1]), window: u16::from_be_bytes([w0, w1]) };
        match offer {
            Self { segment: 0, .. } => Err(Malformed::Field { field: "segment", value: 0 }),
            Self { window: 0, .. } => Err(Malformed::Field { field: "window", value: 0 }),
            _ => Ok(offer),
        }
    }
}
