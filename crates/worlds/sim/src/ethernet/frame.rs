//! Ethernet frames and their transmission times.

use std::fmt;

use bytes::Bytes;
use tsn::frer::rtag;
use wire::{Duration, Instant};

use super::traffic::StreamId;
use super::{FrameLatency, Rate};

/// Preamble and start frame delimiter, bytes (IEEE 802.3-2022, 3.1.1).
pub const PREAMBLE: usize = 8;
/// Destination, source and EtherType, bytes (3.1.1).
pub const HEADER: usize = 14;
/// An 802.1Q tag, bytes (IEEE 802.1Q-2022, 9.3).
pub const TAG: usize = 4;
/// Frame check sequence, bytes (IEEE 802.3-2022, 3.1.1).
pub const FCS: usize = 4;
/// Gap between two frames, bytes (interPacketGap of 96 bits, 4.4.2).
pub const GAP: usize = 12;
/// The shortest frame, header to FCS, bytes (minFrameSize of 512 bits, 4.4.2).
pub const MINIMUM: usize = 64;
/// The largest payload of a basic frame, bytes (maxBasicDataSize, 4.2.7.1).
pub const MTU: usize = 1500;

/// The EtherType of an 802.1Q tag: the TPID of a customer VLAN (IEEE
/// 802.1Q-2022, table 9-1).
const TPID: u16 = 0x8100;

/// A MAC address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// A locally administered unicast address with `number` in its last four
    /// bytes.
    pub const fn local(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([0x02, 0, a, b, c, d])
    }

    /// The address of all stations (IEEE 802.3-2022, 3.2.3).
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// A locally administered group address for a stream.
    pub const fn group(stream: StreamId) -> Self {
        let [high, low] = stream.station.to_be_bytes();
        Self([0x03, 0, 0, high, low, stream.number])
    }

    /// Whether the address is a group address (IEEE 802-2014, 8.2.2: the I/G bit).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// An 802.1Q tag with a drop-eligible bit of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Priority code point, 0 to 7.
    pub pcp: u8,
    /// VLAN identifier, 0 (priority tag) to 4094.
    pub vid: u16,
}

impl Tag {
    /// Tag control information (IEEE 802.1Q-2022, 9.6).
    pub const fn control(self) -> u16 {
        (self.pcp as u16) << 13 | self.vid
    }

    /// The tag with this control information. The drop-eligible bit is ignored.
    pub const fn of_control(control: u16) -> Self {
        Self { pcp: (control >> 13) as u8, vid: control & 0xfff }
    }
}

/// Packets between the MACs at both ends of a line (IEEE 802.3-2022, 99.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A request, which a MAC that supports fragments answers.
    Verify,
    /// The answer to [`Self::Verify`].
    Respond,
}

/// A frame: its bytes, and data of the simulator about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// A unique number of the frame, the same on every hop.
    pub id: u64,
    /// The bytes from the destination address to the end of the payload, without tags, padding and
    /// FCS.
    pub bytes: Bytes,
    /// The 802.1Q tag, separate from `bytes`, so that no hop copies the bytes.
    pub tag: Option<Tag>,
    /// The sequence number of the R-TAG (IEEE 802.1CB-2017, 7.8), also separate from `bytes`.
    pub sequence: Option<u16>,
    /// The sender's priority, 0 to 7 (Linux: `SO_PRIORITY`); the network
    /// interface derives the tag from it.
    pub priority: u8,
    /// The packet between two MACs, if this is not a frame.
    pub control: Option<Control>,
    /// Bytes that MACsec adds to the frame on the present line.
    pub security: u8,
    /// Whether the FCS does not match, because bits were flipped.
    pub corrupt: bool,
    /// The latency of the frame by stage.
    pub latency: FrameLatency,
}

impl Frame {
    /// A frame created at `now`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`HEADER`].
    pub fn new(id: u64, bytes: Bytes, priority: u8, now: Instant) -> Self {
        assert!(bytes.len() >= HEADER, "a frame of {} bytes", bytes.len());
        let latency = FrameLatency::new(now);
        let (tag, sequence) = (None, None);
        Self {
            id,
            bytes,
            tag,
            sequence,
            priority,
            control: None,
            security: 0,
            corrupt: false,
            latency,
        }
    }

    /// A packet that one MAC sends to the other at `now`.
    pub fn control(control: Control, now: Instant) -> Self {
        let bytes = Bytes::from_static(&[0; MINIMUM - FCS]);
        Self { control: Some(control), ..Self::new(0, bytes, 0, now) }
    }

    /// The destination address.
    pub fn destination(&self) -> Mac {
        Mac(self.bytes[..6].try_into().expect("six bytes"))
    }

    /// The source address.
    pub fn source(&self) -> Mac {
        Mac(self.bytes[6..12].try_into().expect("six bytes"))
    }

    /// Bytes from header to FCS, with tags, padding and MACsec.
    pub fn length(&self) -> usize {
        let redundancy = if self.sequence.is_some() { rtag::LENGTH } else { 0 };
        length(self.bytes.len() + redundancy + usize::from(self.security), self.tag.is_some())
    }

    /// Bytes from preamble to FCS, without the gap.
    pub fn line_length(&self) -> usize {
        PREAMBLE + self.length()
    }

    /// How long the frame occupies the line, from the first bit of the preamble to the last bit of
    /// the FCS.
    pub fn duration(&self, rate: Rate) -> Duration {
        rate.duration(self.line_length())
    }

    /// Appends the frame in capture format: with tags and padding, without FCS.
    pub fn capture(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes[..12]);
        if let Some(tag) = self.tag {
            out.extend_from_slice(&TPID.to_be_bytes());
            out.extend_from_slice(&tag.control().to_be_bytes());
        }
        if let Some(sequence) = self.sequence {
            out.extend_from_slice(&rtag::encode(sequence));
        }
        out.extend_from_slice(&self.bytes[12..]);
        out.resize(out.len().max(start + MINIMUM - FCS), 0);
    }
}

/// Bytes from header to FCS of a frame with `untagged` bytes without tag and FCS.
pub fn length(untagged: usize, tagged: bool) -> usize {
    (untagged + if tagged { TAG } else { 0 } + FCS).max(MINIMUM)
}

/// The transmission of a frame on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The frame.
    pub frame: Frame,
    /// When the first bit of the preamble passes.
    pub start: Instant,
    /// When the last bit of the FCS has passed, unless the frame is interrupted.
    pub end: Instant,
    /// The line rate.
    pub rate: Rate,
    /// Whether express frames may interrupt the frame.
    pub preemptable: bool,
    /// The traffic class of the frame at the sending port.
    pub class: usize,
}
