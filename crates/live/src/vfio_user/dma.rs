//! Pending DMA, reassembled from its parts: by message, for ranges that the client did not
//! share (VFIO_USER_DMA_READ and _DMA_WRITE, split to the client's limit), and by the client's
//! worker, for files that are not mapped.

use super::connection::Outgoing;
use crate::guest::{self, JobId, Method, Part, Worker};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::vfio_user::{Command, DmaAccess, Header};
use wire::{Duration, Instant};

/// The time after which an unanswered DMA message, or access to a file, has failed. SPDK never
/// answers a message.
pub const DMA_DEADLINE: Duration = Duration::from_ms(900);

/// The largest DMA access in bytes.
pub const MAX_DMA: usize = 64 << 10;

/// Parts that may wait for an answer.
const MAX_PARTS: usize = 512;

/// Bytes of writes that may wait for a worker.
const MAX_TO_FILES: usize = 1 << 20;

/// Names a pending DMA access.
pub type DmaId = u64;

/// Why a DMA access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaError {
    /// Not mapped for the device, or not in this direction.
    Fault,
    /// The client refused it, or sent an invalid answer.
    Refused,
    /// The client, or its file, did not answer in [`DMA_DEADLINE`].
    Timeout,
    /// More than [`MAX_DMA`] bytes.
    TooLong,
}

/// The result of an access: no bytes for a write.
pub(super) type Ended = (DmaId, Result<Bytes, DmaError>);

/// The outcome of a DMA access with a result `T`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<T> {
    /// All of it is done.
    Done(T),
    /// It is pending; an `Action::DmaDone` of this ID follows.
    Pending(DmaId),
    /// Not begun: try again after the next `Action::DmaDone`.
    Full,
    /// It failed; no byte of a write was written.
    Failed(DmaError),
}

/// The bytes of an access.
pub(super) enum Data<'a> {
    /// A buffer for the bytes read, as long as the access.
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
    /// The message ID; `None` for a job of the worker.
    id: Option<u16>,
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
    /// Address of a write that a file did not accept. Later writes of the device, such as a
    /// completion entry, would report data that are not there.
    pub(super) lost_write: Option<u64>,
}

impl Dma {
    /// Drops everything in flight. IDs continue, so that nothing of the old client is
    /// attributed to the new one.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.operations.clear();
        self.lost_write = None;
    }

    /// Whether an access of `parts` fits, with at most `limit` bytes per message.
    pub(super) fn has_room(&self, parts: &[Part], limit: usize) -> bool {
        let needed: usize =
            parts.iter().map(|part| part.length.div_ceil(max_bytes(part, limit))).sum();
        let to_files = self.waiting.iter().filter(|w| w.write.is_some() && w.id.is_none());
        self.waiting.len() + needed <= MAX_PARTS
            && (parts.iter().all(by_message)
                || to_files.map(|waiting| waiting.length).sum::<usize>() < MAX_TO_FILES)
    }

    /// Whether an access could overtake a pending write, because it uses another method: a copy
    /// (if not all of it is in `parts`), messages or a worker.
    pub(super) fn could_overtake(&self, parts: &[Part], length: usize) -> bool {
        let at_once = parts.iter().map(|part| part.length).sum::<usize>() < length;
        let mut writes = self.waiting.iter().filter(|waiting| waiting.write.is_some());
        writes.any(|waiting| {
            let message = waiting.id.is_some();
            at_once || parts.iter().any(|part| by_message(part) != message)
        })
    }

    /// Whether a worker has jobs.
    pub(super) fn has_jobs(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.id.is_none())
    }

    /// All writes numbered below this have been answered.
    pub(super) fn writes_answered(&self) -> u64 {
        self.waiting.iter().filter_map(|waiting| waiting.write).min().unwrap_or(self.next_write)
    }

    /// As [`writes_answered`](Self::writes_answered), of writes to files alone.
    pub(super) fn files_written(&self) -> u64 {
        let to_files = self.waiting.iter().filter(|waiting| waiting.id.is_none());
        to_files.filter_map(|waiting| waiting.write).min().unwrap_or(self.next_write)
    }

    /// Starts an access with pending `parts`, each cut to what one message or job carries. For
    /// a read, `data` holds the bytes copied already.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        data: Data<'_>,
        parts: Vec<Part>,
        limit: usize,
        worker: &Worker,
        mut send: impl FnMut(Outgoing),
    ) -> DmaId {
        let operation = self.next_operation;
        self.next_operation += 1;
        let before = self.waiting.len();
        for part in parts {
            let mut done = 0;
            while done < part.length {
                let length = (part.length - done).min(max_bytes(&part, limit));
                let Part { at, address, method, .. } = part.piece(done, length);
                done += length;
                let id = by_message(&part).then(|| self.message_id());
                let (bytes, write) = match &data {
                    Data::Read(_) => (&[][..], None),
                    Data::Write(bytes) => (&bytes[at..at + length], Some(self.next_write)),
                };
                self.next_write += u64::from(write.is_some());
                let deadline = now + DMA_DEADLINE;
                let waiting = PendingPart { id, operation, address, at, length, write, deadline };
                self.waiting.push_back(waiting);
                let job = (operation, at);
                match method {
                    Method::File(position) if write.is_none() => worker.read(job, position, length),
                    Method::File(position) => {
                        worker.write(job, position, Bytes::copy_from_slice(bytes))
                    }
                    _ => send(message(id.unwrap_or_default(), address, length, bytes)),
                }
            }
        }
        let parts = self.waiting.len() - before;
        let buffer = if let Data::Read(buffer) = data { buffer } else { Vec::new() };
        self.operations.push_back(Operation { id: operation, buffer, parts, error: None });
        operation
    }

    /// An ID that no message in flight has.
    fn message_id(&mut self) -> u16 {
        while self.waiting.iter().any(|waiting| waiting.id == Some(self.next_message)) {
            self.next_message = self.next_message.wrapping_add(1);
        }
        let id = self.next_message;
        self.next_message = id.wrapping_add(1);
        id
    }

    /// Handles a reply; returns the operation that ends with it, if any. `None` for a reply
    /// without a request: it may be late.
    pub(super) fn reply(&mut self, header: &Header, payload: &[u8]) -> Option<Option<Ended>> {
        let at = self.waiting.iter().position(|waiting| {
            let command =
                if waiting.write.is_some() { Command::DmaWrite } else { Command::DmaRead };
            waiting.id == Some(header.id) && command.number() == header.command
        })?;
        let waiting = self.waiting.remove(at)?;
        if header.error.is_some() {
            return Some(self.end(&waiting, Some(DmaError::Refused)));
        }
        if waiting.write.is_some() {
            // The specification echoes address and count; QEMU sends nothing.
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

    /// Handles a job's result; returns the operation that ends with it, if any. A result after
    /// the deadline is dropped.
    pub(super) fn job_ended(&mut self, (id, result): guest::Ended) -> Option<Ended> {
        let at = self.waiting.iter().position(|waiting| waiting.job() == Some(id))?;
        let waiting = self.waiting.remove(at)?;
        let Some(data) = result else {
            return self.end(&waiting, Some(DmaError::Fault));
        };
        if waiting.write.is_none() {
            self.fill(&waiting, &data);
        }
        self.end(&waiting, None)
    }

    fn fill(&mut self, waiting: &PendingPart, data: &[u8]) {
        if let Some(operation) = self.operations.iter_mut().find(|o| o.id == waiting.operation) {
            operation.buffer[waiting.at..waiting.at + waiting.length].copy_from_slice(data);
        }
    }

    fn end(&mut self, waiting: &PendingPart, error: Option<DmaError>) -> Option<Ended> {
        if error.is_some() && waiting.write.is_some() && waiting.job().is_some() {
            self.lost_write = Some(waiting.address);
        }
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

    /// Fails the oldest part if its deadline has passed; returns the operation that ends with it.
    pub(super) fn expire(&mut self, now: Instant, worker: &Worker) -> Option<Option<Ended>> {
        if self.deadline()? > now {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        if let Some(job) = waiting.job() {
            // Written later, it could destroy newer data.
            worker.cancel(job);
        }
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

impl PendingPart {
    fn job(&self) -> Option<JobId> {
        self.id.is_none().then_some((self.operation, self.at))
    }
}

/// The most bytes of a part that one message (with `limit` bytes) or job carries.
fn max_bytes(part: &Part, limit: usize) -> usize {
    if by_message(part) { limit } else { MAX_DMA }
}

fn by_message(part: &Part) -> bool {
    matches!(part.method, Method::Message)
}
