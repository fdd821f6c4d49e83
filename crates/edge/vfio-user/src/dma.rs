//! Pending DMA by message, for ranges that are not mapped (VFIO_USER_DMA_READ and _DMA_WRITE, split
//! to the client's limit), reassembled from its parts.

use super::connection::Outgoing;
use crate::guest::Part;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::vfio_user::{Command, DmaAccess, Header};
use wire::{Duration, Instant};

/// Time limit of a DMA message. SPDK never answers one.
pub const DMA_DEADLINE: Duration = Duration::from_ms(900);

/// The largest DMA access in bytes.
pub const MAX_DMA: usize = 64 << 10;

/// The most parts that may wait for an answer.
const MAX_PARTS: usize = 512;

/// Identifies a pending DMA access.
pub type DmaId = u64;

/// Why a DMA access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// The range is not mapped for the device, or not in this direction.
    #[error("the range is not mapped for the device")]
    Fault,
    /// The client refused the access, or sent an invalid answer.
    #[error("the client refused the access")]
    Refused,
    /// The client did not answer in `DMA_DEADLINE`.
    #[error("the client did not answer")]
    Timeout,
    /// More than `MAX_DMA` bytes.
    #[error("the access is longer than {MAX_DMA} bytes")]
    TooLong,
}

/// The result of an access: no bytes for a write.
pub(super) type Ended = (DmaId, Result<Bytes, DmaError>);

/// The outcome of a DMA access with a result `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<T> {
    /// The whole access is done.
    Done(T),
    /// The access is pending; an `Action::DmaDone` of this ID follows.
    Pending(DmaId),
    /// The access has not begun: try again after the next `Action::DmaDone`.
    Full,
    /// The access failed; no byte of a write was written.
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

/// A pending part of an access.
#[derive(Debug)]
struct PendingPart {
    /// The message ID.
    id: u16,
    operation: DmaId,
    address: u64,
    /// Byte offset in the operation.
    at: usize,
    length: usize,
    /// Number of the write among all writes; `None` for a read.
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
    /// The number of the next write.
    pub(super) next_write: u64,
    waiting: VecDeque<PendingPart>,
    operations: VecDeque<Operation>,
}

impl Dma {
    /// Drops everything in flight. IDs continue, so that nothing of the old client is
    /// attributed to the new one.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.operations.clear();
    }

    /// Whether an access of `parts` fits, with at most `limit` bytes per message.
    pub(super) fn has_room(&self, parts: &[Part], limit: usize) -> bool {
        let needed: usize = parts.iter().map(|part| part.length.div_ceil(limit)).sum();
        self.waiting.len() + needed <= MAX_PARTS
    }

    /// The number below which all writes have been answered.
    pub(super) fn writes_answered(&self) -> u64 {
        self.waiting.iter().filter_map(|waiting| waiting.write).min().unwrap_or(self.next_write)
    }

    /// Whether a write has not been answered.
    pub(super) fn has_writes(&self) -> bool {
        !self.waiting.is_empty() && self.writes_answered() < self.next_write
    }

    /// Starts an access with pending `parts`, each split to the size of one message. For a read,
    /// `data` holds the bytes already copied.
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

    /// An ID that no message in flight has.
    fn message_id(&mut self) -> u16 {
        while self.waiting.iter().any(|waiting| waiting.id == self.next_message) {
            self.next_message = self.next_message.wrapping_add(1);
        }
        let id = self.next_message;
        self.next_message = id.wrapping_add(1);
        id
    }

    /// Handles a reply; returns the access that ends with it, if any. `None` also for an unknown
    /// reply, which may be late.
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
            // The specification echoes address and count; QEMU sends neither.
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

    /// The deadline of the oldest part.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.deadline)
    }

    /// Fails the oldest part if its deadline has passed; returns the access that ends with it.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Option<Ended>> {
        if self.deadline()? > now {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        Some(self.end(&waiting, Some(DmaError::Timeout)))
    }
}

/// A message that reads `length` bytes, or writes `bytes` if there are any.
fn message(id: u16, address: u64, length: usize, bytes: &[u8]) -> Outgoing {
    let command = if bytes.is_empty() { Command::DmaRead } else { Command::DmaWrite };
    let header = Header::command(id, command, DmaAccess::LENGTH + bytes.len());
    let mut out = Vec::with_capacity(Header::SIZE + DmaAccess::LENGTH + bytes.len());
    out.extend_from_slice(&header.encode());
    DmaAccess { address, count: length as u64 }.encode(&mut out);
    out.extend_from_slice(bytes);
    Outgoing::new(out)
}
