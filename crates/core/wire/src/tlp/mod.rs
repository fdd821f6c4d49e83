//! Transaction-layer packets (PCIe Base 4.0, chapter 2).
//!
//! [`Tlp`] is a validated value. [`Tlp::decode`] and [`Tlp::encode`] convert it from and to the
//! bytes of the specification: big-endian double words. Framing, sequence number and LCRC are
//! absent: they belong to the data link layer, which the tunnel replaces.

mod decode;
mod encode;
mod fields;
mod run;
#[cfg(test)]
mod tests;

pub use decode::{Malformed, total_length};
pub use fields::{
    Attributes, Class, Completion, ConfigKind, ConfigRequest, MemoryRequest, Message, Routing,
    Status, message_code,
};

pub use run::Run;

use crate::id::{Bdf, Tag};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// The largest payload of one TLP in bytes (PCIe Base 4.0, section 2.2.2).
pub const MAX_PAYLOAD: usize = 4096;

/// The longest TLP in bytes: 4 DW header, payload, ECRC.
pub const MAX_TLP: usize = 16 + MAX_PAYLOAD + 4;

/// One transaction-layer packet.
#[derive(Clone)]
pub struct Tlp {
    /// Traffic class, 0 to 7.
    pub tc: u8,
    /// Ordering and snoop attributes.
    pub attributes: Attributes,
    /// The EP bit: the payload is known to be bad.
    pub poisoned: bool,
    /// The TD bit: an ECRC follows the payload on the wire.
    pub digest: bool,
    /// The type-specific part of the header.
    pub packet: Packet,
    /// Payload, always whole double words; empty for packets without data. For a run, the payloads
    /// of all packets and the bytes between them.
    pub data: Bytes,
    /// Set if this value stands for several packets; only for receivers that accept runs.
    pub run: Option<Run>,
    /// The trace ID, which stays with the packet in every queue. Not compared and not encoded.
    pub trace_id: TraceId,
}

/// A trace ID: a number by which an observer tracks a packet. It has no other effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceId(u64);

impl TraceId {
    /// No trace ID.
    pub const NONE: Self = Self(0);

    /// The trace ID with these bits; 0 is none.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits of the trace ID.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// The type-specific part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// MRd: `length_dw` of the request is the requested length.
    MemoryRead(MemoryRequest),
    /// MWr: the payload has `length_dw` double words.
    MemoryWrite(MemoryRequest),
    /// CfgRd0 or CfgRd1.
    ConfigRead(ConfigRequest),
    /// CfgWr0 or CfgWr1, one double word of payload.
    ConfigWrite(ConfigRequest),
    /// Cpl, or CplD if there is payload.
    Completion(Completion),
    /// Msg, or MsgD if there is payload.
    Message(Message),
}

impl Tlp {
    /// A packet of traffic class 0 without attributes, poison or digest.
    pub fn new(packet: Packet, data: Bytes) -> Self {
        Self {
            tc: 0,
            attributes: Attributes::default(),
            poisoned: false,
            digest: false,
            packet,
            data,
            run: None,
            trace_id: TraceId::NONE,
        }
    }

    /// All fields except the trace ID, for comparisons.
    fn value(&self) -> (u8, Attributes, bool, bool, Packet, &Bytes, Option<Run>) {
        let Self { tc, attributes, poisoned, digest, packet, data, run, trace_id: _ } = self;
        (*tc, *attributes, *poisoned, *digest, *packet, data, *run)
    }

    /// A memory read.
    pub fn memory_read(request: MemoryRequest) -> Self {
        Self::new(Packet::MemoryRead(request), Bytes::new())
    }

    /// A memory write of whole double words.
    pub fn memory_write(request: MemoryRequest, data: Bytes) -> Self {
        Self::new(Packet::MemoryWrite(request), data)
    }

    /// A read of `length` bytes from the byte `address` on; `None` as
    /// [`MemoryRequest::for_bytes`].
    pub fn read_bytes(requester: Bdf, tag: Tag, address: u64, length: usize) -> Option<Self> {
        MemoryRequest::for_bytes(requester, tag, address, length).map(Self::memory_read)
    }

    /// A write of `bytes` from the byte `address` on; `None` as [`MemoryRequest::for_bytes`].
    pub fn write_bytes(requester: Bdf, address: u64, bytes: &Bytes) -> Option<Self> {
        let request = MemoryRequest::for_bytes(requester, Tag::default(), address, bytes.len())?;
        Some(Self::memory_write(request, whole_double_words(address, bytes.clone())))
    }

    /// A completion without data.
    pub fn completion(completion: Completion) -> Self {
        Self::new(Packet::Completion(completion), Bytes::new())
    }

    /// An interrupt message of INTx: ends at the receiver of the link (section 2.2.8.1).
    pub fn intx(requester: Bdf, code: u8) -> Self {
        let (tag, routing, body) = (Tag::default(), Routing::Local, [0; 8]);
        let message = Message { requester, tag, routing, code, body };
        Self::new(Packet::Message(message), Bytes::new())
    }

    /// The flow-control and ordering class.
    pub fn class(&self) -> Class {
        match self.packet {
            Packet::MemoryWrite(_) | Packet::Message(_) => Class::Posted,
            Packet::MemoryRead(_) | Packet::ConfigRead(_) | Packet::ConfigWrite(_) => {
                Class::NonPosted
            }
            Packet::Completion(_) => Class::Completion,
        }
    }

    /// Header length on the wire in bytes: 12 or 16.
    pub fn header_length(&self) -> usize {
        match self.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) if r.address >> 32 != 0 => 16,
            Packet::Message(_) => 16,
            _ => 12,
        }
    }

    /// Length on the wire in bytes: header, payload and digest, of the first packet.
    pub fn wire_length(&self) -> usize {
        self.header_length() + self.first_payload() + if self.digest { 4 } else { 0 }
    }

    /// Flow-control credits for the payload of the first packet.
    pub fn data_credits(&self) -> u32 {
        data_credits(self.first_payload())
    }

    /// The packet's short name with the size of the address, as in protocol analysers: `MRd32`,
    /// `MWr64`, `CfgRd0`, `CplD`, ….
    pub fn mnemonic(&self) -> &'static str {
        let wide = self.header_length() == 16;
        let empty = self.data.is_empty();
        let type1 = |config: ConfigRequest| config.kind == ConfigKind::Type1;
        match self.packet {
            Packet::MemoryRead(_) => ["MRd32", "MRd64"][usize::from(wide)],
            Packet::MemoryWrite(_) => ["MWr32", "MWr64"][usize::from(wide)],
            Packet::ConfigRead(c) => ["CfgRd0", "CfgRd1"][usize::from(type1(c))],
            Packet::ConfigWrite(c) => ["CfgWr0", "CfgWr1"][usize::from(type1(c))],
            Packet::Completion(_) => ["CplD", "Cpl"][usize::from(empty)],
            Packet::Message(_) => ["MsgD", "Msg"][usize::from(empty)],
        }
    }
}

/// Flow-control data credits for `payload` bytes: one per 16 bytes, rounded up (PCIe Base 4.0,
/// section 2.6.1).
pub fn data_credits(payload: usize) -> u32 {
    payload.div_ceil(16) as u32
}

/// The payload of a write of `bytes` to the byte `address`: zeroes pad both ends to double words.
pub fn whole_double_words(address: u64, bytes: Bytes) -> Bytes {
    let lead = address as usize & 3;
    if lead == 0 && bytes.len().is_multiple_of(4) {
        return bytes;
    }
    let mut payload = BytesMut::zeroed((lead + bytes.len()).next_multiple_of(4));
    payload[lead..lead + bytes.len()].copy_from_slice(&bytes);
    payload.freeze()
}

impl PartialEq for Tlp {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Tlp {}

impl fmt::Debug for Tlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tc, attributes, poisoned, digest, packet, data, run) = self.value();
        f.debug_struct("Tlp")
            .field("tc", &tc)
            .field("attributes", &attributes)
            .field("poisoned", &poisoned)
            .field("digest", &digest)
            .field("packet", &packet)
            .field("data", data)
            .field("run", &run)
            .finish()
    }
}
