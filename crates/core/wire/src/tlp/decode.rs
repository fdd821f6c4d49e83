//! Decoding of TLPs from untrusted bytes.

use super::encode::ecrc;
use super::{
    Attributes, Completion, ConfigKind, ConfigRequest, MemoryRequest, Message, Packet, Routing,
    Status, Tlp, TraceId,
};
use crate::id::{Bdf, Tag};
use bytes::{Buf, Bytes};
use thiserror::Error;

/// Why bytes are not a valid TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Fewer bytes than the header announces.
    #[error("truncated TLP: {have} bytes, but its header gives {need}")]
    Short {
        /// Number of bytes needed.
        need: usize,
        /// Number of bytes available.
        have: usize,
    },
    /// A Fmt and Type that farlane does not support (prefixes, I/O, locked, atomics), or a reserved
    /// one.
    #[error("Fmt/Type {0:#04x} is reserved or not supported")]
    FmtType(u8),
    /// A configuration request with another length than one double word.
    #[error("configuration request of {0} DW instead of 1")]
    ConfigLength(u16),
    /// Byte enables that the specification forbids for this length.
    #[error("invalid byte enables for {length_dw} DW: first {first:#x}, last {last:#x}")]
    ByteEnables {
        /// First DW BE.
        first: u8,
        /// Last DW BE.
        last: u8,
        /// Length in double words.
        length_dw: u16,
    },
    /// A memory request that crosses a 4 KiB boundary.
    #[error("request of {length_dw} DW at {address:#x} crosses 4 KiB")]
    Crosses4K {
        /// Address of the first double word.
        address: u64,
        /// Length in double words.
        length_dw: u16,
    },
    /// A 4 DW header for an address below 4 GiB.
    #[error("4 DW header for address {0:#x} below 4 GiB")]
    WideLowAddress(u64),
    /// A traffic class other than 0 where only 0 is allowed.
    #[error("traffic class {0} on a configuration request instead of 0")]
    TrafficClass(u8),
    /// A field that must be zero is not: AT, TH, LN or the processing hint.
    #[error("reserved or unsupported header bits are set")]
    Reserved,
    /// The ECRC is wrong.
    #[error("ECRC mismatch")]
    Digest,
}

/// Length on the wire of the packet with the header `head`: header, payload and digest; `None` with
/// fewer than 4 bytes.
pub fn total_length(head: &[u8]) -> Option<usize> {
    let head: [u8; 4] = head.get(..4)?.try_into().ok()?;
    let fmt = head[0] >> 5;
    let payload = if fmt & 0b010 != 0 { usize::from(length_dw(head)) * 4 } else { 0 };
    let digest = if head[2] & 0x80 != 0 { 4 } else { 0 };
    Some((if fmt & 1 != 0 { 16 } else { 12 }) + payload + digest)
}

fn length_dw(head: [u8; 4]) -> u16 {
    match u16::from_be_bytes([head[2], head[3]]) & 0x3ff {
        0 => 1024,
        n => n,
    }
}

impl Tlp {
    /// Takes one packet off the front of `bytes`; the payload shares their memory. On an error
    /// `bytes` does not change.
    ///
    /// # Errors
    /// [`Malformed`] names the fault.
    pub fn decode(bytes: &mut Bytes) -> Result<Self, Malformed> {
        let have = bytes.len();
        let need = total_length(bytes).ok_or(Malformed::Short { need: 4, have })?;
        if have < need {
            return Err(Malformed::Short { need, have });
        }
        let digest = bytes[2] & 0x80 != 0;
        if digest && ecrc(&bytes[..need - 4], &[]) != bytes[need - 4..need] {
            return Err(Malformed::Digest);
        }
        let header = if bytes[0] & 0b001 << 5 != 0 { 16 } else { 12 };
        let mut head = [0; 16];
        match bytes.first_chunk() {
            Some(chunk) => head = *chunk,
            None => head[..12].copy_from_slice(&bytes[..12]),
        }
        let mut tlp = Self::decode_header(&head)?;
        if header + if digest { 4 } else { 0 } == need {
            bytes.advance(need);
        } else {
            tlp.data = bytes.split_to(need);
            tlp.data.advance(header);
            tlp.data.truncate(tlp.data.len() - if digest { 4 } else { 0 });
        }
        Ok(tlp)
    }

    /// Decodes a packet without its payload.
    fn decode_header(head: &[u8; 16]) -> Result<Self, Malformed> {
        // LN, TH and AT: farlane supports no lightweight notification, processing hints or ATS.
        if head[1] & 0x03 != 0 || head[2] & 0x0c != 0 {
            return Err(Malformed::Reserved);
        }
        let (fmt, kind) = (head[0] >> 5, head[0] & 0x1f);
        let tag_high = u16::from(head[1] >> 7) << 9 | u16::from(head[1] >> 3 & 1) << 8;
        let tc = head[1] >> 4 & 7;
        let attributes = (head[1] >> 2 & 1) << 2 | head[2] >> 4 & 3;
        let length_dw = length_dw([head[0], head[1], head[2], head[3]]);
        let fields = Fields { head, fmt, tag_high, length_dw, tc };
        let decoded = match (fmt, kind) {
            (0..=3, 0b00000) => fields.memory()?,
            (0 | 2, 0b00100) => fields.config(ConfigKind::Type0)?,
            (0 | 2, 0b00101) => fields.config(ConfigKind::Type1)?,
            (0 | 2, 0b01010) => fields.completion(),
            (1 | 3, 0b10000..=0b10111) => fields.message(kind),
            _ => return Err(Malformed::FmtType(head[0])),
        };
        Ok(Self {
            tc,
            attributes: Attributes::from_bits(attributes),
            poisoned: head[2] & 0x40 != 0,
            digest: head[2] & 0x80 != 0,
            packet: decoded,
            data: Bytes::new(),
            run: None,
            trace_id: TraceId::NONE,
        })
    }
}

struct Fields<'a> {
    head: &'a [u8; 16],
    fmt: u8,
    tag_high: u16,
    length_dw: u16,
    tc: u8,
}

impl Fields<'_> {
    fn tag(&self, at: usize) -> Tag {
        Tag::truncate(self.tag_high | u16::from(self.head[at]))
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.head[at], self.head[at + 1]])
    }

    fn id(&self, at: usize) -> Bdf {
        Bdf::from_bits(self.half(at))
    }

    /// Bytes 8 to 15 of the header.
    fn last_half(&self) -> [u8; 8] {
        self.head[8..].try_into().expect("16 bytes")
    }

    fn memory(&self) -> Result<Packet, Malformed> {
        let (requester, tag, enables) = (self.id(4), self.tag(6), self.head[7]);
        let (first_be, last_be, length_dw) = (enables & 0xf, enables >> 4, self.length_dw);
        let wide = self.fmt & 1 != 0;
        let address = u64::from_be_bytes(self.last_half()) >> if wide { 0 } else { 32 };
        if address & 3 != 0 {
            return Err(Malformed::Reserved);
        }
        if wide && address >> 32 == 0 {
            return Err(Malformed::WideLowAddress(address));
        }
        // Section 2.2.5: one DW has no last enables, more have both.
        let legal = if length_dw == 1 { last_be == 0 } else { first_be != 0 && last_be != 0 };
        if !legal {
            return Err(Malformed::ByteEnables { first: first_be, last: last_be, length_dw });
        }
        if (address & 0xfff) + u64::from(length_dw) * 4 > 4096 {
            return Err(Malformed::Crosses4K { address, length_dw });
        }
        let request = MemoryRequest { requester, tag, address, length_dw, first_be, last_be };
        Ok(if self.fmt & 2 != 0 {
            Packet::MemoryWrite(request)
        } else {
            Packet::MemoryRead(request)
        })
    }

    fn config(&self, kind: ConfigKind) -> Result<Packet, Malformed> {
        if self.length_dw != 1 {
            return Err(Malformed::ConfigLength(self.length_dw));
        }
        if self.tc != 0 {
            return Err(Malformed::TrafficClass(self.tc));
        }
        let (requester, tag, enables) = (self.id(4), self.tag(6), self.head[7]);
        let (target, register) = (self.id(8), self.half(10));
        let (first, last) = (enables & 0xf, enables >> 4);
        if last != 0 {
            return Err(Malformed::ByteEnables { first, last, length_dw: 1 });
        }
        if register & !0xffc != 0 {
            return Err(Malformed::Reserved);
        }
        let request = ConfigRequest { kind, requester, tag, target, register, first_be: first };
        Ok(if self.fmt & 2 != 0 {
            Packet::ConfigWrite(request)
        } else {
            Packet::ConfigRead(request)
        })
    }

    fn completion(&self) -> Packet {
        let (completer, word) = (self.id(4), self.half(6));
        let (requester, tag, lower_address) = (self.id(8), self.tag(10), self.head[11] & 0x7f);
        Packet::Completion(Completion {
            completer,
            requester,
            tag,
            status: Status::from_bits((word >> 13) as u8),
            byte_count: if word & 0xfff == 0 { 4096 } else { word & 0xfff },
            lower_address,
            byte_count_modified: word & 0x1000 != 0,
        })
    }

    fn message(&self, kind: u8) -> Packet {
        Packet::Message(Message {
            requester: self.id(4),
            tag: self.tag(6),
            routing: Routing::from_bits(kind),
            code: self.head[7],
            body: self.last_half(),
        })
    }
}
