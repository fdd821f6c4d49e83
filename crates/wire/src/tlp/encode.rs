//! From values to bytes.

use super::{ConfigKind, Packet, Tlp};
use bytes::BufMut;

/// Fmt: payload follows.
const WITH_DATA: u8 = 0b010 << 5;
/// Fmt: the header has 4 double words.
const FOUR_DW: u8 = 0b001 << 5;

impl Tlp {
    /// Appends the packet's bytes, the ECRC included if `digest` is set.
    ///
    /// # Panics
    /// If the payload's length contradicts the header: that is our own bug.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_header(out);
        out.put_slice(&self.data);
        if self.digest {
            let crc = ecrc(&out[start..]);
            out.put_slice(&crc);
        }
    }

    /// Appends the header alone.
    ///
    /// # Panics
    /// As [`encode`](Self::encode).
    pub fn encode_header(&self, out: &mut Vec<u8>) {
        self.check();
        self.encode_common(out);
        match self.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) => {
                out.put_u16(r.requester.bits());
                out.put_u8(r.tag.get() as u8);
                out.put_u8(r.last_be << 4 | r.first_be);
                if r.address >> 32 != 0 {
                    out.put_u64(r.address);
                } else {
                    out.put_u32(r.address as u32);
                }
            }
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => {
                out.put_u16(c.requester.bits());
                out.put_u8(c.tag.get() as u8);
                out.put_u8(c.first_be);
                out.put_u16(c.target.bits());
                out.put_u16(c.register & 0xffc);
            }
            Packet::Completion(c) => {
                out.put_u16(c.completer.bits());
                let bcm = u16::from(c.byte_count_modified) << 12;
                out.put_u16(u16::from(c.status.bits()) << 13 | bcm | c.byte_count & 0xfff);
                out.put_u16(c.requester.bits());
                out.put_u8(c.tag.get() as u8);
                out.put_u8(c.lower_address & 0x7f);
            }
            Packet::Message(m) => {
                out.put_u16(m.requester.bits());
                out.put_u8(m.tag.get() as u8);
                out.put_u8(m.code);
                out.put_slice(&m.body);
            }
        }
    }

    /// The first double word.
    fn encode_common(&self, out: &mut Vec<u8>) {
        let data = if self.data.is_empty() { 0 } else { WITH_DATA };
        let wide = if self.header_length() == 16 { FOUR_DW } else { 0 };
        let (kind, tag, length_dw) = match self.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) => (0b00000, r.tag, r.length_dw),
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => {
                (if c.kind == ConfigKind::Type0 { 0b00100 } else { 0b00101 }, c.tag, 1)
            }
            Packet::Completion(c) => (0b01010, c.tag, (self.data.len() / 4) as u16),
            Packet::Message(m) => (0b10000 | m.routing.bits(), m.tag, (self.data.len() / 4) as u16),
        };
        let tag = tag.get();
        let attr = self.attributes.bits();
        out.put_u8(data | wide | kind);
        out.put_u8(
            ((tag >> 9) as u8) << 7
                | (self.tc & 7) << 4
                | ((tag >> 8) as u8 & 1) << 3
                | (attr >> 2) << 2,
        );
        out.put_u16(
            u16::from(self.digest) << 15
                | u16::from(self.poisoned) << 14
                | u16::from(attr & 3) << 12
                | length_dw & 0x3ff,
        );
    }

    fn check(&self) {
        let want = match self.packet {
            Packet::MemoryWrite(r) => r.length(),
            Packet::ConfigWrite(_) => 4,
            Packet::MemoryRead(_) | Packet::ConfigRead(_) => 0,
            Packet::Completion(_) | Packet::Message(_) => self.data.len() & !3,
        };
        assert_eq!(self.data.len(), want, "payload against header: {:?}", self.packet);
        assert!(self.data.len() <= super::MAX_PAYLOAD, "payload above 4096 bytes");
    }
}

/// End-to-end CRC of a packet without its digest (PCIe Base 4.0, section
/// 2.7.1): CRC-32, polynomial 04C11DB7h, over header and payload with the
/// variant bits (Type bit 0 and EP) taken as 1. The result in wire order.
pub(super) fn ecrc(packet: &[u8]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    let head = [packet[0] | 0x01, packet[1], packet[2] | 0x40];
    crc.update(&head);
    crc.update(&packet[3..]);
    crc.finalize().to_le_bytes()
}
