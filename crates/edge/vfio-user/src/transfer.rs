//! DMA of the device to guest memory, and interrupts, which follow earlier DMA writes.

use super::connection::{Closed, Incoming};
use super::dma::{Access, Data, DmaError, Ended, MAX_DMA};
use super::irq::Interrupt;
use super::session::{MAX_OUTGOING, Session};
use crate::guest::{Fault, Part};
use bytes::{Bytes, BytesMut};
use wire::Instant;

impl Session {
    /// Handles an MSI-X write of the function. The guest is interrupted after all earlier writes to
    /// guest memory. The interrupt is dropped if MSI-X is not enabled.
    pub fn signal(&mut self, vector: u16) {
        if self.client.msix_enabled {
            self.interrupt(Interrupt::Msix(vector));
        } else {
            self.counters.lost_interrupts += 1;
        }
    }

    /// Handles a change of the INTx level.
    pub fn set_intx(&mut self, level: bool) {
        if level {
            self.interrupt(Interrupt::Intx);
        } else {
            self.client.held_interrupts.retain(|(_, source)| *source != Interrupt::Intx);
            self.interrupts.set_intx(false);
        }
    }

    fn interrupt(&mut self, source: Interrupt) {
        let barrier = self.dma.next_write;
        if !self.dma.has_writes() {
            self.deliver(source);
            return;
        }
        // Two waiting interrupts of the same source are enough: the later one then waits for all
        // earlier writes.
        let mut same = self.client.held_interrupts.iter_mut().filter(|(_, other)| *other == source);
        match (same.next(), same.next()) {
            (Some(_), Some(later)) => later.0 = barrier,
            _ => self.client.held_interrupts.push_back((barrier, source)),
        }
    }

    fn deliver(&mut self, source: Interrupt) {
        match source {
            _ if self.client.must_close.is_some() => self.counters.lost_interrupts += 1,
            Interrupt::Intx => self.interrupts.set_intx(true),
            Interrupt::Msix(vector) => self.interrupts.signal(vector),
        }
    }

    fn release_interrupts(&mut self) {
        let answered = self.dma.writes_answered();
        for _ in 0..self.client.held_interrupts.len() {
            let Some((barrier, source)) = self.client.held_interrupts.pop_front() else { return };
            if barrier <= answered {
                self.deliver(source);
            } else {
                self.client.held_interrupts.push_back((barrier, source));
            }
        }
    }

    /// Splits an access into the parts that need messages and the parts that are copied at once, in
    /// this order.
    fn parts(
        &self,
        address: u64,
        length: usize,
        write: bool,
    ) -> Result<(Vec<Part>, Vec<Part>), Fault> {
        let parts = self.memory.parts(address, length, write)?.into_iter();
        Ok(parts.partition(|part| !part.mapped))
    }

    fn failed<T>(&mut self, error: DmaError) -> Access<T> {
        self.counters.dma_faults += 1;
        if let Some(address) = self.memory.lost() {
            self.client.must_close = Some(Closed::MemoryLost(address));
        }
        Access::Failed(error)
    }

    /// Reads `length` bytes of guest memory for the device, at most [`MAX_DMA`].
    pub fn dma_read(&mut self, now: Instant, address: u64, length: usize) -> Access<Bytes> {
        if let Some(refused) = self.refuse(address, length, false) {
            return refused;
        }
        let mut buffer = self.arena.buffer(length);
        match self.memory.append(address, length, &mut buffer) {
            Ok(()) => Access::Done(buffer.freeze()),
            Err(fault) => self.begin_dma(now, fault, address, Data::Read(vec![0; length])),
        }
    }

    /// Appends `length` bytes of guest memory to `out`, if the bytes are mapped and no write by
    /// message is pending. Returns whether the bytes were appended. Memory that is not readable is
    /// not counted as a fault, because the device did not request the bytes.
    pub fn peek(&self, (address, length): (u64, usize), out: &mut BytesMut) -> bool {
        self.client.must_close.is_none()
            && !self.must_wait(address, length, false)
            && self.memory.append(address, length, out).is_ok()
    }

    /// Writes guest memory for the device, at most [`MAX_DMA`] bytes.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) -> Access<()> {
        if let Some(refused) = self.refuse(address, data.len(), true) {
            return refused;
        }
        match self.memory.write(address, data) {
            Ok(()) => Access::Done(()),
            Err(fault) => self.begin_dma(now, fault, address, Data::Write(data)),
        }
    }

    /// The outcome of an access that cannot begin now; `None` if it can begin.
    fn refuse<T>(&mut self, address: u64, length: usize, write: bool) -> Option<Access<T>> {
        if length > MAX_DMA {
            return Some(self.failed(DmaError::TooLong));
        }
        if self.client.must_close.is_some() {
            return Some(self.failed(DmaError::Fault));
        }
        self.must_wait(address, length, write).then_some(Access::Full)
    }

    /// Begins an access by message if `fault` is [`Fault::ByMessage`]; otherwise the access fails.
    fn begin_dma<T>(
        &mut self,
        now: Instant,
        fault: Fault,
        address: u64,
        mut data: Data<'_>,
    ) -> Access<T> {
        let parts = match fault {
            Fault::ByMessage => self.parts(address, data.len(), data.is_write()),
            fault => Err(fault),
        };
        let Ok((parts, at_once)) = parts else { return self.failed(DmaError::Fault) };
        let limit = self.client_xfer;
        if self.client.outgoing_bytes >= MAX_OUTGOING || !self.dma.has_room(&parts, limit) {
            return Access::Full;
        }
        for Part { at, address, length, .. } in at_once {
            let copied = match &mut data {
                Data::Read(buffer) => self.memory.read_into(address, &mut buffer[at..at + length]),
                Data::Write(bytes) => self.memory.write(address, &bytes[at..at + length]),
            };
            if copied.is_err() {
                return self.failed(DmaError::Fault);
            }
        }
        let mut sent = Vec::new();
        let send = |message| sent.push(message);
        let id = self.dma.begin(now, data, parts, limit, send);
        sent.into_iter().for_each(|message| self.send(message));
        Access::Pending(id)
    }

    /// Whether an access must wait: a part of it would be copied at once and would pass a pending
    /// write by message. A read or write may not pass a posted write (PCI Express Base 4.0, section
    /// 2.4.1).
    fn must_wait(&self, address: u64, length: usize, write: bool) -> bool {
        self.dma.has_writes()
            && self.parts(address, length, write).is_ok_and(|(_, at_once)| !at_once.is_empty())
    }

    pub(super) fn take_reply(&mut self, message: &Incoming) {
        match self.dma.reply(&message.header, &message.payload) {
            None => self.counters.stray_replies += 1,
            Some(ended) => self.dma_ended(ended),
        }
    }

    pub(super) fn dma_ended(&mut self, ended: Option<Ended>) {
        if let Some((id, result)) = ended {
            self.counters.dma_faults += u64::from(result.is_err());
            self.client.ended.push_back((id, result));
        }
        self.release_interrupts();
    }
}
