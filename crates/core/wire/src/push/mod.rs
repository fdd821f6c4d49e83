//! The message by which a host node sends bytes of host memory in front of a doorbell
//! (`docs/push.md`).
//!
//! It is a MsgD, Vendor_Defined Type 1, routed by ID (PCIe Base 4.0, section 2.2.8.6): bytes 8 and
//! 9 of the header are the function that will read the bytes, bytes 10 and 11 [`VENDOR`], and bytes
//! 12 to 15 are defined here: [`SUBTYPE`], the binary logarithm of the completion size, and two
//! reserved bytes. The payload is a sequence of [`Record`]s. All numbers are big-endian.

mod reason;
mod record;
#[cfg(test)]
mod tests;

pub use crate::id::VENDOR;
pub use reason::Reason;
pub use record::{BYTES_HEADER, Queue, Record, Records};

use crate::id::{Bdf, Tag};
use crate::tlp::{Message, Packet, Routing, Tlp, message_code};
use bytes::Bytes;
use thiserror::Error;

/// Byte 12 of the header, which selects the format defined here.
pub const SUBTYPE: u8 = 1;

/// Binary logarithms of the completion sizes: from the RCB, 64 bytes, to the largest payload
/// (PCIe Base 4.0, sections 2.3.1.1 and 2.2.2).
const COMPLETION_SHIFTS: std::ops::RangeInclusive<u8> = 6..=12;

/// Why a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The message has another subtype.
    #[error("unknown subtype '{0}': only {SUBTYPE} is defined")]
    Subtype(u8),
    /// The message ends within a record.
    #[error("truncated record: {have} bytes are left, it needs {need}")]
    Short {
        /// Number of bytes needed.
        need: usize,
        /// Number of bytes available.
        have: usize,
    },
    /// A record of an undefined kind.
    #[error("unknown record kind '{0}': expected 1 to 6")]
    Kind(u8),
    /// A field has a value that is not allowed.
    #[error("{field} is {value:#x}: expected {allowed}")]
    Field {
        /// The field.
        field: &'static str,
        /// The value of the field.
        value: u64,
        /// The allowed values.
        allowed: &'static str,
    },
}

/// A decoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The sender. Completions made from the pushed bytes have this completer ID.
    pub completer: Bdf,
    /// The function that the records concern.
    pub target: Bdf,
    /// The maximum number of payload bytes in one completion of a read by the target: a power of
    /// two, 64 to
    /// 4096. Completions end at multiples of this number.
    pub completion_size: usize,
    /// Whether completions have an ECRC, as the message does.
    pub digest: bool,
    /// The records, in order.
    pub records: Records,
}

impl Push {
    /// Decodes the message in `tlp`, or a run of messages; `None` for any other packet.
    ///
    /// # Errors
    /// [`Malformed`] if a message with farlane's vendor ID is malformed.
    pub fn decode(tlp: &Tlp) -> Option<Result<Self, Malformed>> {
        Self::decode_front(tlp).map(|(push, valid)| valid.map(|()| push))
    }

    /// As [`decode`](Self::decode), but after a malformed record it returns the records before that
    /// one, with the fault. For recordings, which may have only the front of a payload.
    pub fn decode_front(tlp: &Tlp) -> Option<(Self, Result<(), Malformed>)> {
        let Packet::Message(message) = tlp.packet else { return None };
        let [target @ .., _, _, subtype, shift, r0, r1] = message.body;
        is_push(tlp).then(|| {
            let mut push = Self {
                completer: message.requester,
                target: Bdf::from_bits(u16::from_be_bytes(target)),
                completion_size: 1
                    << shift.clamp(*COMPLETION_SHIFTS.start(), *COMPLETION_SHIFTS.end()),
                digest: tlp.digest,
                records: Records::default(),
            };
            let valid = check_header(subtype, shift, u16::from_be_bytes([r0, r1])).and_then(|()| {
                let (records, valid) = Records::check(tlp);
                push.records = records;
                valid
            });
            (push, valid)
        })
    }
}

/// Whether a packet is a push message, valid or not.
pub fn is_push(tlp: &Tlp) -> bool {
    let Packet::Message(message) = tlp.packet else { return false };
    let vendor = u16::from_be_bytes([message.body[2], message.body[3]]);
    message.code == message_code::VENDOR_TYPE_1
        && message.routing == Routing::ById
        && vendor == VENDOR
}

fn check_header(subtype: u8, shift: u8, reserved: u16) -> Result<(), Malformed> {
    if subtype != SUBTYPE {
        return Err(Malformed::Subtype(subtype));
    }
    if !COMPLETION_SHIFTS.contains(&shift) {
        let (field, allowed) = ("the completion size's logarithm", "6 to 12");
        return Err(Malformed::Field { field, value: shift.into(), allowed });
    }
    zero("bytes 14 and 15", reserved.into())
}

/// Checks a reserved field.
fn zero(field: &'static str, value: u64) -> Result<(), Malformed> {
    if value == 0 { Ok(()) } else { Err(Malformed::Field { field, value, allowed: "0" }) }
}

/// The message of `completer` to `target` with `records`, the encoded [`Record`]s.
///
/// # Panics
/// If `completion_size` is not a power of two from 64 to 4096.
pub fn message(
    completer: Bdf,
    target: Bdf,
    completion_size: usize,
    digest: bool,
    records: Bytes,
) -> Tlp {
    let shift = completion_size.ilog2() as u8;
    assert!(
        completion_size.is_power_of_two() && COMPLETION_SHIFTS.contains(&shift),
        "completions of {completion_size} bytes"
    );
    let ([t0, t1], [v0, v1]) = (target.bits().to_be_bytes(), VENDOR.to_be_bytes());
    let message = Message {
        requester: completer,
        tag: Tag::default(),
        routing: Routing::ById,
        code: message_code::VENDOR_TYPE_1,
        body: [t0, t1, v0, v1, SUBTYPE, shift, 0, 0],
    };
    Tlp { digest, ..Tlp::new(Packet::Message(message), records) }
}
