//! Region accesses and resets: the commands that are executed across the network.
//!
//! An access is split into pieces. A piece is one configuration request, or bytes of a BAR that do
//! not cross a 4 KiB boundary. Several pieces of a read are in flight at the same time, up to a
//! limit. Configuration writes are executed one after the other. Posted writes to BARs need no
//! reply, so they are also executed while a read is in flight.

use super::Session;
use crate::config::RemoteWrite;
use crate::connection::{Incoming, Outgoing};
use crate::msix::MsixPart;
use crate::{Action, MAX_DATA_XFER, Token, doorbell};
use bytes::{Buf, Bytes};
use rustix::io::Errno;
use std::collections::VecDeque;
use wire::vfio_user::{Command, Header, RegionAccess, WriteMulti, region_index};
use wire::{Duration, Instant};

/// Time limit of a command, from its arrival. At the limit a read returns all ones. QEMU waits 5 s
/// for a reply.
pub(crate) const ACCESS_DEADLINE: Duration = Duration::from_ms(3_000);

/// The maximum number of pieces of one read in flight. QEMU reads the whole configuration space
/// with one message.
const MAX_IN_FLIGHT: usize = 32;

/// Pieces of a BAR access do not cross a multiple of this number of bytes (PCI Express Base 4.0,
/// section 2.2.7: requests do not cross a 4 KiB boundary).
const BOUNDARY: u64 = 4096;

/// Length in bytes of the headers before the data of a reply.
const REPLY_HEADERS: usize = Header::SIZE + RegionAccess::LENGTH;

/// The command that is being executed.
#[derive(Debug)]
pub(super) struct Current {
    header: Header,
    deadline: Instant,
    job: Job,
    error: Option<Errno>,
}

#[derive(Debug)]
enum Job {
    Read(Read),
    /// A write to a region, or a VFIO_USER_DEVICE_RESET.
    Write(Write),
}

#[derive(Debug)]
struct Read {
    request: RegionAccess,
    /// Room for the headers, followed by the data.
    reply: Vec<u8>,
    /// Number of bytes requested so far.
    next: usize,
    in_flight: Vec<(Token, usize, usize)>,
}

#[derive(Debug)]
struct Write {
    /// Region, offset and data of the remaining writes.
    rest: VecDeque<(u32, u64, Bytes)>,
    /// Configuration writes that the far function has not yet received.
    far: VecDeque<RemoteWrite>,
    /// Whether a reset follows the writes in `far`.
    reset: bool,
    /// The action that the owner of the session has to answer, and whether the action is a reset.
    pending: Option<(Token, bool)>,
    reply: Vec<u8>,
}

impl Current {
    /// Whether the command reads a region.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.job, Job::Read(_))
    }

    /// The time at which the command times out.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Session {
    /// Checks a region access or a reset and creates the state of its execution. Error: `EINVAL`
    /// for an invalid payload or bytes outside the region.
    pub(super) fn begin(
        &self,
        command: Command,
        message: &mut Incoming,
        deadline: Instant,
    ) -> Result<Current, Errno> {
        let header = message.header;
        let access = |payload: &Bytes| {
            let request = RegionAccess::decode(payload).map_err(|_| Errno::INVAL)?;
            self.check(request.region, request.offset, request.count).map(|()| request)
        };
        let job = match command {
            Command::RegionRead => {
                let request = access(&message.payload)?;
                let reply = vec![0; REPLY_HEADERS + request.count as usize];
                Job::Read(Read { request, reply, next: 0, in_flight: Vec::new() })
            }
            Command::RegionWrite => {
                let request = access(&message.payload)?;
                let mut data = std::mem::take(&mut message.payload);
                data.advance(RegionAccess::LENGTH);
                if data.len() < request.count as usize {
                    return Err(Errno::INVAL);
                }
                data.truncate(request.count as usize);
                let mut reply = Vec::with_capacity(RegionAccess::LENGTH);
                request.encode(&mut reply);
                Job::write([(request.region, request.offset, data)], false, reply)
            }
            Command::RegionWriteMulti => {
                let multi = WriteMulti::decode(&message.payload).map_err(|_| Errno::INVAL)?;
                for write in &multi.writes {
                    self.check(write.region, write.offset, write.count)?;
                }
                let count = (multi.writes.len() as u64).to_le_bytes().to_vec();
                let writes = multi.writes.iter().map(|write| {
                    let data = Bytes::copy_from_slice(&write.data[..write.count as usize]);
                    (write.region, write.offset, data)
                });
                Job::write(writes, false, count)
            }
            _ => Job::write([], true, Vec::new()),
        };
        Ok(Current { header, deadline, job, error: None })
    }

    fn check(&self, region: u32, offset: u64, count: u32) -> Result<(), Errno> {
        let count = u64::from(count);
        let end = offset.checked_add(count).ok_or(Errno::INVAL)?;
        if count > MAX_DATA_XFER as u64 || end > self.region_size(region) {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    /// Continues the access. Returns true if the access is done, false if it waits for an answer of
    /// the owner of the session.
    pub(super) fn step(&mut self, now: Instant, mut current: Current) -> bool {
        let done = match &mut current.job {
            // If the deadline passed before the start, nothing is requested.
            Job::Read(read) if !self.answers(read.request.region) || current.deadline <= now => {
                self.fill_absent(read, read.next, read.reply.len() - REPLY_HEADERS);
                read.next = read.reply.len() - REPLY_HEADERS;
                read.in_flight.is_empty()
            }
            Job::Read(read) => self.step_read(read),
            Job::Write(write) => self.step_write(write),
        };
        if done {
            self.finish(current);
            return true;
        }
        self.client.current = Some(current);
        false
    }

    fn step_read(&mut self, read: &mut Read) -> bool {
        let length = read.reply.len() - REPLY_HEADERS;
        while read.next < length && read.in_flight.len() < MAX_IN_FLIGHT {
            let (region, offset) = (read.request.region, read.request.offset + read.next as u64);
            let (at, rest) = (REPLY_HEADERS + read.next, length - read.next);
            let (size, known) = if region == region_index::CONFIG {
                let size = rest.min(4 - offset as usize % 4);
                let bytes = self.config.read(offset as u16, size as u8);
                if let Some(bytes) = bytes {
                    read.reply[at..at + size].copy_from_slice(&bytes[..size]);
                }
                (size, bytes.is_some())
            } else {
                let (msix_part, size) = self.bar_piece(region as u8, offset, rest);
                let part = &mut read.reply[at..at + size];
                match msix_part {
                    Some((MsixPart::Table, at)) => self.table.read(at, part),
                    Some((MsixPart::Pending, at)) => {
                        for (i, byte) in part.iter_mut().enumerate() {
                            *byte = self.interrupts.pending_byte(at + i);
                        }
                    }
                    None => {}
                }
                (size, msix_part.is_some())
            };
            if !known {
                let token = self.token();
                self.act(if region == region_index::CONFIG {
                    Action::ConfigRead { token, offset: offset as u16, size: size as u8 }
                } else {
                    Action::BarRead { token, bar: region as u8, offset, length: size }
                });
                read.in_flight.push((token, read.next, size));
            }
            read.next += size;
        }
        read.next == length && read.in_flight.is_empty()
    }

    /// Fills bytes `from..to` of a read with the values that an absent function returns.
    fn fill_absent(&self, read: &mut Read, from: usize, to: usize) {
        let offset = read.request.offset + from as u64;
        let part = &mut read.reply[REPLY_HEADERS + from..REPLY_HEADERS + to];
        if read.request.region == region_index::CONFIG {
            self.config.absent(offset, part);
        } else {
            part.fill(0xff);
        }
    }

    /// The MSI-X structure that contains the first byte of a BAR access (`None` if the far function
    /// does), and the number of bytes of the access in the same piece, at most `rest`.
    fn bar_piece(&self, bar: u8, offset: u64, rest: usize) -> (Option<(MsixPart, usize)>, usize) {
        let (msix_part, alike) = self.table.msix_part(bar, offset);
        let alike = alike.min(BOUNDARY - offset % BOUNDARY);
        (msix_part, rest.min(usize::try_from(alike).unwrap_or(usize::MAX)))
    }

    fn step_write(&mut self, write: &mut Write) -> bool {
        if write.pending.is_some() {
            return false;
        }
        loop {
            if let Some(RemoteWrite { offset, size, value }) = write.far.pop_front() {
                let token = self.token();
                self.act(Action::ConfigWrite { token, offset, size, value });
                write.pending = Some((token, false));
                return false;
            }
            if std::mem::take(&mut write.reset) {
                let token = self.token();
                self.act(Action::Reset { token });
                write.pending = Some((token, true));
                return false;
            }
            let Some((region, offset, data)) = write.rest.front_mut() else { return true };
            if data.is_empty() {
                write.rest.pop_front();
                continue;
            }
            self.registers_written |= is_register(*region, *offset);
            if !self.answers(*region) {
                if *region == region_index::CONFIG {
                    self.config.clear_command(*offset, data);
                }
                self.counters.dropped_writes += 1;
                write.rest.pop_front();
                continue;
            }
            if *region == region_index::CONFIG {
                let piece = data.split_to(data.len().min(4 - *offset as usize % 4));
                let written = self.config.write(*offset as u16, &piece);
                *offset += piece.len() as u64;
                write.far.extend(written.far);
                write.reset = written.reset;
                self.update_msix();
                continue;
            }
            let (bar, at) = (*region as u8, *offset);
            let (msix_part, size) = self.bar_piece(bar, at, data.len());
            let piece = data.split_to(size);
            *offset += size as u64;
            match msix_part {
                Some((MsixPart::Table, at)) => {
                    for (vector, masked) in self.table.write(at, &piece) {
                        self.interrupts.mask_by_table(vector, masked);
                    }
                }
                Some((MsixPart::Pending, _)) => {}
                None => self.act(Action::BarWrite { bar, offset: at, data: piece }),
            }
        }
    }

    /// Handles the answer of the owner of the session to a piece.
    pub(super) fn answer_access(&mut self, token: Token, result: Result<&[u8], Errno>) {
        let Some(mut current) = self.client.current.take() else { return };
        match &mut current.job {
            Job::Read(read) => {
                if let Some(at) = read.in_flight.iter().position(|in_flight| in_flight.0 == token) {
                    let (_, at, size) = read.in_flight.swap_remove(at);
                    let part = &mut read.reply[REPLY_HEADERS + at..REPLY_HEADERS + at + size];
                    match result {
                        Ok(data) if data.len() == size => part.copy_from_slice(data),
                        Ok(_) => part.fill(0xff),
                        Err(errno) => current.error = Some(errno),
                    }
                    if read.request.region == region_index::CONFIG && !reads_absent(part) {
                        self.config.overlay((read.request.offset + at as u64) as u16, part);
                    }
                }
            }
            Job::Write(write) if write.pending.is_some_and(|pending| pending.0 == token) => {
                let reset = write.pending.take().is_some_and(|pending| pending.1);
                current.error = current.error.or(result.err());
                if reset {
                    self.function_was_reset();
                }
            }
            _ => {}
        }
        self.client.current = Some(current);
    }

    /// Ends the current command without an answer of the owner of the session. Missing bytes of a
    /// read are filled as for an absent function; writes that were not executed are dropped.
    pub(super) fn abandon(&mut self) {
        let Some(mut current) = self.client.current.take() else { return };
        match &mut current.job {
            Job::Read(read) => {
                for (_, at, size) in std::mem::take(&mut read.in_flight) {
                    self.fill_absent(read, at, at + size);
                }
                self.fill_absent(read, read.next, read.reply.len() - REPLY_HEADERS);
            }
            Job::Write(write) => {
                self.counters.dropped_writes += write.rest.len() as u64;
                self.registers_written |= write.rest.iter().any(|w| is_register(w.0, w.1));
                if write.pending.is_some_and(|pending| pending.1) {
                    self.function_was_reset();
                }
            }
        }
        self.finish(current);
    }

    /// Replies to a command that is done. The reply does not wait for DMA_WRITE messages of the
    /// device, because QEMU needs a lock to answer them and holds the same lock during a region
    /// access.
    fn finish(&mut self, current: Current) {
        let Current { header, job, error, .. } = current;
        match (job, error) {
            (_, Some(errno)) => self.answer(&header, Err(errno)),
            (Job::Read(mut read), None) => {
                let length = read.reply.len() - Header::SIZE;
                let mut front = header.reply(length).encode().to_vec();
                read.request.encode(&mut front);
                read.reply[..REPLY_HEADERS].copy_from_slice(&front);
                if !header.no_reply {
                    self.send(Outgoing::new(read.reply));
                }
            }
            (Job::Write(write), None) => self.answer(&header, Ok((write.reply, Vec::new()))),
        }
    }
}

/// Whether a write from byte `offset` of a region on is not a doorbell write: the region is not the
/// BAR with doorbells, or `offset` is before the doorbells.
fn is_register(region: u32, offset: u64) -> bool {
    region != u32::from(doorbell::BAR) || offset < doorbell::OFFSET
}

/// Whether a command writes only to BARs and requests no reply.
pub(super) fn is_posted(message: &Incoming) -> bool {
    let bar = |region| region != region_index::CONFIG;
    let Incoming { header, payload, refusal: None, .. } = message else { return false };
    header.no_reply
        && match Command::from_number(header.command) {
            Some(Command::RegionWrite) => {
                RegionAccess::decode(payload).is_ok_and(|write| bar(write.region))
            }
            Some(Command::RegionWriteMulti) => WriteMulti::decode(payload)
                .is_ok_and(|multi| multi.writes.iter().all(|write| bar(write.region))),
            _ => false,
        }
}

/// Whether bytes read from configuration space are all ones, as of an absent function. At least 2
/// bytes are needed. The check is made before shadowed bits replace bits.
fn reads_absent(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && bytes.iter().all(|byte| *byte == 0xff)
}

impl Job {
    fn write(
        writes: impl IntoIterator<Item = (u32, u64, Bytes)>,
        reset: bool,
        reply: Vec<u8>,
    ) -> Self {
        let rest = writes.into_iter().collect();
        Self::Write(Write { rest, far: VecDeque::new(), reset, pending: None, reply })
    }
}
