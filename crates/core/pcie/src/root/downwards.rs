//! Requests of the host to devices, and their completions.

use super::{HostOutput, Output, Pending, ROOT_PORT, RootComplex, TAGS};
use crate::config::{command, register};
use crate::function;
use crate::port_queues::Receiver;
use crate::software::{Request, RequestId, low_bytes};
use bytes::Bytes;
use std::ops::RangeInclusive;
use wire::tlp::{Completion, ConfigKind, ConfigRequest, Packet, Status, Tlp};
use wire::{Bdf, Instant, Tag};

/// The requester ID of the host itself.
const HOST: Bdf = Bdf::new(0, 0, 0);

impl RootComplex {
    pub(super) fn start(
        &mut self,
        now: Instant,
        id: RequestId,
        request: Request,
        below: &impl Receiver,
    ) {
        match request {
            Request::ConfigRead { target, offset, size } => {
                self.config(now, (id, request), (target, offset, size), None, below);
            }
            Request::ConfigWrite { target, offset, size, value } => {
                self.config(now, (id, request), (target, offset, size), Some(value), below);
            }
            Request::MemoryRead { address, size } => {
                let tag = self.take_tag();
                let read = Tlp::read_bytes(HOST, tag, address, size.into());
                let Some(read) = read.filter(|_| self.port.claims_address(address)) else {
                    self.errors.unsupported_request += 1;
                    self.output_to_host(HostOutput::Answer(id, None));
                    return;
                };
                let queue = self.send(read, below);
                self.await_completion(now, tag, (id, request), None, queue);
            }
            Request::MemoryWrite { address, size, value } => {
                let bytes = self.arena.copy(&value.to_le_bytes()[..usize::from(size)]);
                let write = Tlp::write_bytes(HOST, address, &bytes);
                let Some(write) = write.filter(|_| self.port.claims_address(address)) else {
                    self.errors.unsupported_request += 1;
                    return;
                };
                self.send(write, below);
            }
            // The caller should handle sleeps; here, a sleep ends at once.
            Request::Sleep(_) => self.output_to_host(HostOutput::Answer(id, Some(0))),
        }
    }

    fn config(
        &mut self,
        now: Instant,
        (id, request): (RequestId, Request),
        (target, offset, size): (Bdf, u16, u8),
        write: Option<u32>,
        below: &impl Receiver,
    ) {
        let shift = u32::from(offset & 3) * 8;
        let first_be = ((1u8 << size) - 1) << (offset & 3);
        let kind = if target.bus() == self.port.secondary() {
            ConfigKind::Type0
        } else {
            ConfigKind::Type1
        };
        if target == ROOT_PORT {
            let value = match write {
                None => self.port.read(offset) >> shift,
                Some(value) => {
                    if self.port.write(offset & !3, first_be, value << shift) {
                        self.hot_reset();
                    }
                    0
                }
            };
            self.output_to_host(HostOutput::Answer(id, Some(low_bytes(u64::from(value), size))));
            return;
        }
        if target.bus() == 0 || !self.port.claims_bus(target.bus()) {
            self.output_to_host(HostOutput::Answer(id, None));
            return;
        }
        if let Some(value) = write {
            self.record_bus_master(target, offset, size, value);
        }
        let tag = self.take_tag();
        let register = offset & 0xffc;
        let config = ConfigRequest { kind, requester: HOST, tag, target, register, first_be };
        let tlp = match write {
            None => Tlp::new(Packet::ConfigRead(config), Bytes::new()),
            Some(value) => {
                let data = Bytes::copy_from_slice(&(value << shift).to_le_bytes());
                Tlp::new(Packet::ConfigWrite(config), data)
            }
        };
        let queue = self.send(tlp, below);
        self.await_completion(now, tag, (id, request), Some(target), queue);
    }

    /// Records a request in port queue `queue` until its completion or timeout.
    fn await_completion(
        &mut self,
        now: Instant,
        tag: Tag,
        (id, request): (RequestId, Request),
        target: Option<Bdf>,
        queue: usize,
    ) {
        let deadline = now + self.settings.completion_timeout;
        self.pending.insert(tag.get(), Pending { id, request, target, deadline, queue });
    }

    /// Records Bus Master Enable of a function, because the root complex checks the requests of
    /// untrusted devices.
    fn record_bus_master(&mut self, target: Bdf, offset: u16, size: u8, value: u32) {
        if offset == register::COMMAND && size >= 1 {
            self.bus_masters.insert(target, value as u16 & command::BUS_MASTER != 0);
        }
    }

    /// Resets everything below: fails host requests in flight, clears all bus masters, and
    /// deasserts INTx.
    fn hot_reset(&mut self) {
        self.below.clear();
        self.bus_masters.clear();
        self.host_reads = 0;
        self.epoch += 1;
        for pending in std::mem::take(&mut self.pending).into_values() {
            self.output_to_host(HostOutput::Answer(pending.id, None));
        }
        for wire in 0..4u8 {
            if std::mem::take(&mut self.intx[usize::from(wire)]) {
                self.output_to_host(HostOutput::Intx { wire, level: false });
            }
        }
        self.outputs.push_back(Output::Downstream(function::Input::HotReset));
    }

    /// Treats the functions on `buses`, which were reset or removed, as without bus mastering.
    pub fn clear_bus_masters(&mut self, buses: RangeInclusive<u8>) {
        self.bus_masters.retain(|function, _| !buses.contains(&function.bus()));
    }

    fn take_tag(&mut self) -> Tag {
        debug_assert!(self.pending.len() < TAGS);
        while self.pending.contains_key(&self.next_tag) {
            self.next_tag = (self.next_tag + 1) % TAGS as u16;
        }
        let tag = Tag::truncate(self.next_tag);
        self.next_tag = (self.next_tag + 1) % TAGS as u16;
        tag
    }

    pub(super) fn complete(&mut self, c: Completion, tlp: &Tlp) {
        let known = self.pending.get(&c.tag.get()).filter(|pending| {
            // A port on the path may complete a request with an error, under the ID of the port.
            let from_target = pending.target.is_none_or(|target| target == c.completer);
            c.requester == HOST && (from_target || c.status != Status::Success)
        });
        let Some(pending) = known else {
            self.errors.unexpected_completion += 1;
            return;
        };
        let value = if tlp.poisoned || c.status != Status::Success {
            if tlp.poisoned || !is_probe(&pending.request) {
                self.count_failure(tlp.poisoned, c.status);
            }
            None
        } else {
            match extract(&pending.request, c, &tlp.data) {
                Ok(value) => Some(value),
                Err(()) => {
                    self.errors.malformed += 1;
                    None
                }
            }
        };
        let id = self.pending.remove(&c.tag.get()).expect("found above").id;
        self.output_to_host(HostOutput::Answer(id, value));
    }

    fn count_failure(&mut self, poisoned: bool, status: Status) {
        match status {
            _ if poisoned => self.errors.poisoned += 1,
            Status::CompleterAbort => self.errors.completer_abort += 1,
            _ => self.errors.unsupported_request += 1,
        }
    }

    /// Ends the requests whose time is over. While the link to their device is interrupted, their
    /// time begins again.
    pub(super) fn expire(&mut self, now: Instant, below: &impl Receiver) {
        for pending in self.pending.values_mut() {
            if below.is_interrupted(pending.queue) {
                pending.deadline = now + self.settings.completion_timeout;
            }
        }
        let due = |pending: &Pending| pending.deadline <= now;
        let late: Vec<u16> =
            self.pending.iter().filter(|(_, p)| due(p)).map(|(tag, _)| *tag).collect();
        for tag in late {
            let pending = self.pending.remove(&tag).expect("listed above");
            self.errors.completion_timeout += 1;
            self.output_to_host(HostOutput::Answer(pending.id, None));
        }
    }
}

/// Whether the request reads a vendor ID. Software searches functions with such reads, so an
/// Unsupported Request is not an error (PCIe Base 4.0, section 2.3.2, implementation note).
fn is_probe(request: &Request) -> bool {
    matches!(request, Request::ConfigRead { offset: 0, .. })
}

/// The value in a completion; `Err` if the completion contradicts the request.
fn extract(request: &Request, c: Completion, data: &[u8]) -> Result<u64, ()> {
    let (lead, size) = match *request {
        Request::ConfigRead { offset, size, .. } => (usize::from(offset & 3), size),
        Request::MemoryRead { address, size } => {
            if c.byte_count != u16::from(size) {
                return Err(());
            }
            ((address & 3) as usize, size)
        }
        _ => return Ok(0),
    };
    let bytes = data.get(lead..lead + usize::from(size)).ok_or(())?;
    let mut value = [0; 8];
    value[..bytes.len()].copy_from_slice(bytes);
    Ok(u64::from_le_bytes(value))
}
