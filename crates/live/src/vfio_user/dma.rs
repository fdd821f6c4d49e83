//! DMA by message, for ranges that the client did not share: VFIO_USER_DMA_READ
//! and _DMA_WRITE, split to what the client takes, and the answers put together
//! again.

use super::connection::Outgoing;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::vfio_user::{Command, DmaAccess, Header};
use wire::{Duration, Instant};

/// After this a DMA message that was not answered has failed. SPDK never
/// answers one.
pub const DMA_DEADLINE: Duration = Duration::from_ms(900);

/// Bytes of one DMA access.
pub const MAX_DMA: usize = 64 << 10;

/// Messages that may wait for an answer.
const MAX_MESSAGES: usize = 512;

/// Names a DMA access that goes by message.
pub type DmaId = u64;

/// Why a DMA access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// Not mapped for the device, or not in this direction.
    #[error("address is not mapped for the device")]
    Fault,
    /// The client refused, or its answer makes no sense.
    #[error("the client refused the access")]
    Refused,
    /// The client did not answer in [`DMA_DEADLINE`].
    #[error("the client did not answer")]
    Timeout,
    /// More than [`MAX_DMA`] bytes.
    #[error("too many bytes in one access")]
    TooLong,
}

/// How an access ended: no bytes for a write.
pub(super) type Ended = (DmaId, Result<Bytes, DmaError>);

/// What becomes of a DMA read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DmaRead {
    /// The bytes.
    Done(Bytes),
    /// They come with an `Action::DmaDone` of this ID.
    Pending(DmaId),
    /// Nothing was asked: try again after the next `Action::DmaDone`.
    Full,
    /// It failed.
    Failed(DmaError),
}

/// What becomes of a DMA write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaWrite {
    /// The bytes are in guest memory.
    Done,
    /// They are on their way; an `Action::DmaDone` of this ID follows.
    Pending(DmaId),
    /// Nothing was sent: try again after the next `Action::DmaDone`.
    Full,
    /// It failed, nothing was written.
    Failed(DmaError),
}

#[derive(Debug)]
struct Message {
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
    /// A read's bytes, as far as they are there.
    buffer: Vec<u8>,
    messages: usize,
    error: Option<DmaError>,
}

/// The DMA messages of one client.
#[derive(Debug, Default)]
pub(super) struct Dma {
    next_message: u16,
    next_operation: DmaId,
    next_write: u64,
    messages: VecDeque<Message>,
    operations: VecDeque<Operation>,
}

/// A part of an access that goes by message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) at: usize,
    pub(super) address: u64,
    pub(super) length: usize,
}

impl Dma {
    /// Forgets everything in flight; IDs go on, so that nothing of the old
    /// client is taken for the new one's.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.operations.clear();
    }

    /// Whether an access of `parts` of at most `limit` bytes a message fits.
    pub(super) fn has_room(&self, parts: &[Part], limit: usize) -> bool {
        let wanted: usize = parts.iter().map(|part| part.length.div_ceil(limit)).sum();
        self.messages.len() + wanted <= MAX_MESSAGES
    }

    /// The writes numbered below this have all been answered.
    pub(super) fn writes_answered(&self) -> u64 {
        self.messages.iter().filter_map(|message| message.write).min().unwrap_or(self.next_write)
    }

    /// The number the next write gets.
    pub(super) fn next_write(&self) -> u64 {
        self.next_write
    }

    /// Starts a read of `parts`; `buffer` has the length of the whole access
    /// and holds what was read without messages.
    pub(super) fn read(
        &mut self,
        now: Instant,
        buffer: Vec<u8>,
        parts: &[Part],
        limit: usize,
        mut send: impl FnMut(Outgoing),
    ) -> DmaId {
        let messages = self.start(now, buffer, parts, limit, false);
        for (id, address, _, length) in messages {
            let header = Header::command(id, Command::DmaRead, DmaAccess::LENGTH);
            let mut bytes = header.encode().to_vec();
            DmaAccess { address, count: length as u64 }.encode(&mut bytes);
            send(Outgoing::new(bytes));
        }
        self.next_operation - 1
    }

    /// Starts a write of `parts` of `data`.
    pub(super) fn write(
        &mut self,
        now: Instant,
        data: &[u8],
        parts: &[Part],
        limit: usize,
        mut send: impl FnMut(Outgoing),
    ) -> DmaId {
        let messages = self.start(now, Vec::new(), parts, limit, true);
        for (id, address, at, length) in messages {
            let header = Header::command(id, Command::DmaWrite, DmaAccess::LENGTH + length);
            let mut bytes = Vec::with_capacity(Header::SIZE + DmaAccess::LENGTH + length);
            bytes.extend_from_slice(&header.encode());
            DmaAccess { address, count: length as u64 }.encode(&mut bytes);
            bytes.extend_from_slice(&data[at..at + length]);
            send(Outgoing::new(bytes));
        }
        self.next_operation - 1
    }

    /// Records the messages of an operation: ID, address, offset, length.
    fn start(
        &mut self,
        now: Instant,
        buffer: Vec<u8>,
        parts: &[Part],
        limit: usize,
        write: bool,
    ) -> Vec<(u16, u64, usize, usize)> {
        let operation = self.next_operation;
        self.next_operation += 1;
        let mut out = Vec::new();
        for part in parts {
            let mut done = 0;
            while done < part.length {
                let length = (part.length - done).min(limit);
                while self.messages.iter().any(|message| message.id == self.next_message) {
                    self.next_message = self.next_message.wrapping_add(1);
                }
                let (at, address) = (part.at + done, part.address + done as u64);
                let number = self.next_write;
                self.next_write += u64::from(write);
                self.messages.push_back(Message {
                    id: self.next_message,
                    operation,
                    address,
                    at,
                    length,
                    write: write.then_some(number),
                    deadline: now + DMA_DEADLINE,
                });
                out.push((self.next_message, address, at, length));
                self.next_message = self.next_message.wrapping_add(1);
                done += length;
            }
        }
        self.operations.push_back(Operation {
            id: operation,
            buffer,
            messages: out.len(),
            error: None,
        });
        out
    }

    /// Takes a reply; returns the operation it ends, if it does. `None` for a
    /// reply to nothing: it may come after its deadline.
    pub(super) fn reply(&mut self, header: &Header, payload: &[u8]) -> Option<Option<Ended>> {
        let at = self.messages.iter().position(|message| {
            let command =
                if message.write.is_some() { Command::DmaWrite } else { Command::DmaRead };
            message.id == header.id && command.number() == header.command
        })?;
        let message = self.messages.remove(at)?;
        if header.error.is_some() {
            return Some(self.end(&message, Some(DmaError::Refused)));
        }
        if message.write.is_some() {
            // The specification echoes address and count; QEMU sends nothing.
            return Some(self.end(&message, None));
        }
        let data = payload.get(DmaAccess::LENGTH..DmaAccess::LENGTH + message.length);
        let address = DmaAccess::decode(payload).map(|access| access.address);
        let Some(data) = data.filter(|_| address == Ok(message.address)) else {
            return Some(self.end(&message, Some(DmaError::Refused)));
        };
        if let Some(operation) = self.operations.iter_mut().find(|o| o.id == message.operation) {
            operation.buffer[message.at..message.at + message.length].copy_from_slice(data);
        }
        Some(self.end(&message, None))
    }

    fn end(&mut self, message: &Message, error: Option<DmaError>) -> Option<Ended> {
        let at = self.operations.iter().position(|o| o.id == message.operation)?;
        let operation = &mut self.operations[at];
        operation.messages -= 1;
        operation.error = operation.error.or(error);
        if operation.messages > 0 {
            return None;
        }
        let operation = self.operations.remove(at)?;
        let result = match operation.error {
            Some(error) => Err(error),
            None => Ok(Bytes::from(operation.buffer)),
        };
        Some((operation.id, result))
    }

    /// When the oldest message has waited long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.messages.front().map(|message| message.deadline)
    }

    /// Gives up on the oldest message if it has waited long enough; returns
    /// the operation that ends with it.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Option<Ended>> {
        if self.deadline()? > now {
            return None;
        }
        let message = self.messages.pop_front()?;
        Some(self.end(&message, Some(DmaError::Timeout)))
    }
}
