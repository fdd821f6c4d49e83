//! One TCP segment in an IPv4 packet in an Ethernet frame.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpAddress, IpProtocol,
    Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};
use std::net::SocketAddrV4;

/// The TCP payload of a standard Ethernet frame: 1500 bytes less 20 bytes of IPv4 header and 20
/// bytes of TCP header.
pub(super) const MSS: usize = 1460;
/// Window scale of both ends (RFC 7323, section 2.2).
const SCALE: u8 = 7;

/// The fields of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    /// Locally administered Ethernet addresses, by their last byte.
    pub stations: [u8; 2],
    pub sequence: u32,
    pub acknowledged: Option<u32>,
    pub control: TcpControl,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// The Ethernet frame, without its FCS.
    pub fn encode(&self) -> Vec<u8> {
        let [from, to] = [self.from, self.to].map(|end| *end.ip());
        // MSS and window scale are options of the first segment of each side.
        let first = self.control == TcpControl::Syn;
        let tcp = TcpRepr {
            src_port: self.from.port(),
            dst_port: self.to.port(),
            control: self.control,
            seq_number: TcpSeqNumber(self.sequence as i32),
            ack_number: self.acknowledged.map(|number| TcpSeqNumber(number as i32)),
            window_len: u16::MAX,
            window_scale: first.then_some(SCALE),
            max_seg_size: first.then_some(MSS as u16),
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: self.payload,
        };
        let (src_addr, dst_addr, hop_limit) = (from, to, 64);
        let (next_header, payload_len) = (IpProtocol::Tcp, tcp.buffer_len());
        let ip = Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit };
        let [src_addr, dst_addr] =
            self.stations.map(|station| EthernetAddress([0x02, 0, 0, 0, 0, station]));
        let ethertype = EthernetProtocol::Ipv4;
        let ethernet = EthernetRepr { src_addr, dst_addr, ethertype };
        let sums = ChecksumCapabilities::default();
        let mut out = vec![0; ethernet.buffer_len() + ip.buffer_len() + payload_len];
        let mut frame = EthernetFrame::new_unchecked(&mut out[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
        ip.emit(&mut packet, &sums);
        let mut segment = TcpPacket::new_unchecked(packet.payload_mut());
        tcp.emit(&mut segment, &IpAddress::Ipv4(from), &IpAddress::Ipv4(to), &sums);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_with_data() {
        let segment = Segment {
            from: "192.0.2.1:50000".parse().unwrap(),
            to: "192.0.2.2:4420".parse().unwrap(),
            stations: [1, 2],
            sequence: 0x0102_0304,
            acknowledged: Some(0x0506_0708),
            control: TcpControl::Psh,
            payload: b"abc",
        };
        let out = segment.encode();
        assert_eq!(out[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(out[14..24], [0x45, 0, 0, 43, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(out[26..34], [192, 0, 2, 1, 192, 0, 2, 2]);
        assert_eq!(
            out[34..50],
            [0xc3, 0x50, 0x11, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0xff, 0xff]
        );
        assert_eq!(out[54..], *b"abc");
        let packet = Ipv4Packet::new_checked(&out[14..]).unwrap();
        assert!(packet.verify_checksum());
        let [from, to] = [segment.from, segment.to].map(|end| IpAddress::Ipv4(*end.ip()));
        assert!(TcpPacket::new_checked(packet.payload()).unwrap().verify_checksum(&from, &to));
    }
}
