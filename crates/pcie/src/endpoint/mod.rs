//! The endpoint core: everything a type 0 function does because it is a PCIe
//! function, so that a device's own code sees register accesses, finished DMA
//! and resets, and never a TLP.

use crate::function::{Input, Output, Ready, Reset};
use bytes::Bytes;
use wire::Instant;

/// What kind of function an [`Endpoint`] shows.
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
    /// Size in bytes of BAR 0, a 64-bit non-prefetchable memory BAR; a power
    /// of two, at least 4096. Its upper half holds the MSI-X table and PBA.
    pub bar0_size: u64,
    /// MSI-X vectors, 1 to 2048.
    pub vectors: u16,
    /// Largest payload supported: 128, 256, … 4096 bytes.
    pub max_payload: usize,
    /// The device's own limit for one read request, below MRRS: some drives
    /// never ask for more than 256 bytes.
    pub read_request: usize,
    /// Read requests the DMA engine keeps in flight, 1 to 1024.
    pub reads_in_flight: usize,
}

/// What the device's own code has to deal with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read of BAR 0 wants [`Endpoint::complete_read`].
    Read {
        /// Byte offset in the BAR.
        offset: u64,
        /// Bytes wanted, 1 to 4096.
        length: usize,
        /// Names the read.
        token: ReadToken,
    },
    /// Bytes written to BAR 0; only those with their byte enables set.
    Write {
        /// Byte offset in the BAR.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// A DMA read has ended.
    ReadDone {
        /// What the device named it.
        id: u64,
        /// All bytes in order, or how it failed.
        result: Result<Bytes, DmaError>,
    },
    /// Everything in flight is forgotten; DMA reads get no `ReadDone`.
    Reset(Reset),
}

/// Names a register read until it is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadToken(());

/// How a DMA read can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaError {
    /// The completer answered Unsupported Request.
    UnsupportedRequest,
    /// The completer answered Completer Abort.
    CompleterAbort,
    /// Nobody answered in time.
    Timeout,
    /// The payload was marked as poisoned.
    Poisoned,
    /// Bus mastering is disabled: nothing was sent.
    BusMasterDisabled,
}

/// The core of a type 0 function; see the module.
#[derive(Debug)]
pub struct Endpoint {}

impl Endpoint {
    /// A function after power-on.
    pub fn new(_config: EndpointConfig) -> Self {
        todo!()
    }

    /// Forward of [`Function::handle`](crate::Function::handle): call it,
    /// then take [`event`](Self::event)s until there is none.
    pub fn handle(&mut self, _now: Instant, _input: Input) {
        todo!()
    }

    /// The next thing for the device's own code.
    pub fn event(&mut self) -> Option<Event> {
        todo!()
    }

    /// Forward of [`Function::poll`](crate::Function::poll). May make new
    /// events (a completion timeout).
    pub fn poll(&mut self, _now: Instant, _ready: Ready) -> Output {
        todo!()
    }

    /// Forward of [`Function::ready`](crate::Function::ready).
    pub fn ready(&self) -> Ready {
        todo!()
    }

    /// Answers a register read with exactly the bytes it asked for.
    pub fn complete_read(&mut self, _token: ReadToken, _data: &[u8]) {
        todo!()
    }

    /// Reads host memory: split by MRRS, the device's own limit and 4 KiB,
    /// ends in one [`Event::ReadDone`].
    pub fn dma_read(&mut self, _id: u64, _address: u64, _length: usize) {
        todo!()
    }

    /// Writes host memory: split by MPS and 4 KiB, posted, in order with
    /// everything else written. Dropped and counted if bus mastering is off.
    pub fn dma_write(&mut self, _address: u64, _data: Bytes) {
        todo!()
    }

    /// Payload bytes of posted writes that wait for the link: a device stops
    /// producing above a bound of its own.
    pub fn posted_backlog(&self) -> usize {
        todo!()
    }

    /// Sends MSI-X vector `vector` behind everything written so far; if it is
    /// masked, its pending bit is set and it is sent when unmasked. Without
    /// MSI-X enabled nothing is sent (use [`set_intx`](Self::set_intx)).
    pub fn interrupt(&mut self, _vector: u16) {
        todo!()
    }

    /// Whether MSI-X is enabled (else the function signals INTA).
    pub fn msix_enabled(&self) -> bool {
        todo!()
    }

    /// The level of INTA while MSI-X is disabled; sends Assert_INTA and
    /// Deassert_INTA on changes.
    pub fn set_intx(&mut self, _level: bool) {
        todo!()
    }
}
