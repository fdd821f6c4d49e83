//! TLPs that the function receives: configuration and register accesses, and completions of DMA
//! reads.

use super::{DmaError, Endpoint, Event, ReadToken};
use crate::config::{command, register};
use crate::function::Reset;
use crate::split;
use bytes::Bytes;
use wire::tlp::{
    ConfigKind, ConfigRequest, MemoryRequest, Packet, Status, Tlp, whole_double_words,
};

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
            self.complete_config(tlp, request, Status::UnsupportedRequest, Bytes::new());
            return;
        }
        self.reporting.update(&mut self.config, &self.errors);
        let value = self.config.read(request.register);
        let data = Bytes::copy_from_slice(&value.to_le_bytes());
        self.complete_config(tlp, request, Status::Success, data);
    }

    fn config_write(&mut self, tlp: &Tlp, request: ConfigRequest) {
        if !self.is_target(request) {
            self.errors.unsupported_request += 1;
            self.complete_config(tlp, request, Status::UnsupportedRequest, Bytes::new());
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
        }
        self.complete_config(tlp, request, Status::Success, Bytes::new());
    }

    fn config_changed(&mut self, register: u16) {
        if register == self.msix_capability || register == register::COMMAND {
            self.flush_pending();
            self.update_intx();
        }
        if !self.is_bus_master() {
            self.engine.stop(DmaError::BusMasterDisabled);
        }
    }

    fn complete_config(&mut self, tlp: &Tlp, request: ConfigRequest, status: Status, data: Bytes) {
        let completion = Tlp::completion(request.completion(request.target, status));
        self.out.push(Tlp { attributes: tlp.attributes, data, ..completion });
    }

    /// The offset in BAR 0, if memory space is enabled and the whole request lies inside.
    fn decode(&self, request: &MemoryRequest) -> Option<u64> {
        if self.config.u16(register::COMMAND) & command::MEMORY_SPACE == 0 {
            return None;
        }
        let low = u64::from(self.config.u32(register::BAR0) & !0xf);
        let bar = low | u64::from(self.config.u32(register::BAR0 + 4)) << 32;
        let offset = request.address.checked_sub(bar)?;
        let end = offset.checked_add(request.length() as u64)?;
        (bar != 0 && end <= self.settings.bar0_size).then_some(offset)
    }

    fn register_read(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let token =
            ReadToken { request, tc: tlp.tc, attributes: tlp.attributes, epoch: self.epoch };
        let Some(offset) = self.decode(&request) else {
            self.errors.unsupported_request += 1;
            let (status, left) = (Status::UnsupportedRequest, request.byte_count());
            self.push_completion(&token, status, left, Bytes::new());
            return;
        };
        let offset = offset + request.leading() as u64;
        let length = request.byte_count();
        let (table, pba) = (self.settings.bar0_size / 2, self.settings.bar0_size / 4 * 3);
        self.register_reads += 1;
        if request.first_be == 0 || offset >= table {
            let mut data = vec![0; length];
            if offset >= pba {
                self.msix.read_pending(offset - pba, &mut data);
            } else if offset >= table {
                self.msix.read_table(offset - table, &mut data);
            }
            self.complete_read(token, &data);
        } else {
            self.events.push_back(Event::Read { offset, length, token });
        }
    }

    fn register_write(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let Some(offset) = self.decode(&request) else {
            self.errors.unsupported_request += 1;
            return;
        };
        if tlp.poisoned {
            self.errors.poisoned += 1;
            return;
        }
        for (start, data) in split::enabled_runs(&request, &tlp.data) {
            self.write_run(offset + start as u64, data);
        }
    }

    fn write_run(&mut self, offset: u64, data: Bytes) {
        let (table, pba) = (self.settings.bar0_size / 2, self.settings.bar0_size / 4 * 3);
        if offset < table {
            self.events.push_back(Event::Write { offset, data });
        } else if offset < pba {
            self.msix.write_table(offset - table, &data);
            self.flush_pending();
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
