//! The endpoint core: the PCIe part of a type 0 function. The device model on top
//! sees register accesses, completed DMA and resets, but no TLPs.

mod dma;
mod foreign;
mod layout;
mod msix;
mod requests;
mod saved;
#[cfg(test)]
mod tests;

use crate::config::contents::{self, ContentsCapability};
use crate::config::{self, ConfigSpace, ErrorReporting, PcieCapability, command, register};
use crate::errors::Errors;
use crate::function::{Input, Output, Ready, Reset, Wait};
use crate::ordering::OrderedQueue;
use crate::split;
use bytes::Bytes;
use dma::{Engine, Limits};
pub use foreign::{Foreign, ForeignError};
use layout::Layout;
use msix::Msix;
pub use requests::ConfigToken;
pub use saved::{ForeignState, SavedEndpoint, Unsent, is_answer};
use std::collections::VecDeque;
use wire::tlp::{Attributes, Class, MemoryRequest, Packet, Tlp, message_code};
use wire::{Arena, Bdf, Instant};

/// Configuration of an [`Endpoint`].
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Subsystem vendor ID and subsystem ID.
    pub subsystem: (u16, u16),
    /// Class code: base class, subclass, programming interface.
    pub class: [u8; 3],
    /// Revision ID.
    pub revision: u8,
    /// Device serial number (extended capability 0003h).
    pub serial: u64,
    /// The incarnation: identifies the data that the device stores; `None` for a device without
    /// data. With an incarnation, the vendor must be [`contents::VENDOR`].
    pub incarnation: Option<u64>,
    /// Size in bytes of BAR 0, a 64-bit non-prefetchable memory BAR; a power of two, at least 4096.
    /// The MSI-X table begins at half of the size, the PBA at three quarters.
    pub bar0_size: u64,
    /// MSI-X vectors, 1 to 2048.
    pub vectors: u16,
    /// Largest payload supported: 128, 256, … 4096 bytes.
    pub max_payload: usize,
    /// The device's own limit of one read request in bytes, a power of two up to 4096, in addition
    /// to MRRS: some drives request at most 256 bytes.
    pub read_request: usize,
    /// The maximum number of read requests that the DMA engine keeps in flight, 1 to 1024.
    pub reads_in_flight: usize,
    /// The device of another program in whose place the function is. With it, the IDs, the class, the
    /// BARs and MSI-X are those of this device.
    pub foreign: Option<Foreign>,
}

impl EndpointConfig {
    /// A function that stores no data: revision 1, serial number 1, BAR 0 of 4096 bytes, one
    /// vector, payloads and read requests of up to 4096 bytes, 32 reads in flight.
    pub const fn new(vendor: u16, device: u16, class: [u8; 3]) -> Self {
        Self {
            vendor,
            device,
            subsystem: (vendor, 1),
            class,
            revision: 1,
            serial: 1,
            incarnation: None,
            bar0_size: 4096,
            vectors: 1,
            max_payload: 4096,
            read_request: 4096,
            reads_in_flight: 32,
            foreign: None,
        }
    }
}

/// An event for the device model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read of a BAR; answer with [`Endpoint::complete_read`].
    Read {
        /// Number of the BAR, 0 to 5.
        bar: u8,
        /// Byte offset in the BAR.
        offset: u64,
        /// Bytes to read, 1 to 4096.
        length: usize,
        /// Identifies the read.
        token: ReadToken,
    },
    /// A write of the enabled bytes to a BAR.
    Write {
        /// Number of the BAR, 0 to 5.
        bar: u8,
        /// Byte offset in the BAR.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// An event of a function in the place of a foreign device; other functions have none.
    Foreign(ForeignEvent),
    /// A DMA read has ended.
    ReadDone {
        /// The ID given to [`Endpoint::dma_read`].
        id: u64,
        /// All bytes in order, or the error.
        result: Result<Bytes, DmaError>,
    },
    /// A reset. Outstanding DMA reads end without [`ReadDone`](Self::ReadDone).
    Reset(Reset),
}

/// An event of a function in the place of a foreign device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignEvent {
    /// A read of a double word of configuration space that belongs in part to the device; answer with
    /// [`Endpoint::complete_config_read`].
    ConfigRead {
        /// Byte offset of the double word.
        offset: u16,
        /// Identifies the read.
        token: ConfigToken,
    },
    /// A write of configuration space that belongs to the device.
    ConfigWrite {
        /// Byte offset.
        offset: u16,
        /// The bytes, 1 to 4.
        data: Bytes,
    },
    /// The command register, or the enabling or the mask of MSI-X, may have changed.
    Configured,
}

/// Identifies a register read until it is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadToken {
    request: MemoryRequest,
    tc: u8,
    attributes: Attributes,
    /// Number of resets before the read. A read from before a reset is not answered.
    epoch: u64,
}

/// Why a DMA read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// The completer answered Unsupported Request.
    #[error("unsupported request")]
    UnsupportedRequest = 1,
    /// The completer answered Completer Abort, or with a malformed completion.
    #[error("completer abort")]
    CompleterAbort,
    /// The completion timed out.
    #[error("completion timeout")]
    Timeout,
    /// The payload was marked as poisoned.
    #[error("poisoned data")]
    Poisoned,
    /// Bus mastering is or was disabled: the read was not requested, or only a part of it.
    #[error("bus mastering is disabled")]
    BusMasterDisabled,
}

/// The maximum number of register reads without an answer and completions in the queue, together.
const MAX_REGISTER_READS: usize = 64;

/// The PCIe part of a type 0 function.
#[derive(Debug)]
pub struct Endpoint {
    settings: EndpointConfig,
    config: ConfigSpace,
    pcie: PcieCapability,
    reporting: ErrorReporting,
    contents: Option<ContentsCapability>,
    layout: Layout,
    msix: Msix,
    id: Bdf,
    engine: Engine,
    out: OrderedQueue,
    /// Memory for short writes.
    arena: Arena,
    events: VecDeque<Event>,
    register_reads: usize,
    intx: bool,
    intx_asserted: bool,
    epoch: u64,
    /// Payload bytes of all posted writes since the start.
    written: u64,
    errors: Errors,
    label: Option<config::label::Label>,
}

impl Endpoint {
    /// Adds a label capability. Call this before any other method.
    #[must_use]
    pub fn with_label(mut self, label: config::label::Label) -> Self {
        label.add(&mut self.config);
        self.label = Some(label);
        self
    }

    /// A function after power-on.
    ///
    /// # Panics
    /// If a setting is out of the range that the field's documentation states.
    pub fn new(settings: EndpointConfig) -> Self {
        assert!(settings.read_request.is_power_of_two() && settings.read_request <= 4096);
        assert!((1..=1024).contains(&settings.reads_in_flight));
        let vendor = settings.incarnation.map_or(settings.vendor, |_| contents::VENDOR);
        assert_eq!(vendor, settings.vendor, "the vendor whose capability it is");
        let layout::Parts { mut config, layout, pcie } = match &settings.foreign {
            Some(foreign) => foreign.parts(settings.max_payload),
            None => Layout::parts(&settings),
        };
        pcie.set_link(&mut config, true);
        let serial = config.add_extended(config::capability::EXT_SERIAL_NUMBER, 1, 12);
        config.set(serial + 4, &settings.serial.to_le_bytes());
        let reporting = ErrorReporting::add(&mut config);
        let add = |incarnation| ContentsCapability::add(&mut config, incarnation);
        let contents = settings.incarnation.map(add);
        Self {
            msix: Msix::new(layout.vectors()),
            layout,
            settings,
            config,
            pcie,
            reporting,
            contents,
            id: Bdf::default(),
            engine: Engine::default(),
            out: OrderedQueue::default(),
            arena: Arena::new(4096),
            events: VecDeque::new(),
            register_reads: 0,
            intx: false,
            intx_asserted: false,
            epoch: 0,
            written: 0,
            errors: Errors::default(),
            label: None,
        }
    }

    /// Implements [`Function::handle`](crate::Function::handle). After each call, take events from
    /// [`poll_event`](Self::poll_event) until there is none.
    pub fn handle(&mut self, _now: Instant, input: Input) {
        match input {
            Input::HotReset => {
                self.id = Bdf::default();
                self.reset(Reset::Hot);
            }
            Input::Tlp(tlp) => self.receive(tlp),
        }
    }

    /// The next event for the device model.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let (id, result) = self.engine.finished()?;
        Some(Event::ReadDone { id, result })
    }

    /// Implements [`Function::poll`](crate::Function::poll). May cause events (a completion
    /// timeout), so take events from [`poll_event`](Self::poll_event) after each call.
    pub fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        // Makes a request only if the request can be sent, so that no tag waits in a queue.
        if ready.has(Class::NonPosted)
            && self.out.len(Class::NonPosted) == 0
            && self.engine.has_unsent()
            && let Some(request) = self.engine.next_request(self.limits())
        {
            self.out.push(request);
        }
        let digest = self.reporting.generates_ecrc(&self.config);
        if let Some(mut tlp) = self.out.pop(ready.with_runs(ready.takes_runs() && !digest)) {
            tlp.digest = digest;
            if let Packet::MemoryRead(request) = tlp.packet {
                self.engine.sent(now, request.tag);
            }
            return Output::Tlp(tlp);
        }
        let limit = self.pcie.completion_timeout(&self.config);
        let mut until = self.engine.deadline(limit);
        if until.is_some_and(|at| at <= now) {
            self.engine.expire(now, limit, &mut self.errors);
            until = self.engine.deadline(limit);
        }
        let asks = || self.engine.has_unsent() && self.engine.has_request(self.limits());
        Output::Wait(Wait { until, receiver: !self.out.is_empty() || asks() })
    }

    /// Implements [`Function::ready`](crate::Function::ready): denies non-posted
    /// requests while many register reads or completions are queued.
    pub fn ready(&self) -> Ready {
        let waiting = self.register_reads + self.out.len(Class::Completion);
        Ready::ALL.with_runs(true).with(Class::NonPosted, waiting < MAX_REGISTER_READS)
    }

    /// Reads host memory. Splits the read by MRRS, [`EndpointConfig::read_request`] and 4 KiB. One
    /// [`Event::ReadDone`] follows.
    pub fn dma_read(&mut self, id: u64, address: u64, length: usize) {
        if self.is_bus_master() {
            self.engine.read(id, address, length);
        } else {
            self.errors.bus_master_off += 1;
            self.engine.fail(id, DmaError::BusMasterDisabled);
        }
    }

    /// Writes host memory by posted requests, split by MPS and 4 KiB, in order with other writes.
    /// Drops and counts the write if bus mastering is off or the range wraps.
    pub fn dma_write(&mut self, address: u64, data: Bytes) {
        if !self.is_bus_master() {
            self.errors.bus_master_off += 1;
            return;
        }
        if address.checked_add(data.len() as u64).is_none() {
            self.errors.unsupported_request += 1;
            return;
        }
        self.written += data.len() as u64;
        self.out.extend(split::writes(self.id, address, data, self.max_payload()));
    }

    /// As [`dma_write`](Self::dma_write), but copies `data`. For a few bytes.
    pub fn dma_copy(&mut self, address: u64, data: &[u8]) {
        let data = self.arena.copy(data);
        self.dma_write(address, data);
    }

    /// Payload bytes of posted writes queued for the link. The device model should limit this
    /// number.
    pub fn posted_backlog(&self) -> usize {
        self.out.payload(Class::Posted)
    }

    /// Number of posted packets queued for the link.
    pub fn posted_packets(&self) -> usize {
        self.out.len(Class::Posted)
    }

    /// Payload bytes of all posted writes since the start.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Sends MSI-X vector `vector` after all earlier writes. If the vector is masked, sets its
    /// pending bit and sends it after the unmasking. Sends nothing while MSI-X is disabled: then
    /// use [`set_intx`](Self::set_intx).
    pub fn interrupt(&mut self, vector: u16) {
        if !self.msix_enabled() || vector >= self.msix.vectors() {
            return;
        }
        match self.msix.target(vector).filter(|_| !self.msix_masked()) {
            Some((address, data)) => {
                self.msix.set_pending(vector, false);
                self.dma_copy(address, &data);
            }
            None => self.msix.set_pending(vector, true),
        }
    }

    /// Whether MSI-X is enabled (else the function signals INTA).
    pub fn msix_enabled(&self) -> bool {
        self.msix_control() & 1 << 15 != 0
    }

    /// Vendor ID and device ID.
    pub fn ids(&self) -> [u16; 2] {
        [register::VENDOR, register::DEVICE].map(|at| self.config.u16(at))
    }

    /// The command register.
    pub fn command(&self) -> u16 {
        self.config.u16(register::COMMAND)
    }

    /// Message Control of MSI-X; 0 without MSI-X.
    fn msix_control(&self) -> u16 {
        self.layout.msix.as_ref().map_or(0, |msix| self.config.u16(msix.capability + 2))
    }

    /// Sets the level of INTA, used while MSI-X is disabled. Changes send
    /// Assert_INTA and Deassert_INTA.
    pub fn set_intx(&mut self, level: bool) {
        self.intx = level;
        self.update_intx();
    }

    /// Error counters.
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// The ID captured from the last type 0 configuration write.
    pub fn id(&self) -> Bdf {
        self.id
    }

    /// Whether Bus Master Enable is set.
    pub fn is_bus_master(&self) -> bool {
        self.command() & command::BUS_MASTER != 0
    }

    fn max_payload(&self) -> usize {
        self.pcie.max_payload(&self.config).min(self.settings.max_payload)
    }

    fn limits(&self) -> Limits {
        Limits {
            requester: self.id,
            request: self.pcie.max_read_request(&self.config).min(self.settings.read_request),
            in_flight: self.settings.reads_in_flight,
            tags: self.pcie.tags(&self.config),
        }
    }

    fn msix_masked(&self) -> bool {
        self.msix_control() & 1 << 14 != 0
    }

    /// Sends pending vectors that are no longer masked.
    fn flush_pending(&mut self) {
        if !self.msix_enabled() || self.msix_masked() || !self.msix.any_pending() {
            return;
        }
        for vector in 0..self.msix.vectors() {
            if self.msix.is_pending(vector) {
                self.interrupt(vector);
            }
        }
    }

    fn update_intx(&mut self) {
        let status = self.config.u16(register::STATUS);
        let pending = self.intx && !self.msix_enabled();
        self.config
            .set_u16(register::STATUS, if pending { status | 1 << 3 } else { status & !(1 << 3) });
        let disabled = self.config.u16(register::COMMAND) & command::INTX_DISABLE != 0;
        let assert = pending && !disabled;
        if assert == self.intx_asserted {
            return;
        }
        self.intx_asserted = assert;
        let code = if assert { message_code::ASSERT_INTA } else { message_code::DEASSERT_INTA };
        self.out.push(Tlp::intx(self.id, code));
    }

    fn reset(&mut self, reset: Reset) {
        let fresh = Self::new(self.settings.clone());
        let old = std::mem::replace(self, fresh);
        (self.id, self.errors, self.epoch) = (old.id, old.errors, old.epoch + 1);
        self.written = old.written;
        self.engine = old.engine;
        self.engine.reset();
        self.reporting.reset(&self.errors);
        if let (Some(before), Some(contents)) = (old.contents, self.contents) {
            contents.set_owner(&mut self.config, before.owner(&old.config));
        }
        if let Some(label) = &old.label {
            label.add(&mut self.config);
        }
        self.label = old.label;
        self.events.push_back(Event::Reset(reset));
    }
}
