//! The records of a message.

use super::{Malformed, zero};
use bytes::{Buf, BufMut, Bytes};

/// A submission queue whose entries may follow, and its completion queue, by which the receiver
/// recognises what ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Submission queue identifier.
    pub id: u16,
    /// The last slot of the submission queue: entries less one, 1 to 65535.
    pub last: u16,
    /// The slot that the controller will consume next, as far as the sender knows; at most `last`.
    pub head: u16,
    /// Entries of the completion queue less one, 1 to 65535.
    pub completion_last: u16,
    /// Host address of the submission queue, a multiple of 4096.
    pub base: u64,
    /// Host address of the completion queue, a multiple of 4096.
    pub completion_base: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// 1: this queue is followed from now on. A queue of the same number is forgotten first, as by
    /// [`Record::EndQueue`].
    Queue(Queue),
    /// 2: bytes of host memory that belong to a command.
    Bytes {
        /// Submission queue identifier.
        queue: u16,
        /// Command identifier.
        command: u16,
        /// Host address of the first byte, a multiple of 4.
        address: u64,
        /// The bytes: whole double words, at least one, that do not reach 2^64.
        bytes: Bytes,
    },
    /// 3: bytes of this command are not to be used any more.
    EndCommand {
        /// Submission queue identifier.
        queue: u16,
        /// Command identifier.
        command: u16,
    },
    /// 4: the queue is gone, and the bytes of its commands.
    EndQueue(u16),
    /// 5: bytes at these host addresses are not to be used any more.
    EndRange {
        /// The first address.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// 6: all queues are gone, and all bytes.
    EndAll,
}

/// Bytes of a [`Record::Bytes`] before its bytes.
pub const BYTES_HEADER: usize = 16;

impl Record {
    /// The bytes that a record of [`Record::Bytes`] within `length` bytes can carry.
    pub const fn most_bytes(length: usize) -> usize {
        length.saturating_sub(BYTES_HEADER) & !3
    }

    /// Bytes of the record: whole double words.
    pub fn length(&self) -> usize {
        match self {
            Self::Queue(_) => 28,
            Self::Bytes { bytes, .. } => BYTES_HEADER + bytes.len(),
            Self::EndCommand { .. } => 8,
            Self::EndQueue(_) | Self::EndAll => 4,
            Self::EndRange { .. } => 20,
        }
    }

    /// Appends the record.
    pub fn encode(&self, out: &mut impl BufMut) {
        match self {
            Self::Queue(queue) => {
                head(1, queue.id, out);
                out.put_u16(queue.last);
                out.put_u16(queue.head);
                out.put_u16(queue.completion_last);
                out.put_u16(0);
                out.put_u64(queue.base);
                out.put_u64(queue.completion_base);
            }
            Self::Bytes { queue, command, address, bytes } => {
                Self::encode_bytes_header(*queue, *command, *address, bytes.len(), out);
                out.put_slice(bytes);
            }
            Self::EndCommand { queue, command } => {
                head(3, *queue, out);
                out.put_u16(*command);
                out.put_u16(0);
            }
            Self::EndQueue(queue) => head(4, *queue, out),
            Self::EndRange { address, length } => {
                head(5, 0, out);
                out.put_u64(*address);
                out.put_u64(*length);
            }
            Self::EndAll => head(6, 0, out),
        }
    }

    /// Appends a record of [`Record::Bytes`] up to its `length` bytes, which have to follow.
    pub fn encode_bytes_header(
        queue: u16,
        command: u16,
        address: u64,
        length: usize,
        out: &mut impl BufMut,
    ) {
        head(2, queue, out);
        out.put_u16(command);
        out.put_u16((length / 4) as u16);
        out.put_u64(address);
    }

    /// Appends all records of a payload, up to the first one that is not valid.
    pub(super) fn decode_all(mut payload: Bytes, records: &mut Vec<Self>) -> Result<(), Malformed> {
        while !payload.is_empty() {
            records.push(Self::decode(&mut payload)?);
        }
        Ok(())
    }

    fn decode(payload: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, queue) = (need(payload, 4)?.get_u16(), payload.get_u16());
        zero("byte 1 of a record", u64::from(kind & 0xff))?;
        let none = || zero("the queue of a record without one", queue.into());
        match kind >> 8 {
            1 => Self::queue(queue, need(payload, 24)?),
            2 => Self::bytes(queue, payload),
            3 => {
                let (command, rest) = (need(payload, 4)?.get_u16(), payload.get_u16());
                zero("bytes 6 and 7 of EndCommand", rest.into())?;
                Ok(Self::EndCommand { queue, command })
            }
            4 => Ok(Self::EndQueue(queue)),
            5 => {
                none()?;
                let (address, length) = (need(payload, 16)?.get_u64(), payload.get_u64());
                Ok(Self::EndRange { address, length })
            }
            6 => none().map(|()| Self::EndAll),
            kind => Err(Malformed::Kind(kind as u8)),
        }
    }

    fn queue(id: u16, payload: &mut Bytes) -> Result<Self, Malformed> {
        let [last, head, completion_last, rest] = [(); 4].map(|()| payload.get_u16());
        let [base, completion_base] = [(); 2].map(|()| payload.get_u64());
        zero("bytes 10 and 11 of Queue", rest.into())?;
        for (field, last) in
            [("the last slot", last), ("the last completion slot", completion_last)]
        {
            if last == 0 {
                return Err(Malformed::Field {
                    field,
                    value: 0,
                    allowed: "1 to 65535 are allowed",
                });
            }
        }
        if head > last {
            let (field, allowed) = ("the head", "slots of the queue are allowed");
            return Err(Malformed::Field { field, value: head.into(), allowed });
        }
        for (field, base) in [("the base", base), ("the completion base", completion_base)] {
            // The longest queue has 65536 entries of 64 bytes.
            if base & 0xfff != 0 || base.checked_add(1 << 22).is_none() {
                let allowed = "multiples of 4096 more than 4 MiB below 2^64 are allowed";
                return Err(Malformed::Field { field, value: base, allowed });
            }
        }
        Ok(Self::Queue(Queue { id, last, head, completion_last, base, completion_base }))
    }

    fn bytes(queue: u16, payload: &mut Bytes) -> Result<Self, Malformed> {
        let (command, dwords) = (need(payload, 12)?.get_u16(), payload.get_u16());
        let (address, length) = (payload.get_u64(), usize::from(dwords) * 4);
        let wrong = |field, value, allowed| Malformed::Field { field, value, allowed };
        if length == 0 {
            return Err(wrong("the length of Bytes", 0, "1 double word and more are allowed"));
        }
        if address & 3 != 0 || address.checked_add(length as u64).is_none() {
            return Err(wrong(
                "the address of Bytes",
                address,
                "double words below 2^64 are allowed",
            ));
        }
        let bytes = need(payload, length)?.split_to(length);
        Ok(Self::Bytes { queue, command, address, bytes })
    }
}

/// The kind of a record, and its queue.
fn head(kind: u8, queue: u16, out: &mut impl BufMut) {
    out.put_u16(u16::from(kind) << 8);
    out.put_u16(queue);
}

/// The payload, if it has `need` bytes.
fn need(payload: &mut Bytes, need: usize) -> Result<&mut Bytes, Malformed> {
    let have = payload.len();
    if have < need { Err(Malformed::Short { need, have }) } else { Ok(payload) }
}
