//! Stream identification of frames (IEEE 802.1CB-2017, clause 6).

use std::net::Ipv4Addr;

use super::super::frame::{Frame, Mac, Tag};
use crate::tcp::Segment;

/// The header fields for identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
    /// The VLAN tag, if there is one.
    pub tag: Option<Tag>,
    /// Source and destination address of an IPv4 packet with TCP, the only IP traffic of the
    /// simulator.
    pub ip: Option<[Ipv4Addr; 2]>,
}

impl Header {
    /// The header fields of a frame.
    pub fn from_frame(frame: &Frame) -> Self {
        let ip = Segment::parse(&frame.bytes).map(|segment| [segment.source, segment.destination]);
        Self { destination: frame.destination(), source: frame.source(), tag: frame.tag, ip }
    }
}

/// How frames of a stream are identified. A VLAN of `None` matches only frames without a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identification {
    /// By destination and VLAN: null stream identification (6.4).
    Null {
        /// Destination address.
        destination: Mac,
        /// VLAN.
        vlan: Option<u16>,
    },
    /// By source and VLAN: source MAC and VLAN stream identification (6.5).
    Source {
        /// Source address.
        source: Mac,
        /// VLAN.
        vlan: Option<u16>,
    },
    /// By both addresses, VLAN and priority: mask-and-match stream identification (IEEE
    /// 802.1CBdb-2021, 6.8).
    Priority {
        /// Destination address.
        destination: Mac,
        /// Source address.
        source: Mac,
        /// VLAN and priority.
        tag: Tag,
    },
    /// By the IPv4 addresses of TCP, destination address and VLAN: IP stream identification (6.7).
    Ip {
        /// Destination address.
        destination: Mac,
        /// VLAN.
        vlan: Option<u16>,
        /// IPv4 source and destination.
        ip: [Ipv4Addr; 2],
    },
}

impl Identification {
    /// Whether a frame belongs to the stream.
    pub fn matches(&self, header: &Header) -> bool {
        let vlan = header.tag.map(|tag| tag.vid);
        match *self {
            Self::Null { destination, vlan: vid } => {
                (destination, vid) == (header.destination, vlan)
            }
            Self::Source { source, vlan: vid } => (source, vid) == (header.source, vlan),
            Self::Priority { destination, source, tag } => {
                (destination, source) == (header.destination, header.source)
                    && header.tag == Some(tag)
            }
            Self::Ip { destination, vlan: vid, ip } => {
                (destination, vid) == (header.destination, vlan) && header.ip == Some(ip)
            }
        }
    }

    /// Whether identification needs bytes behind the Ethernet header.
    pub const fn looks_inside(&self) -> bool {
        matches!(self, Self::Ip { .. })
    }
}
