//! Requests of devices to host memory, and interrupts.

use super::{HostOutput, MSI_WINDOW, ROOT_PORT, ReadToken, RootComplex};
use crate::port_queues::Receiver;
use crate::split;
use bytes::Bytes;
use wire::Bdf;
use wire::tlp::{MemoryRequest, Message, Packet, Tlp, message_code};

impl RootComplex {
    pub(super) fn receive(&mut self, tlp: Tlp, below: &impl Receiver) {
        match tlp.packet {
            Packet::Completion(c) => self.complete(c, &tlp),
            Packet::MemoryRead(request) => self.host_read(tlp, request, below),
            Packet::MemoryWrite(request) => self.host_write(tlp, request),
            Packet::Message(message) => self.message(message),
            Packet::ConfigRead(_) | Packet::ConfigWrite(_) => {
                // Configuration requests only travel downstream.
                self.errors.malformed += 1;
                self.unsupported_request(&tlp, below);
            }
        }
    }

    fn check_bus_master(&mut self, requester: Bdf, tlp: &Tlp) -> bool {
        let known = self.bus_masters.get(&requester).copied().unwrap_or(false);
        let may = known && self.port.bus_master();
        self.errors.bus_master_off += if may { 0 } else { tlp.packets() as u64 };
        may
    }

    fn host_read(&mut self, tlp: Tlp, request: MemoryRequest, below: &impl Receiver) {
        if !self.check_bus_master(request.requester, &tlp) {
            return self.unsupported_request(&tlp, below);
        }
        // Reads of this window are not possible (Intel SDM volume 3, section 11.11.1).
        if MSI_WINDOW.contains(&request.address) {
            self.errors.unsupported_request += 1;
            return self.unsupported_request(&tlp, below);
        }
        let (requester, address) = (request.requester, request.first_byte());
        let length = request.byte_count();
        let token = ReadToken { tlp, epoch: self.epoch };
        self.host_reads += 1;
        self.output_to_host(HostOutput::HostRead { token, requester, address, length });
    }

    fn host_write(&mut self, tlp: Tlp, request: MemoryRequest) {
        if !self.check_bus_master(request.requester, &tlp) {
            return;
        }
        if tlp.poisoned {
            self.errors.poisoned += 1;
            return;
        }
        if tlp.run.is_none() {
            return self.write_packet(request, tlp.data);
        }
        let end = request.address.saturating_add(tlp.payload() as u64);
        if request.is_whole() && (end <= MSI_WINDOW.start || request.address >= MSI_WINDOW.end) {
            // One copy costs less than several accesses to memory.
            let mut data = self.runs.buffer(tlp.payload());
            tlp.pieces().for_each(|piece| data.extend_from_slice(piece));
            let (requester, address, data) = (request.requester, request.address, data.freeze());
            return self.output_to_host(HostOutput::HostWrite { requester, address, data });
        }
        for single in tlp.singles() {
            if let Packet::MemoryWrite(request) = single.packet {
                self.write_packet(request, single.data);
            }
        }
    }

    fn write_packet(&mut self, request: MemoryRequest, data: Bytes) {
        let requester = request.requester;
        if MSI_WINDOW.contains(&request.address) {
            // An interrupt is one whole double word (PCIe Base 4.0, section 6.1.4). Because of the
            // 4 KiB rule no write lies partly inside the window.
            match <[u8; 4]>::try_from(&data[..]) {
                Ok(data) if request.first_be == 0xf => {
                    let data = u32::from_le_bytes(data);
                    self.output_to_host(HostOutput::Interrupt { requester, data });
                }
                _ => self.errors.unsupported_request += 1,
            }
            return;
        }
        if request.is_whole() && data.len() == request.length() {
            let address = request.address;
            return self.output_to_host(HostOutput::HostWrite { requester, address, data });
        }
        for (start, data) in split::enabled_runs(&request, &data) {
            let address = request.address + start as u64;
            self.output_to_host(HostOutput::HostWrite { requester, address, data });
        }
    }

    /// Sends the data of a host memory read as completions.
    pub(super) fn host_data(
        &mut self,
        token: ReadToken,
        data: Option<Bytes>,
        below: &impl Receiver,
    ) {
        if token.epoch != self.epoch {
            return;
        }
        self.host_reads -= 1;
        let Some(data) = data else {
            self.errors.unsupported_request += 1;
            return self.unsupported_request(&token.tlp, below);
        };
        let (size, runs) = (self.completion_size(), !self.settings.ecrc);
        for tlp in split::completions(&token.tlp, ROOT_PORT, size, runs, data) {
            self.send(tlp, below);
        }
    }

    /// The maximum number of bytes in a completion of a host memory read. Completions end at
    /// multiples of this number.
    pub fn completion_size(&self) -> usize {
        self.settings.completion_size.min(self.port.max_payload())
    }

    /// Whether `requester` may read `length` bytes of host memory at `address`: bus mastering is on
    /// for the requester and the root port, and no byte is in the [`MSI_WINDOW`].
    pub fn may_read(&self, requester: Bdf, address: u64, length: usize) -> bool {
        let master = self.bus_masters.get(&requester).copied().unwrap_or(false);
        let end = address.saturating_add(length as u64);
        let window = address < MSI_WINDOW.end && end > MSI_WINDOW.start;
        master && self.port.bus_master() && !window
    }

    fn message(&mut self, message: Message) {
        let (wire, level) = match message.code {
            code @ message_code::ASSERT_INTA..=0x23 => (code & 3, true),
            code @ message_code::DEASSERT_INTA..=0x27 => (code & 3, false),
            _ => return,
        };
        if self.intx[usize::from(wire)] != level {
            self.intx[usize::from(wire)] = level;
            self.output_to_host(HostOutput::Intx { wire, level });
        }
    }
}
