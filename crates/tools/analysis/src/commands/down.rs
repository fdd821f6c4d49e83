//! TLPs from the host.

use super::controller::Controller;
use super::pending::Waiting;
use super::step::{Direction, Step, StepKind};
use super::{Analyser, Function, HostRequest, HostRequestKind};
use wire::nvme::register;
use wire::push::Push;
use wire::tlp::{Completion, ConfigRequest, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Duration, Tag};

/// The part of a function's memory that contains an address.
enum Target {
    Registers(u64),
    MsixTable(u64),
    Elsewhere,
}

impl Analyser {
    pub(super) fn down(&mut self, tlp: &Tlp) {
        self.shared.counters.down += 1;
        match tlp.packet {
            Packet::ConfigRead(c) => self.config_request(tlp, c, HostRequestKind::ConfigRead),
            Packet::ConfigWrite(c) => self.config_request(tlp, c, HostRequestKind::ConfigWrite),
            Packet::MemoryRead(request) => self.register_read(tlp, request),
            Packet::MemoryWrite(request) => self.register_write(tlp, request),
            Packet::Completion(c) => self.device_completion(tlp, c),
            Packet::Message(_) => {
                self.shared.counters.messages += 1;
                self.push_message(tlp);
            }
        }
    }

    /// Handles a push message. A message that is not valid is not a push.
    fn push_message(&mut self, tlp: &Tlp) {
        let Some((push, valid)) = Push::decode_front(tlp) else { return };
        self.shared.counters.pushes += 1;
        self.shared.is_push = true;
        // A push has several parts, and each part has its own print.
        self.shared.payload.print = None;
        let whole = self.shared.payload.knows(&(0..tlp.data.len()));
        self.shared.counters.malformed_pushes += u64::from(whole && valid.is_err());
        let function = self.functions.get_mut(&push.target);
        let function = function.filter(|function| !tlp.poisoned && function.is_nvme());
        if let Some(controller) = function.and_then(|function| function.controller.as_mut()) {
            controller.pushed(&push, &mut self.shared);
        }
    }

    fn config_request(&mut self, tlp: &Tlp, c: ConfigRequest, kind: HostRequestKind) {
        self.shared.counters.config += 1;
        self.shared.protocol = tlp.data.len();
        let host = self.host_request(tlp, kind, u64::from(c.register), c.first_be);
        let host = HostRequest { target: Some(c.target), ..host };
        self.expect_completion(c.requester, c.tag, Waiting::Host(host));
    }

    pub(super) fn expect_completion(&mut self, requester: Bdf, tag: Tag, waiting: Waiting) {
        let (reused, dropped) = self.pending.add(requester, tag, self.shared.at, waiting);
        self.shared.counters.reused_tags += reused;
        self.shared.counters.dropped += dropped;
    }

    fn register_read(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let target = self.target(request.address);
        self.count_register(target);
        let kind = HostRequestKind::MemoryRead;
        let host = self.host_request(tlp, kind, request.address, request.first_be);
        let host = HostRequest { target, ..host };
        self.expect_completion(request.requester, request.tag, Waiting::Host(host));
    }

    fn host_request(
        &self,
        tlp: &Tlp,
        kind: HostRequestKind,
        address: u64,
        enables: u8,
    ) -> HostRequest {
        HostRequest {
            kind,
            target: None,
            address,
            enables,
            value: first_dword(&tlp.data),
            at: self.shared.at,
            latency: Duration::ZERO,
            status: Status::Success,
        }
    }

    fn count_register(&mut self, target: Option<Bdf>) {
        match target {
            Some(bdf) if self.is_nvme(bdf) => self.shared.counters.registers += 1,
            _ => self.shared.counters.foreign += 1,
        }
    }

    fn register_write(&mut self, tlp: &Tlp, request: MemoryRequest) {
        let target = self.target(request.address);
        self.count_register(target);
        let Some(bdf) = target.filter(|bdf| !tlp.poisoned && self.is_nvme(*bdf)) else { return };
        let known = self.shared.known(0, &tlp.data);
        let dwords = known.chunks_exact(4).zip((request.address..).step_by(4));
        for (i, (dword, address)) in dwords.enumerate() {
            let value = u32::from_le_bytes(dword.try_into().expect("4 bytes"));
            let last = i + 1 == usize::from(request.length_dw);
            let enables = match i {
                0 => request.first_be,
                _ if last => request.last_be,
                _ => 0xf,
            };
            // Doorbells and MSI-X entries may be written in halves, other registers may not.
            if enables & 3 == 3 && self.dword_write(bdf, address, value) {
                self.protocol_dword(i);
            }
        }
    }

    /// Marks double word `i` of the payload as no user data.
    fn protocol_dword(&mut self, i: usize) {
        if self.shared.protocol == 4 * i {
            self.shared.protocol += 4;
        }
    }

    /// Handles a write of a double word. Returns whether a register or an entry of the MSI-X table
    /// is there.
    fn dword_write(&mut self, bdf: Bdf, address: u64, value: u32) -> bool {
        let Some(function) = self.functions.get_mut(&bdf) else { return false };
        let target = place(function, address);
        let controller = function.controller.get_or_insert_with(|| Box::new(Controller::new(bdf)));
        match target {
            Target::Registers(at) => {
                controller.register_write(address, at, value, &mut self.shared)
            }
            Target::MsixTable(at) => {
                controller.msix_write(at, value);
                true
            }
            Target::Elsewhere => false,
        }
    }

    fn target(&self, address: u64) -> Option<Bdf> {
        self.bars.at(address).map(|(_, bdf)| *bdf)
    }

    pub(super) fn register_value(&mut self, request: &HostRequest, data: &[u8]) {
        let Some(bdf) = request.target.filter(|bdf| self.is_nvme(*bdf)) else { return };
        let Some(function) = self.functions.get_mut(&bdf) else { return };
        let known = self.shared.known(0, data);
        let mut protocol = 0;
        let dwords = known.chunks_exact(4).zip((request.address..).step_by(4));
        for (i, (dword, address)) in dwords.enumerate() {
            let place = place(function, address);
            if matches!(place, Target::Registers(..register::DOORBELLS) | Target::MsixTable(_)) {
                protocol += 4 * usize::from(protocol == 4 * i);
            }
            if let Target::Registers(at) = place {
                let controller =
                    function.controller.get_or_insert_with(|| Box::new(Controller::new(bdf)));
                controller.registers.read(at, dword);
            }
        }
        self.shared.protocol = protocol;
    }

    pub(super) fn is_nvme(&self, bdf: Bdf) -> bool {
        self.functions.get(&bdf).is_some_and(|function| function.is_nvme())
    }

    fn device_completion(&mut self, tlp: &Tlp, c: Completion) {
        self.count_status(c.status);
        let Some(Waiting::Device(mut read)) = self.pending.take(Direction::Down, &c) else {
            self.shared.counters.unexpected_completions += 1;
            return;
        };
        let total = read.request.byte_count();
        let left = total - read.done;
        let lead = (read.request.leading() + read.done) & 3;
        let data = tlp.data.get(lead..).unwrap_or_default();
        let bytes = &data[..data.len().min(left)];
        let success = c.status == Status::Success;
        if success && (usize::from(c.byte_count) != left || bytes.is_empty()) {
            // The completion does not continue this request: it belongs to another request.
            self.shared.counters.unexpected_completions += 1;
            self.pending.put_back(&c, self.shared.at, Waiting::Device(read));
            return;
        }
        let address = read.request.first_byte() + read.done as u64;
        let carried = if success { bytes.len() } else { 0 };
        let step = self.shared.step(StepKind::DataCompletion, address, carried, Some(c.tag));
        let step = Step { status: c.status, ..step };
        let believed = if success && !tlp.poisoned { bytes } else { &[] };
        let known = self.shared.known(lead, believed).len();
        if known < believed.len() {
            read.unknown.push(read.done + known..read.done + believed.len());
        }
        if believed.len() != tlp.data.len() {
            self.shared.payload.print = None;
        }
        let function = self.functions.get_mut(&c.requester);
        if let Some(controller) = function.and_then(|function| function.controller.as_mut()) {
            controller.completed(&mut read, believed, step, &mut self.shared);
        }
        if lead > 0 {
            // The payload begins with bytes that were not requested.
            self.shared.protocol = 0;
        }
        read.done += bytes.len();
        if success && read.done < total {
            self.pending.put_back(&c, self.shared.at, Waiting::Device(read));
        }
    }

    pub(super) fn count_status(&mut self, status: Status) {
        match status {
            Status::Success => {}
            Status::ConfigRetry => self.shared.counters.config_retries += 1,
            Status::CompleterAbort => self.shared.counters.completer_aborts += 1,
            _ => self.shared.counters.unsupported_requests += 1,
        }
    }
}

fn place(function: &Function, address: u64) -> Target {
    if let Some(table) = function.shadow.msix_table().filter(|t| t.contains(&address)) {
        return Target::MsixTable(address - table.start);
    }
    match function.bar(0).filter(|bar| bar.contains(&address)) {
        Some(bar) => Target::Registers(address - bar.start),
        None => Target::Elsewhere,
    }
}

pub(super) fn first_dword(data: &[u8]) -> u32 {
    data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
