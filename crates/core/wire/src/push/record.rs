//! The records of a push message.

use super::{Malformed, zero};
use crate::tlp::{Run, Tlp};
use bytes::{Buf, BufMut, Bytes};

/// A submission queue whose entries may be pushed, and its completion queue. From writes to the
/// completion queue the receiver learns which bytes are no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Submission queue identifier.
    pub id: u16,
    /// The last slot of the submission queue: number of entries minus 1, 1 to 65535.
    pub last: u16,
    /// The next slot that the controller will consume, as far as the sender knows; at most `last`.
    pub head: u16,
    /// Number of entries of the completion queue minus 1, 1 to 65535.
    pub completion_last: u16,
    /// Host address of the submission queue, a multiple of 4096.
    pub base: u64,
    /// Host address of the completion queue, a multiple of 4096.
    pub completion_base: u64,
}

/// A record of a push message. The text of each variant begins with the number of the record's
/// kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// 1: starts to follow this queue. A queue with the same number is first invalidated, as by
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
        /// The bytes: whole double words, at least one. They end below address 2^64.
        bytes: Bytes,
    },
    /// 3: invalidates the bytes of this command.
    EndCommand {
        /// Submission queue identifier.
        queue: u16,
        /// Command identifier.
        command: u16,
    },
    /// 4: invalidates the bytes of this queue's commands, and stops following the queue.
    EndQueue(u16),
    /// 5: invalidates the bytes at these host addresses.
    EndRange {
        /// The first address.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// 6: invalidates all bytes, and stops following all queues.
    EndAll,
}

/// Bytes of the header of a [`Record::Bytes`].
pub const BYTES_HEADER: usize = 16;

impl Record {
    /// The maximum number of bytes of data in a [`Record::Bytes`] of `length` bytes.
    pub const fn most_bytes(length: usize) -> usize {
        length.saturating_sub(BYTES_HEADER) & !3
    }

    /// Size of the record in bytes: whole double words.
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

    /// Appends the header of a [`Record::Bytes`]; its `length` bytes must follow.
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

    /// Checks the record at the start of `payload`; returns its length in bytes.
    fn check(payload: &[u8]) -> Result<usize, Malformed> {
        let [kind, reserved, q0, q1, ..] = *need(payload, 4, 0)? else {
            unreachable!("4 are there")
        };
        zero("byte 1 of a record", reserved.into())?;
        let none =
            || zero("the queue of a record without one", u16::from_be_bytes([q0, q1]).into());
        match kind {
            1 => check_queue(need(payload, 28, 4)?).map(|()| 28),
            2 => check_bytes(payload),
            3 => {
                zero("bytes 6 and 7 of EndCommand", half(need(payload, 8, 4)?, 6).into())?;
                Ok(8)
            }
            4 => Ok(4),
            5 => none().and_then(|()| need(payload, 20, 4)).map(|_| 20),
            6 => none().map(|()| 4),
            kind => Err(Malformed::Kind(kind)),
        }
    }

    /// The length in bytes of a checked record.
    fn length_of(record: &[u8]) -> usize {
        match record[0] {
            1 => 28,
            2 => BYTES_HEADER + usize::from(half(record, 6)) * 4,
            3 => 8,
            5 => 20,
            _ => 4,
        }
    }

    /// Decodes the checked bytes of one record.
    fn read(mut record: Bytes) -> Self {
        let queue = half(&record, 2);
        match record[0] {
            1 => Self::Queue(Queue {
                id: queue,
                last: half(&record, 4),
                head: half(&record, 6),
                completion_last: half(&record, 8),
                base: long(&record, 12),
                completion_base: long(&record, 20),
            }),
            2 => {
                let (command, address) = (half(&record, 4), long(&record, 8));
                record.advance(BYTES_HEADER);
                Self::Bytes { queue, command, address, bytes: record }
            }
            3 => Self::EndCommand { queue, command: half(&record, 4) },
            4 => Self::EndQueue(queue),
            5 => Self::EndRange { address: long(&record, 4), length: long(&record, 12) },
            _ => Self::EndAll,
        }
    }
}

/// The checked records of one message or of a run, read one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    bytes: Bytes,
    /// Number of bytes left in this message.
    left: usize,
    run: Option<Run>,
}

impl Records {
    /// Checks the records of a message. Returns the records before the first malformed record, and
    /// the fault of the malformed one. For a run, a malformed record in any message leaves no
    /// records.
    pub(super) fn check(tlp: &Tlp) -> (Self, Result<(), Malformed>) {
        let mut bytes = tlp.data.clone();
        let mut valid = Ok(());
        let (mut at, mut end, mut rest) = (0, tlp.first_payload(), tlp.run);
        loop {
            while at < end && valid.is_ok() {
                valid = Record::check(&bytes[at..end]).map(|length| at += length);
            }
            let Some(run) = rest.filter(|_| valid.is_ok()) else { break };
            at += run.gap();
            rest = run.without_first();
            end = rest.map_or(bytes.len(), |run| at + run.first());
        }
        let run = tlp.run.filter(|_| valid.is_ok());
        if tlp.run.is_none() {
            bytes.truncate(at);
        } else if valid.is_err() {
            bytes.clear();
        }
        let left = run.map_or(bytes.len(), |run| run.first());
        (Self { bytes, left, run }, valid)
    }
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.left == 0 {
            let run = self.run?;
            self.bytes.advance(run.gap());
            self.run = run.without_first();
            self.left = self.run.map_or(self.bytes.len(), |run| run.first());
        }
        let length = Record::length_of(&self.bytes);
        self.left -= length;
        Some(Record::read(self.bytes.split_to(length)))
    }
}

fn check_queue(record: &[u8]) -> Result<(), Malformed> {
    let [last, head, completion_last, rest] = [4, 6, 8, 10].map(|at| half(record, at));
    zero("bytes 10 and 11 of Queue", rest.into())?;
    for (field, last) in [("the last slot", last), ("the last completion slot", completion_last)] {
        if last == 0 {
            return Err(Malformed::Field { field, value: 0, allowed: "1 to 65535" });
        }
    }
    if head > last {
        let (field, allowed) = ("the head", "a slot of the queue");
        return Err(Malformed::Field { field, value: head.into(), allowed });
    }
    for (field, at) in [("the base", 12), ("the completion base", 20)] {
        let base = long(record, at);
        // The longest queue has 65536 entries of 64 bytes.
        if base & 0xfff != 0 || base.checked_add(1 << 22).is_none() {
            let allowed = "a multiple of 4096 more than 4 MiB below 2^64";
            return Err(Malformed::Field { field, value: base, allowed });
        }
    }
    Ok(())
}

fn check_bytes(payload: &[u8]) -> Result<usize, Malformed> {
    let record = need(payload, BYTES_HEADER, 4)?;
    let (length, address) = (usize::from(half(record, 6)) * 4, long(record, 8));
    let wrong = |field, value, allowed| Err(Malformed::Field { field, value, allowed });
    if length == 0 {
        return wrong("the length of Bytes", 0, "1 double word or more");
    }
    if address & 3 != 0 || address.checked_add(length as u64).is_none() {
        return wrong("the address of Bytes", address, "double words below 2^64");
    }
    need(payload, BYTES_HEADER + length, BYTES_HEADER).map(|_| BYTES_HEADER + length)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Appends the first four bytes of a record: its kind and its queue.
fn head(kind: u8, queue: u16, out: &mut impl BufMut) {
    out.put_u16(u16::from(kind) << 8);
    out.put_u16(queue);
}

/// The payload, if it has at least `length` bytes. The error does not count the first `read` bytes,
/// which were checked before.
fn need(payload: &[u8], length: usize, read: usize) -> Result<&[u8], Malformed> {
    match payload.len() {
        have if have < length => Err(Malformed::Short { need: length - read, have: have - read }),
        _ => Ok(payload),
    }
}
