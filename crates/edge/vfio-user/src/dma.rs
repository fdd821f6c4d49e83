//! Pending DMA by message (VFIO_USER_DMA_READ and VFIO_USER_DMA_WRITE), for ranges that are not
//! mapped. An access is split into messages of at most the size that the client accepts; the
//! replies are put together.

use super::connection::Outgoing;
use crate::guest::Part;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::vfio_user::{Command, DmaAccess, Header};
use wire::{Duration, Instant};

/// Time limit for the reply to a DMA message. SPDK never answers DMA messages.
pub const DMA_DEADLINE: Duration = Duration::from_ms(900);

/// The largest DMA access in bytes.
pub const MAX_DMA: usize = 64 << 10;

/// The maximum number of messages that can wait for a reply.
const MAX_PARTS: usize = 512;

/// Identifies a pending DMA access.
pub type DmaId = u64;

/// Why a DMA access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// The range is not mapped for the device, or not for this direction (read or write).
    #[error("the range is not mapped for the device")]
    Fault,
    /// The client refused the access, or sent an invalid answer.
    #[error("the client refused the access")]
    Refused,
    /// The client did not answer within [`DMA_DEADLINE`].
    #[error("the client did not answer")]
    Timeout,
    /// The access has more than [`MAX_DMA`] bytes.
    #[error("the access is longer than {MAX_DMA} bytes")]
    TooLong,
}

/// The ID and the result of an access that has ended. The result of a write has no bytes.
pub(super) type Ended = (DmaId, Result<Bytes, DmaError>);

/// The outcome of a DMA access with a result `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<T> {
    /// The whole access is done.
    Done(T),
    /// The access is pending. An [`Action::DmaDone`](crate::Action::DmaDone) with this ID follows.
    Pending(DmaId),
    /// The access has not begun, because earlier accesses are pending. Try again after the next
    /// [`Action::DmaDone`](crate::Action::DmaDone).
    Full,
    /// The access failed. If it was a write, no byte was written, unless the client removed memory
    /// during the access.
    Failed(DmaError),
}

/// The bytes of an access.
pub(super) enum Data<'a> {
    /// The buffer of a read, as long as the access.
    Read(Vec<u8>),
    /// The bytes to write.
    Write(&'a [u8]),
}

impl Data<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(buffer) => buffer.len(),
            Self::Write(bytes) => bytes.len(),
        }
    }

    pub(super) fn is_write(&self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// A part of an access: one message that waits for a reply.
#[derive(Debug)]
struct PendingPart {
    /// The message ID.
    id: u16,
    operation: DmaId,
    address: u64,
    /// Byte offset in the whole access.
    at: usize,
    length: usize,
    /// Sequence number among all write messages; `None` for a read.
    write: Option<u64>,
    deadline: Instant,
}

#[derive(Debug)]
struct Operation {
    id: DmaId,
    /// The bytes read so far.
    buffer: Vec<u8>,
    parts: usize,
    error: Option<DmaError>,
}

/// The pending DMA of one client.
#[derive(Debug, Default)]
pub(super) struct Dma {
    next_message: u16,
    next_operation: DmaId,
    /// The sequence number of the next write message.
    pub(super) next_write: u64,
    waiting: VecDeque<PendingPart>,
    operations: VecDeque<Operation>,
}

impl Dma {
    /// Drops all pending accesses. The IDs continue, so that a late reply or result for the old
    /// client is not assigned to the new client.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.operations.clear();
    }

    /// Whether an access with these parts can begin without exceeding [`MAX_PARTS`] messages of at
    /// most `limit` bytes.
    pub(super) fn has_room(&self, parts: &[Part], limit: usize) -> bool {
        let needed: usize = parts.iter().map(|part| part.length.div_ceil(limit)).sum();
        self.waiting.len() + needed <= MAX_PARTS
    }

    /// A sequence number: all write messages with lower numbers have been answered or have timed
    /// out.
    pub(super) fn writes_answered(&self) -> u64 {
        self.waiting.iter().filter_map(|waiting| waiting.write).min().unwrap_or(self.next_write)
    }

    /// Whether a write message waits for its reply.
    pub(super) fn has_writes(&self) -> bool {
        !self.waiting.is_empty() && self.writes_answered() < self.next_write
    }

    /// Starts an access. `parts` are the parts that need messages; each part is split into messages
    /// of at most `limit` bytes. For a read, `data` already contains the bytes of the other parts.
    /// Returns the ID of the access.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        data: Data<'_>,
        parts: Vec<Part>,
        limit: usize,
        mut send: impl FnMut(Outgoing),
    ) -> DmaId {
        let operation = self.next_operation;
        self.next_operation += 1;
        let before = self.waiting.len();
        for part in parts {
            let mut done = 0;
            while done < part.length {
                let length = (part.length - done).min(limit);
                let (at, address) = (part.at + done, part.address + done as u64);
                done += length;
                let id = self.message_id();
                let (bytes, write) = match &data {
                    Data::Read(_) => (&[][..], None),
                    Data::Write(bytes) => (&bytes[at..at + length], Some(self.next_write)),
                };
                self.next_write += u64::from(write.is_some());
                let deadline = now + DMA_DEADLINE;
                let waiting = PendingPart { id, operation, address, at, length, write, deadline };
                self.waiting.push_back(waiting);
                send(message(id, address, length, bytes));
            }
        }
        let parts = self.waiting.len() - before;
        let buffer = if let Data::Read(buffer) = data { buffer } else { Vec::new() };
        self.operations.push_back(Operation { id: operation, buffer, parts, error: None });
        operation
    }

    /// A message ID that no waiting message has.
    fn message_id(&mut self) -> u16 {
        while self.waiting.iter().any(|waiting| waiting.id == self.next_message) {
            self.next_message = self.next_message.wrapping_add(1);
        }
        let id = self.next_message;
        self.next_message = id.wrapping_add(1);
        id
    }

    /// Handles a reply. Returns `None` if no message waits for this reply, for example because the
    /// reply is late. `Some` contains the access that ended with this reply, if all parts have
    /// ended.
    pub(super) fn reply(&mut self, header: &Header, payload: &[u8]) -> Option<Option<Ended>> {
        let at = self.waiting.iter().position(|waiting| {
            let command =
                if waiting.write.is_some() { Command::DmaWrite } else { Command::DmaRead };
            waiting.id == header.id && command.number() == header.command
        })?;
        let waiting = self.waiting.remove(at)?;
        if header.error.is_some() {
            return Some(self.end(&waiting, Some(DmaError::Refused)));
        }
        if waiting.write.is_some() {
            // In the specification the reply repeats address and count; QEMU sends neither.
            return Some(self.end(&waiting, None));
        }
        let data = payload.get(DmaAccess::LENGTH..DmaAccess::LENGTH + waiting.length);
        let address = DmaAccess::decode(payload).map(|access| access.address);
        let Some(data) = data.filter(|_| address == Ok(waiting.address)) else {
            return Some(self.end(&waiting, Some(DmaError::Refused)));
        };
        self.fill(&waiting, data);
        Some(self.end(&waiting, None))
    }

    fn fill(&mut self, waiting: &PendingPart, data: &[u8]) {
        if let Some(operation) = self.operations.iter_mut().find(|o| o.id == waiting.operation) {
            operation.buffer[waiting.at..waiting.at + waiting.length].copy_from_slice(data);
        }
    }

    fn end(&mut self, waiting: &PendingPart, error: Option<DmaError>) -> Option<Ended> {
        let at = self.operations.iter().position(|o| o.id == waiting.operation)?;
        let operation = &mut self.operations[at];
        operation.parts -= 1;
        operation.error = operation.error.or(error);
        if operation.parts > 0 {
            return None;
        }
        let operation = self.operations.remove(at)?;
        let result = match operation.error {
            Some(error) => Err(error),
            None => Ok(Bytes::from(operation.buffer)),
        };
        Some((operation.id, result))
    }

    /// The deadline of the oldest waiting message; `None` if no message waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.deadline)
    }

    /// Ends the oldest waiting message if the deadline has passed. Returns `None` if no deadline
    /// has passed. `Some` contains the access that ended with this message, if all parts have
    /// ended.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Option<Ended>> {
        if self.deadline()? > now {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        Some(self.end(&waiting, Some(DmaError::Timeout)))
    }
}

/// A message that writes `bytes`, or reads `length` bytes if `bytes` is empty.
fn message(id: u16, address: u64, length: usize, bytes: &[u8]) -> Outgoing {
    let command = if bytes.is_empty() { Command::DmaRead } else { Command::DmaWrite };
    let header = Header::command(id, command, DmaAccess::LENGTH + bytes.len());
    let mut out = Vec::with_capacity(Header::SIZE + DmaAccess::LENGTH + bytes.len());
    out.extend_from_slice(&header.encode());
    DmaAccess { address, count: length as u64 }.encode(&mut out);
    out.extend_from_slice(bytes);
    Outgoing::new(out)
}
