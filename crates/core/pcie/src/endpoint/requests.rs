//! TLPs that the function receives: configuration and register accesses, and completions of DMA
//! reads.

use super::layout::MsixPlace;
use super::{DmaError, Endpoint, Event, ForeignEvent, ReadToken};
use crate::config::{command, register};
use crate::function::Reset;
use crate::split;
use bytes::Bytes;
use wire::tlp::{
    Attributes, ConfigKind, ConfigRequest, MemoryRequest, Packet, Status, Tlp, whole_double_words,
};

/// Identifies a read of configuration space until it is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigToken {
    request: ConfigRequest,
    attributes: Attributes,
    /// Number of resets before the read. A read from before a reset is not answered.
    epoch: u64,
}

/// What a BAR has at an offset.
enum Part {
    /// The table of MSI-X, from this offset of it on.
    Table(u64),
    /// The pending bits, from this offset of them on.
    Pending(u64),
    /// Registers of the device.
    Registers,
}

impl Endpoint {
    pub(super) fn receive(&mut self, tlp: Tlp) {
        match tlp.packet {
            Packet::ConfigRead(request) => self.config_read(&tlp, request),
            Packet::ConfigWrite(request) => self.config_write(&tlp, request),
            Packet::MemoryRead(request) => self.register_read(&tlp, request),
            Packet::MemoryWrite(_) if tlp.run.is_some() => {
                tlp.singles().for_each(|single| self.receive(single));
            }
            Packet::MemoryWrite(request) => self.register_write(&tlp, request),
            Packet::Completion(c) => {
                if c.requester == self.id {
                    self.engine.complete(c, &tlp, &mut self.errors);
                } else {
                    self.errors.unexpected_completion += tlp.packets() as u64;
                }
            }
            // Power and slot messages need no action.
            Packet::Message(_) => {}
        }
    }

    /// Whether a configuration request is for this function.
    fn is_target(&self, request: ConfigRequest) -> bool {
        request.kind == ConfigKind::Type0
            && request.target.device() == 0
            && request.target.function() == 0
    }

    fn config_read(&mut self, tlp: &Tlp, request: ConfigRequest) {
        if !self.is_target(request) {
            self.errors.unsupported_request += 1;
            self.complete_config(tlp.attributes, request, Status::UnsupportedRequest, Bytes::new());
            return;
        }
        self.reporting.update(&mut self.config, &self.errors);
        let offset = request.register & 0xffc;
        if self.settings.foreign.as_ref().is_some_and(|foreign| foreign.owns_part_of(offset)) {
            self.register_reads += 1;
            let token = ConfigToken { request, attributes: tlp.attributes, epoch: self.epoch };
            self.events.push_back(Event::Foreign(ForeignEvent::ConfigRead { offset, token }));
            return;
        }
        let data = Bytes::copy_from_slice(&self.config.read(offset).to_le_bytes());
        self.complete_config(tlp.attributes, request, Status::Success, data);
    }

    /// Answers a read of configuration space with the double word of the foreign device. Ignores a
    /// read from before a reset.
    pub fn complete_config_read(&mut self, token: ConfigToken, word: [u8; 4]) {
        if token.epoch != self.epoch {
            return;
        }
        self.register_reads -= 1;
        let offset = token.request.register & 0xffc;
        let mut bytes = self.config.read(offset).to_le_bytes();
        let foreign = self.settings.foreign.as_ref();
        for (at, byte) in (offset..).zip(&mut bytes) {
            if foreign.is_some_and(|foreign| foreign.owns(at)) {
                *byte = word[usize::from(at - offset)];
            }
        }
        let data = Bytes::copy_from_slice(&bytes);
        self.complete_config(token.attributes, token.request, Status::Success, data);
    }

    fn config_write(&mut self, tlp: &Tlp, request: ConfigRequest) {
        if !self.is_target(request) {
            self.errors.unsupported_request += 1;
            self.complete_config(tlp.attributes, request, Status::UnsupportedRequest, Bytes::new());
            return;
        }
        // Section 2.2.6.2: a function captures its bus and device number
        // from every type 0 configuration write.
        self.id = request.target;
        let Ok(word) = <[u8; 4]>::try_from(&tlp.data[..]) else {
            self.errors.malformed += 1;
            return;
        };
        let value = u32::from_le_bytes(word);
        if self.pcie.initiates_flr(request.register, request.first_be, value) {
            let (id, payload) = (self.id, self.pcie.max_payload(&self.config));
            self.reset(Reset::FunctionLevel);
            self.id = id;
            // Max_Payload_Size survives a function level reset (section 6.6.2).
            self.pcie.set_max_payload(&mut self.config, payload);
        } else {
            // Status bits must be current before RW1C clears them.
            self.reporting.update(&mut self.config, &self.errors);
            self.config.write(request.register, request.first_be, value);
            self.config_changed(request.register);
            self.write_foreign(request.register & 0xffc, request.first_be, word);
        }
        self.complete_config(tlp.attributes, request, Status::Success, Bytes::new());
    }

    /// Passes on the bytes of a double word that belong to the foreign device.
    fn write_foreign(&mut self, offset: u16, enables: u8, word: [u8; 4]) {
        let Some(foreign) = &self.settings.foreign else { return };
        let is_its = |at: &usize| enables >> at & 1 != 0 && foreign.owns(offset + *at as u16);
        let mut at = 0;
        while at < word.len() {
            let length = (at..word.len()).take_while(is_its).count();
            if length > 0 {
                let data = Bytes::copy_from_slice(&word[at..at + length]);
                let write = ForeignEvent::ConfigWrite { offset: offset + at as u16, data };
                self.events.push_back(Event::Foreign(write));
            }
            at += length.max(1);
        }
    }

    fn config_changed(&mut self, register: u16) {
        let msix = self.layout.msix.as_ref().map(|msix| msix.capability);
        if msix == Some(register) || register == register::COMMAND {
            self.flush_pending();
            self.update_intx();
            if self.settings.foreign.is_some() {
                self.events.push_back(Event::Foreign(ForeignEvent::Configured));
            }
        }
        if !self.is_bus_master() {
            self.engine.stop(DmaError::BusMasterDisabled);
        }
    }

    fn complete_config(
        &mut self,
        attributes: Attributes,
        request: ConfigRequest,
        status: Status,
        data: Bytes,
    ) {
        let completion = Tlp::completion(request.completion(request.target, status));
        self.out.push(Tlp { attributes, data, ..completion });
    }

    /// The BAR and the offset in it, if memory space is enabled and the whole request lies inside.
    fn decode(&self, request: &MemoryRequest) -> Option<(u8, u64)> {
        if self.config.u16(register::COMMAND) & command::MEMORY_SPACE == 0 {
            return None;
        }
        self.layout.find(&self.config, request.address, request.length() as u64)
    }

    fn part(&self, bar: u8, offset: u64) -> Part {
        let Some(MsixPlace { table, pending, .. }) = &self.layout.msix else {
            return Part::Registers;
        };
        if table.0 == bar && table.1.contains(&offset) {
            Part::Table(offset - table.1.start)
        } else if pending.0 == bar && pending.1.contains(&offset) {
            Part::Pending(offset - pending.1.start)
        } else {
            Part::Registers
        }
    }

    fn register_read(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let token =
            ReadToken { request, tc: tlp.tc, attributes: tlp.attributes, epoch: self.epoch };
        let Some((bar, offset)) = self.decode(&request) else {
            self.errors.unsupported_request += 1;
            let (status, left) = (Status::UnsupportedRequest, request.byte_count());
            self.push_completion(&token, status, left, Bytes::new());
            return;
        };
        let offset = offset + request.leading() as u64;
        let length = request.byte_count();
        self.register_reads += 1;
        let part = self.part(bar, offset);
        if request.first_be != 0 && matches!(part, Part::Registers) {
            self.events.push_back(Event::Read { bar, offset, length, token });
            return;
        }
        let mut data = vec![0; length];
        match part {
            Part::Table(at) => self.msix.read_table(at, &mut data),
            Part::Pending(at) => self.msix.read_pending(at, &mut data),
            Part::Registers => {}
        }
        self.complete_read(token, &data);
    }

    fn register_write(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let Some((bar, offset)) = self.decode(&request) else {
            self.errors.unsupported_request += 1;
            return;
        };
        if tlp.poisoned {
            self.errors.poisoned += 1;
            return;
        }
        for (start, data) in split::enabled_runs(&request, &tlp.data) {
            self.write_run(bar, offset + start as u64, data);
        }
    }

    fn write_run(&mut self, bar: u8, offset: u64, data: Bytes) {
        match self.part(bar, offset) {
            Part::Registers => self.events.push_back(Event::Write { bar, offset, data }),
            Part::Table(at) => {
                self.msix.write_table(at, &data);
                self.flush_pending();
            }
            Part::Pending(_) => {}
        }
    }

    /// Answers a register read with exactly the requested bytes. Ignores a read from before a
    /// reset.
    ///
    /// # Panics
    /// If the length of `data` differs from the length in the event.
    pub fn complete_read(&mut self, token: ReadToken, data: &[u8]) {
        if token.epoch != self.epoch {
            return;
        }
        self.register_reads -= 1;
        let request = token.request;
        assert_eq!(data.len(), request.byte_count(), "bytes against the request");
        let mut data = Bytes::copy_from_slice(data);
        for (at, bytes) in split::pieces(request.first_byte(), data.len(), self.max_payload()) {
            let left = data.len();
            let payload = whole_double_words(at, data.split_to(bytes));
            self.push_completion(&token, Status::Success, left, payload);
        }
    }

    fn push_completion(&mut self, token: &ReadToken, status: Status, left: usize, data: Bytes) {
        let completion = Tlp::completion(token.request.completion(self.id, status, left));
        self.out.push(Tlp { tc: token.tc, attributes: token.attributes, data, ..completion });
    }
}
