//! What the device does to the guest: DMA, and interrupts behind it.

use super::connection::Incoming;
use super::dma::{DmaError, DmaRead, DmaWrite, Ended, MAX_DMA, Part};
use super::irq::Source;
use super::session::{MAX_OUTGOING, Session};
use crate::guest::Fault;
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

    fn message_parts(&self, address: u64, length: usize, write: bool) -> Result<Vec<Part>, Fault> {
        let all = self.memory.segments(address, length, write)?;
        let by_message = all.into_iter().filter(|segment| !segment.shared);
        Ok(by_message
            .map(|segment| Part {
                at: segment.at,
                address: segment.address,
                length: segment.length,
            })
            .collect())
    }

    fn fault(&mut self, error: DmaError) -> DmaError {
        self.counters.dma_faults += 1;
        error
    }

    /// Whether DMA messages may be sent at all now.
    fn dma_room(&self, parts: &[Part], limit: usize) -> bool {
        self.outgoing_bytes < MAX_OUTGOING && self.dma.has_room(parts, limit)
    }

    /// Reads guest memory for the device.
    pub fn dma_read(&mut self, now: Instant, address: u64, length: usize) -> DmaRead {
        if length > MAX_DMA {
            return DmaRead::Failed(self.fault(DmaError::TooLong));
        }
        let mut buffer = vec![0; length];
        match self.memory.read_into(address, &mut buffer) {
            Ok(()) => return DmaRead::Done(buffer.into()),
            Err(Fault::ByMessage) => {}
            Err(_) => return DmaRead::Failed(self.fault(DmaError::Fault)),
        }
        let Ok(parts) = self.message_parts(address, length, false) else {
            return DmaRead::Failed(self.fault(DmaError::Fault));
        };
        let limit = self.client_xfer;
        if !self.dma_room(&parts, limit) {
            return DmaRead::Full;
        }
        for segment in self.memory.segments(address, length, false).unwrap_or_default() {
            let part = &mut buffer[segment.at..segment.at + segment.length];
            if segment.shared && self.memory.read_into(segment.address, part).is_err() {
                return DmaRead::Failed(self.fault(DmaError::Fault));
            }
        }
        let mut sent = Vec::new();
        let id = self.dma.read(now, buffer, &parts, limit, |message| sent.push(message));
        sent.into_iter().for_each(|message| self.send(message));
        DmaRead::Pending(id)
    }

    /// Writes guest memory for the device.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) -> DmaWrite {
        if data.len() > MAX_DMA {
            return DmaWrite::Failed(self.fault(DmaError::TooLong));
        }
        match self.memory.write(address, data) {
            Ok(()) => return DmaWrite::Done,
            Err(Fault::ByMessage) => {}
            Err(_) => return DmaWrite::Failed(self.fault(DmaError::Fault)),
        }
        let Ok(parts) = self.message_parts(address, data.len(), true) else {
            return DmaWrite::Failed(self.fault(DmaError::Fault));
        };
        let limit = self.client_xfer;
        if !self.dma_room(&parts, limit) {
            return DmaWrite::Full;
        }
        for segment in self.memory.segments(address, data.len(), true).unwrap_or_default() {
            let part = &data[segment.at..segment.at + segment.length];
            if segment.shared && self.memory.write(segment.address, part).is_err() {
                return DmaWrite::Failed(self.fault(DmaError::Fault));
            }
        }
        let mut sent = Vec::new();
        let id = self.dma.write(now, data, &parts, limit, |message| sent.push(message));
        sent.into_iter().for_each(|message| self.send(message));
        DmaWrite::Pending(id)
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
            self.ended.push_back((id, result));
        }
        self.release_interrupts();
    }
}
