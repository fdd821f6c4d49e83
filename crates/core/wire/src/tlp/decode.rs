//! Decoding of TLPs from untrusted bytes.

use super::encode::ecrc;
use super::{
    Attributes, Completion, ConfigKind, ConfigRequest, Mark, MemoryRequest, Message, Packet,
    Routing, Status, Tlp,
};
use crate::id::{Bdf, Tag};
use bytes::{Buf, Bytes};
use thiserror::Error;

/// Why bytes are not a valid TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Fewer bytes than the header announces.
    #[error("{have} bytes where the header announces {need}")]
    Short {
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// A Fmt and Type that farlane does not carry (prefixes, I/O, locked,
    /// atomics) or that is reserved.
    #[error("Fmt/Type {0:#04x} is reserved or not supported")]
    FmtType(u8),
    /// A configuration request with another length than one double word.
    #[error("configuration request of {0} DW")]
    ConfigLength(u16),
    /// Byte enables that the specification forbids for this length.
    #[error("byte enables first {first:#x} last {last:#x} with {length_dw} DW")]
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
    #[error("4 DW header for the address {0:#x}")]
    WideLowAddress(u64),
    /// A traffic class other than 0 where only 0 may stand.
    #[error("traffic class {0} on a configuration request")]
    TrafficClass(u8),
    /// A field that must be zero is not: AT, TH, LN or the processing hint.
    #[error("reserved or unsupported header bits are set")]
    Reserved,
    /// The ECRC is wrong.
    #[error("ECRC mismatch")]
    Digest,
}

/// Length on the wire of the packet that begins with `head`, header, payload
/// and digest; `None` if fewer than 4 bytes are there.
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
    /// Takes one packet off the front of `bytes`; the payload shares their
    /// memory. On an error `bytes` is left as it was.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &mut Bytes) -> Result<Self, Malformed> {
        let have = bytes.len();
        let need = total_length(bytes).ok_or(Malformed::Short { need: 4, have })?;
        if have < need {
            return Err(Malformed::Short { need, have });
        }
        let mut packet = bytes.slice(..need);
        if packet[2] & 0x80 != 0 && ecrc(&packet[..need - 4], &[]) != packet[need - 4..] {
            return Err(Malformed::Digest);
        }
        let head = [packet[0], packet[1], packet[2], packet[3]];
        let tlp = Self::decode_parts(head, &mut packet)?;
        bytes.advance(need);
        Ok(tlp)
    }

    fn decode_parts(head: [u8; 4], packet: &mut Bytes) -> Result<Self, Malformed> {
        // LN, TH and AT: no lightweight notification, hints or ATS here.
        if head[1] & 0x03 != 0 || head[2] & 0x0c != 0 {
            return Err(Malformed::Reserved);
        }
        let (fmt, kind) = (head[0] >> 5, head[0] & 0x1f);
        let tag_high = u16::from(head[1] >> 7) << 9 | u16::from(head[1] >> 3 & 1) << 8;
        let tc = head[1] >> 4 & 7;
        let attributes = (head[1] >> 2 & 1) << 2 | head[2] >> 4 & 3;
        let digest = head[2] & 0x80 != 0;
        packet.advance(4);
        let fields = Fields { fmt, tag_high, length_dw: length_dw(head), tc };
        let decoded = match (fmt, kind) {
            (0..=3, 0b00000) => fields.memory(packet)?,
            (0 | 2, 0b00100) => fields.config(ConfigKind::Type0, packet)?,
            (0 | 2, 0b00101) => fields.config(ConfigKind::Type1, packet)?,
            (0 | 2, 0b01010) => fields.completion(packet),
            (1 | 3, 0b10000..=0b10111) => fields.message(kind, packet),
            _ => return Err(Malformed::FmtType(head[0])),
        };
        if digest {
            packet.truncate(packet.len() - 4);
        }
        Ok(Self {
            tc,
            attributes: Attributes::from_bits(attributes),
            poisoned: head[2] & 0x40 != 0,
            digest,
            packet: decoded,
            data: packet.split_off(0),
            run: None,
            mark: Mark::NONE,
        })
    }
}

struct Fields {
    fmt: u8,
    tag_high: u16,
    length_dw: u16,
    tc: u8,
}

impl Fields {
    fn tag(&self, low: u8) -> Tag {
        Tag::truncate(self.tag_high | u16::from(low))
    }

    fn memory(&self, packet: &mut Bytes) -> Result<Packet, Malformed> {
        let requester = Bdf::from_bits(packet.get_u16());
        let tag = self.tag(packet.get_u8());
        let enables = packet.get_u8();
        let (first_be, last_be, length_dw) = (enables & 0xf, enables >> 4, self.length_dw);
        let wide = self.fmt & 1 != 0;
        let address = if wide { packet.get_u64() } else { u64::from(packet.get_u32()) };
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

    fn config(&self, kind: ConfigKind, packet: &mut Bytes) -> Result<Packet, Malformed> {
        if self.length_dw != 1 {
            return Err(Malformed::ConfigLength(self.length_dw));
        }
        if self.tc != 0 {
            return Err(Malformed::TrafficClass(self.tc));
        }
        let requester = Bdf::from_bits(packet.get_u16());
        let tag = self.tag(packet.get_u8());
        let enables = packet.get_u8();
        let target = Bdf::from_bits(packet.get_u16());
        let register = packet.get_u16();
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

    fn completion(&self, packet: &mut Bytes) -> Packet {
        let completer = Bdf::from_bits(packet.get_u16());
        let word = packet.get_u16();
        let requester = Bdf::from_bits(packet.get_u16());
        let tag = self.tag(packet.get_u8());
        let lower_address = packet.get_u8() & 0x7f;
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

    fn message(&self, kind: u8, packet: &mut Bytes) -> Packet {
        let requester = Bdf::from_bits(packet.get_u16());
        let tag = self.tag(packet.get_u8());
        let code = packet.get_u8();
        let mut body = [0; 8];
        packet.copy_to_slice(&mut body);
        Packet::Message(Message { requester, tag, routing: Routing::from_bits(kind), code, body })
    }
}
