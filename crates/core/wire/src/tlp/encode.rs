//! Encoding of TLPs.

use super::{ConfigKind, Packet, Tlp};
use bytes::BufMut;

/// Fmt: payload follows.
const WITH_DATA: u8 = 0b010 << 5;
/// Fmt: the header has 4 double words.
const FOUR_DW: u8 = 0b001 << 5;

impl Tlp {
    /// Appends the packet's bytes, including the ECRC if `digest` is set; for a run, the first
    /// packet.
    ///
    /// # Panics
    /// If the payload's length contradicts the header, which is an error of farlane.
    pub fn encode(&self, out: &mut impl BufMut) {
        let header = self.header();
        let header = &header[..self.header_length()];
        let payload = &self.data[..self.first_payload()];
        out.put_slice(header);
        out.put_slice(payload);
        if self.digest {
            out.put_slice(&ecrc(header, payload));
        }
    }

    /// The header: its first [`header_length`](Self::header_length) bytes are sent.
    ///
    /// # Panics
    /// As for [`encode`](Self::encode).
    pub fn header(&self) -> [u8; 16] {
        self.check();
        let words = self
            .words()
            .into_iter()
            .fold(u128::from(self.first_word()), |words, word| words << 32 | u128::from(word));
        words.to_be_bytes()
    }

    /// The second to the fourth double word of the header.
    fn words(&self) -> [u32; 3] {
        let word = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        let bytes = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        match self.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) => {
                let enables = r.last_be << 4 | r.first_be;
                let second = word(r.requester.bits(), bytes(r.tag.get() as u8, enables));
                match r.address >> 32 {
                    0 => [second, r.address as u32, 0],
                    high => [second, high as u32, r.address as u32],
                }
            }
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => {
                let second = word(c.requester.bits(), bytes(c.tag.get() as u8, c.first_be));
                [second, word(c.target.bits(), c.register & 0xffc), 0]
            }
            Packet::Completion(c) => {
                let bcm = u16::from(c.byte_count_modified) << 12;
                let count = u16::from(c.status.bits()) << 13 | bcm | c.byte_count & 0xfff;
                let last = bytes(c.tag.get() as u8, c.lower_address & 0x7f);
                [word(c.completer.bits(), count), word(c.requester.bits(), last), 0]
            }
            Packet::Message(m) => {
                let [a, b, c, d, e, f, g, h] = m.body;
                let second = word(m.requester.bits(), bytes(m.tag.get() as u8, m.code));
                [second, u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
            }
        }
    }

    fn first_word(&self) -> u32 {
        let data = if self.data.is_empty() { 0 } else { WITH_DATA };
        let words = (self.first_payload() / 4) as u16;
        let wide = if self.header_length() == 16 { FOUR_DW } else { 0 };
        let (kind, tag, length_dw) = match self.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) => (0b00000, r.tag, r.length_dw),
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => {
                (if c.kind == ConfigKind::Type0 { 0b00100 } else { 0b00101 }, c.tag, 1)
            }
            Packet::Completion(c) => (0b01010, c.tag, words),
            Packet::Message(m) => (0b10000 | m.routing.bits(), m.tag, words),
        };
        let tag = tag.get();
        let attr = self.attributes.bits();
        let second = ((tag >> 9) as u8) << 7
            | (self.tc & 7) << 4
            | ((tag >> 8) as u8 & 1) << 3
            | (attr >> 2) << 2;
        let rest = u16::from(self.digest) << 15
            | u16::from(self.poisoned) << 14
            | u16::from(attr & 3) << 12
            | length_dw & 0x3ff;
        u32::from(data | wide | kind) << 24 | u32::from(second) << 16 | u32::from(rest)
    }

    fn check(&self) {
        let payload = self.first_payload();
        let want = match self.packet {
            Packet::MemoryWrite(r) => r.length(),
            Packet::ConfigWrite(_) => 4,
            Packet::MemoryRead(_) | Packet::ConfigRead(_) => 0,
            Packet::Completion(_) | Packet::Message(_) => payload & !3,
        };
        assert_eq!(payload, want, "payload against header: {:?}", self.packet);
        assert!(payload <= super::MAX_PAYLOAD, "payload above 4096 bytes");
    }
}

/// End-to-end CRC of a packet without its digest (PCIe Base 4.0, section 2.7.1): CRC-32, polynomial
/// 04C11DB7h, over header and payload with the variant bits (Type bit 0 and EP) taken as 1. The
/// result has the order of bytes on the wire.
pub(super) fn ecrc(packet: &[u8], behind: &[u8]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    let head = [packet[0] | 0x01, packet[1], packet[2] | 0x40];
    crc.update(&head);
    crc.update(&packet[3..]);
    crc.update(behind);
    crc.finalize().to_le_bytes()
}
