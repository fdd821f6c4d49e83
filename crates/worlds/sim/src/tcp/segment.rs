//! The header fields that the host itself needs to find the socket of a frame and to count sent
//! data.

use std::net::Ipv4Addr;

use crate::ethernet::frame::HEADER;

/// Addresses, ports and sequence of a TCP segment in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    /// Payload bytes.
    pub length: usize,
    /// Offset of the TCP header in the frame.
    header: usize,
}

impl Segment {
    /// Parses a frame. `None` if the frame is not TCP over IPv4, or is truncated.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(HEADER..)?;
        // EtherType, version and protocol (RFC 791, 3.1).
        if frame[12..HEADER] != [8, 0] || ip.first()? >> 4 != 4 || *ip.get(9)? != 6 {
            return None;
        }
        let header = usize::from(ip[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = ip.get(header..total)?;
        // Offsets of RFC 9293, 3.1.
        if tcp.len() < 20 {
            return None;
        }
        let data = usize::from(tcp[12] >> 4) * 4;
        Some(Self {
            source: Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(12..16)?).ok()?),
            destination: Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(16..20)?).ok()?),
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            fin: tcp[13] & 1 != 0,
            syn: tcp[13] & 2 != 0,
            rst: tcp[13] & 4 != 0,
            length: tcp.len().checked_sub(data)?,
            header: HEADER + header,
        })
    }

    /// Whether the segment has no data and no SYN, FIN or RST.
    pub(crate) fn is_pure_ack(&self) -> bool {
        !(self.syn || self.fin || self.rst) && self.length == 0
    }

    /// Sets the sequence number of the segment in `frame`, and updates the checksum (RFC 1624,
    /// equation 3).
    pub(crate) fn set_sequence(&mut self, frame: &mut [u8], sequence: u32) {
        let tcp = &mut frame[self.header..];
        let mut sum = u32::from(!u16::from_be_bytes([tcp[16], tcp[17]]));
        for half in [self.sequence >> 16, self.sequence & 0xffff] {
            sum += !half & 0xffff;
        }
        sum += (sequence >> 16) + (sequence & 0xffff);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        self.sequence = sequence;
    }
}
