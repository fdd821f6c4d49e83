//! What the device does to the guest: DMA, and interrupts behind it.

use super::connection::{Closed, Incoming};
use super::dma::{DmaError, DmaRead, DmaWrite, Ended, MAX_DMA, Part};
use super::irq::Source;
use super::session::{MAX_OUTGOING, Session};
use crate::guest::{Fault, Segment, Way};
use wire::Instant;

impl Session {
    /// The function has written MSI-X vector `vector`. It reaches the guest
    /// after everything written to guest memory before.
    pub fn signal(&mut self, vector: u16) {
        if self.msix_enabled {
            self.interrupt(Source::Msix(vector));
        } else {
            self.counters.lost_interrupts += 1;
        }
    }

    /// The level of INTx has changed.
    pub fn set_intx(&mut self, level: bool) {
        if level {
            self.interrupt(Source::Intx);
        } else {
            self.held.retain(|(_, source)| *source != Source::Intx);
            self.interrupts.set_intx(false);
        }
    }

    fn interrupt(&mut self, source: Source) {
        let barrier = self.dma.next_write();
        if self.dma.writes_answered() >= barrier {
            self.deliver(source);
            return;
        }
        // Two of a kind are enough: the later one waits a little longer.
        let mut same = self.held.iter_mut().filter(|(_, other)| *other == source);
        match (same.next(), same.next()) {
            (Some(_), Some(later)) => later.0 = barrier,
            _ => self.held.push_back((barrier, source)),
        }
    }

    fn deliver(&mut self, source: Source) {
        match source {
            _ if self.doomed.is_some() => self.counters.lost_interrupts += 1,
            Source::Intx => self.interrupts.set_intx(true),
            Source::Msix(vector) => self.interrupts.signal(vector),
        }
    }

    fn release_interrupts(&mut self) {
        let answered = self.dma.writes_answered();
        for _ in 0..self.held.len() {
            let Some((barrier, source)) = self.held.pop_front() else { return };
            if barrier <= answered {
                self.deliver(source);
            } else {
                self.held.push_back((barrier, source));
            }
        }
    }

    /// The parts of an access that are not done at once, and the others.
    fn parts(
        &self,
        address: u64,
        length: usize,
        write: bool,
    ) -> Result<(Vec<Part>, Vec<Segment>), Fault> {
        let (mut later, mut at_once) = (Vec::new(), Vec::new());
        for segment in self.memory.segments(address, length, write)? {
            let place = match segment.way {
                Way::Mapped => {
                    at_once.push(segment);
                    continue;
                }
                Way::File(place) => Some(place),
                Way::Message => None,
            };
            let Segment { at, address, length, .. } = segment;
            later.push(Part { at, address, length, place });
        }
        Ok((later, at_once))
    }

    fn fault(&mut self, error: DmaError) -> DmaError {
        self.counters.dma_faults += 1;
        if let Some(address) = self.memory.lost() {
            self.doomed = Some(Closed::MemoryLost(address));
        }
        error
    }

    /// Whether another part may be sent at all now.
    fn dma_room(&self, parts: &[Part], limit: usize) -> bool {
        self.outgoing_bytes < MAX_OUTGOING && self.dma.has_room(parts, limit)
    }

    /// Reads guest memory for the device.
    pub fn dma_read(&mut self, now: Instant, address: u64, length: usize) -> DmaRead {
        if length > MAX_DMA {
            return DmaRead::Failed(self.fault(DmaError::TooLong));
        }
        if self.doomed.is_some() {
            return DmaRead::Failed(self.fault(DmaError::Fault));
        }
        if self.must_wait(address, length, false) {
            return DmaRead::Full;
        }
        let mut buffer = vec![0; length];
        match self.memory.read_into(address, &mut buffer) {
            Ok(()) => return DmaRead::Done(buffer.into()),
            Err(Fault::Later) => {}
            Err(_) => return DmaRead::Failed(self.fault(DmaError::Fault)),
        }
        let Ok((parts, at_once)) = self.parts(address, length, false) else {
            return DmaRead::Failed(self.fault(DmaError::Fault));
        };
        let limit = self.client_xfer;
        if !self.dma_room(&parts, limit) {
            return DmaRead::Full;
        }
        for segment in at_once {
            let part = &mut buffer[segment.at..segment.at + segment.length];
            if self.memory.read_into(segment.address, part).is_err() {
                return DmaRead::Failed(self.fault(DmaError::Fault));
            }
        }
        let mut sent = Vec::new();
        let send = |message| sent.push(message);
        let id = self.dma.read(now, buffer, parts, limit, &self.worker, send);
        sent.into_iter().for_each(|message| self.send(message));
        DmaRead::Pending(id)
    }

    /// Writes guest memory for the device.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) -> DmaWrite {
        if data.len() > MAX_DMA {
            return DmaWrite::Failed(self.fault(DmaError::TooLong));
        }
        if self.doomed.is_some() {
            return DmaWrite::Failed(self.fault(DmaError::Fault));
        }
        if self.must_wait(address, data.len(), true) {
            return DmaWrite::Full;
        }
        match self.memory.write(address, data) {
            Ok(()) => return DmaWrite::Done,
            Err(Fault::Later) => {}
            Err(_) => return DmaWrite::Failed(self.fault(DmaError::Fault)),
        }
        let Ok((parts, at_once)) = self.parts(address, data.len(), true) else {
            return DmaWrite::Failed(self.fault(DmaError::Fault));
        };
        let limit = self.client_xfer;
        if !self.dma_room(&parts, limit) {
            return DmaWrite::Full;
        }
        for segment in at_once {
            let part = &data[segment.at..segment.at + segment.length];
            if self.memory.write(segment.address, part).is_err() {
                return DmaWrite::Failed(self.fault(DmaError::Fault));
            }
        }
        let mut sent = Vec::new();
        let send = |message| sent.push(message);
        let id = self.dma.write(now, data, parts, limit, &self.worker, send);
        sent.into_iter().for_each(|message| self.send(message));
        DmaWrite::Pending(id)
    }

    /// Whether an access could overtake a write that is under way: a read or
    /// write may not pass a posted write (PCI Express Base 4.0, section 2.4.1).
    fn must_wait(&self, address: u64, length: usize, write: bool) -> bool {
        self.dma.writes_answered() < self.dma.next_write()
            && self
                .parts(address, length, write)
                .is_ok_and(|(parts, _)| self.dma.could_overtake(&parts, length))
    }

    pub(super) fn take_reply(&mut self, message: &Incoming) {
        match self.dma.reply(&message.header, &message.payload) {
            None => self.counters.stray_replies += 1,
            Some(ended) => self.dma_ended(ended),
        }
    }

    pub(super) fn dma_ended(&mut self, ended: Option<Ended>) {
        if let Some(address) = self.dma.take_lost_write() {
            self.doomed = Some(Closed::WriteLost(address));
        }
        if let Some((id, result)) = ended {
            self.counters.dma_faults += u64::from(result.is_err());
            self.ended.push_back((id, result));
        }
        self.release_interrupts();
    }
}
