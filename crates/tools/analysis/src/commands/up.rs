//! TLPs from devices.

use super::down::first_dword;
use super::pending::{Purpose, Read, Waiting};
use super::step::Direction;
use super::{Analyser, Event, HostRequest, HostRequestKind, MOST_FUNCTIONS};
use wire::Bdf;
use wire::tlp::{Completion, MemoryRequest, Packet, Status, Tlp};

impl Analyser {
    pub(super) fn up(&mut self, tlp: &Tlp) {
        self.shared.counters.up += 1;
        match tlp.packet {
            Packet::MemoryRead(request) => self.device_read(request),
            Packet::MemoryWrite(request) => self.device_write(tlp, request),
            Packet::Completion(c) => self.host_completion(tlp, c),
            Packet::Message(_) => self.shared.counters.messages += 1,
            // Configuration requests only travel downwards.
            Packet::ConfigRead(_) | Packet::ConfigWrite(_) => self.shared.counters.orphans += 1,
        }
    }

    fn device_read(&mut self, request: MemoryRequest) {
        // A zero-length read is a flush (PCIe Base 4.0, section 2.2.5).
        let function = self.functions.get_mut(&request.requester);
        let function = function.filter(|function| function.is_nvme());
        self.shared.counters.reads += u64::from(request.first_be != 0 && function.is_some());
        let purpose = match function.map(|function| &mut function.controller) {
            Some(Some(controller)) => controller.device_read(&request, &mut self.shared),
            Some(None) => {
                self.shared.counters.orphans += 1;
                Purpose::Unknown
            }
            None => {
                self.shared.counters.foreign += 1;
                Purpose::Unknown
            }
        };
        let read = Read { request, purpose, buffer: Vec::new(), unknown: Vec::new(), done: 0 };
        let waiting = Waiting::Device(Box::new(read));
        self.expect_completion(request.requester, request.tag, waiting);
    }

    fn device_write(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let function = self.functions.get_mut(&request.requester);
        let Some(function) = function.filter(|function| function.is_nvme()) else {
            self.shared.counters.foreign += 1;
            return;
        };
        let lead = request.leading();
        let bytes = tlp.data.get(lead..).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(request.byte_count())];
        if bytes.len() != tlp.data.len() {
            // A completion may also contain bytes of other reads.
            self.shared.payload.print = None;
        }
        match &mut function.controller {
            Some(controller) if request.first_be != 0 && !tlp.poisoned => {
                self.shared.payload.known = self.shared.known(lead, bytes).len();
                controller.device_write(request.first_byte(), bytes, &mut self.shared);
            }
            _ => self.shared.counters.orphans += 1,
        }
    }

    fn host_completion(&mut self, tlp: &Tlp, c: Completion) {
        self.count_status(c.status);
        let Some(Waiting::Host(mut request)) = self.pending.take(Direction::Up, &c) else {
            self.shared.counters.unexpected_completions += 1;
            return;
        };
        request.status = c.status;
        request.latency = self.shared.at.since(request.at);
        let reads = request.kind != HostRequestKind::ConfigWrite;
        if reads {
            let data = self.shared.known(0, &tlp.data);
            request.value = if c.status == Status::Success { first_dword(data) } else { !0 };
        }
        if request.kind == HostRequestKind::ConfigRead {
            self.shared.protocol = tlp.data.len();
        }
        if c.status == Status::Success && !tlp.poisoned {
            match (request.kind, request.target) {
                (HostRequestKind::MemoryRead, _) => self.register_value(&request, &tlp.data),
                (_, Some(target)) => self.configured(target, &request),
                (_, None) => {}
            }
        }
        self.shared.emit(Event::Request(request));
    }

    fn configured(&mut self, target: Bdf, request: &HostRequest) {
        let known = self.functions.contains_key(&target);
        if !known && self.functions.len() >= MOST_FUNCTIONS {
            self.shared.counters.dropped += 1;
            return;
        }
        let shadow = &mut self.functions.entry(target).or_default().shadow;
        let (register, enables, value) = (request.address as u16, request.enables, request.value);
        let write = request.kind == HostRequestKind::ConfigWrite;
        if write && shadow.asks_for_reset(register, enables, value) {
            return self.reset_function(target);
        }
        if write && shadow.asks_for_bus_reset(register, enables, value) {
            let buses = shadow.buses();
            buses.into_iter().for_each(|buses| self.reset_bus(buses));
        }
        if let Some(function) = self.functions.get_mut(&target) {
            match write {
                true => function.shadow.write(register, enables, value),
                false => drop(function.shadow.read(register, enables, value)),
            }
        }
        self.place_bars();
    }
}
