//! One TCP segment in an IPv4 packet in an Ethernet frame.

use bytes::BufMut;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The TCP payload that a standard Ethernet frame holds: 1500 less 20 bytes of
/// IPv4 header and 20 of TCP header.
pub(super) const MSS: usize = 1460;
/// Window scale of both ends (RFC 7323, section 2.2).
const SCALE: u8 = 7;

const ETHERTYPE_IPV4: u16 = 0x0800;
const PROTOCOL_TCP: u8 = 6;

// Flags (RFC 9293, section 3.1).
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// What a segment is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    /// Locally administered Ethernet addresses, by their last byte.
    pub stations: [u8; 2],
    /// Identification of the IPv4 packet.
    pub id: u16,
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// Appends the Ethernet frame, without its FCS.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for station in [self.stations[1], self.stations[0]] {
            out.put_slice(&[0x02, 0, 0, 0, 0, station]);
        }
        out.put_u16(ETHERTYPE_IPV4);
        let mut tcp = Vec::with_capacity(28 + self.payload.len());
        self.encode_tcp(&mut tcp);
        // RFC 791, section 3.1: 20 bytes, don't fragment, TTL 64.
        let start = out.len();
        out.put_slice(&[0x45, 0]);
        out.put_u16((20 + tcp.len()) as u16);
        out.put_u16(self.id);
        out.put_slice(&[0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
        out.put_slice(&self.from.ip().octets());
        out.put_slice(&self.to.ip().octets());
        let sum = checksum([&out[start..]]);
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        out.put_slice(&tcp);
    }

    fn encode_tcp(&self, out: &mut Vec<u8>) {
        // MSS, and window scale after a NOP, in the first segment of each side.
        let mss = (MSS as u16).to_be_bytes();
        let options = [2, 4, mss[0], mss[1], 1, 3, 3, SCALE];
        let options: &[u8] = if self.flags & SYN != 0 { &options } else { &[] };
        out.put_u16(self.from.port());
        out.put_u16(self.to.port());
        out.put_u32(self.sequence);
        out.put_u32(self.acknowledged);
        // Data offset: words of the header.
        out.put_u8((((20 + options.len()) / 4) << 4) as u8);
        out.put_u8(self.flags);
        out.put_u16(u16::MAX);
        // Checksum and urgent pointer.
        out.put_u32(0);
        out.put_slice(options);
        out.put_slice(self.payload);
        let pseudo = pseudo_header(*self.from.ip(), *self.to.ip(), out.len());
        let sum = checksum([&pseudo[..], out]);
        out[16..18].copy_from_slice(&sum.to_be_bytes());
    }
}

/// RFC 9293, section 3.1.
fn pseudo_header(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> Vec<u8> {
    let mut pseudo = [from.octets(), to.octets()].concat();
    pseudo.put_u16(u16::from(PROTOCOL_TCP));
    pseudo.put_u16(length as u16);
    pseudo
}

/// The internet checksum (RFC 1071) of parts that have an even number of
/// bytes but for the last.
fn checksum<const N: usize>(parts: [&[u8]; N]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn checksum_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum([&bytes[..]]), !0xddf2);
        assert_eq!(checksum([&bytes[..2], &bytes[2..]]), !0xddf2);
        assert_eq!(checksum([&[0x12, 0x34, 0x56][..]]), !(0x1234 + 0x5600));
    }

    #[test]
    fn a_segment_with_data() {
        let segment = Segment {
            from: "192.0.2.1:50000".parse().unwrap(),
            to: "192.0.2.2:4420".parse().unwrap(),
            stations: [1, 2],
            id: 7,
            sequence: 0x0102_0304,
            acknowledged: 0x0506_0708,
            flags: PSH | ACK,
            payload: b"abc",
        };
        let mut out = Vec::new();
        segment.encode(&mut out);
        assert_eq!(out[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(out[14..24], [0x45, 0, 0, 43, 0, 7, 0x40, 0, 64, 6]);
        assert_eq!(out[26..34], [192, 0, 2, 1, 192, 0, 2, 2]);
        assert_eq!(
            out[34..50],
            [0xc3, 0x50, 0x11, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0xff, 0xff]
        );
        assert_eq!(out[54..], *b"abc");
        // A sum over everything with its checksum is zero.
        assert_eq!(checksum([&out[14..34]]), 0);
        let pseudo = pseudo_header(*segment.from.ip(), *segment.to.ip(), out.len() - 34);
        assert_eq!(checksum([&pseudo[..], &out[34..]]), 0);
    }
}
