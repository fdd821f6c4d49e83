//! mPackets: the packets of a port with preemption (IEEE 802.3-2022, 99.3).
//!
//! | packet | before the data | data | after the data |
//! | --- | --- | --- | --- |
//! | express frame, or any frame without preemption | 7 x 55, D5 (SMD-E) | the frame | FCS |
//! | preemptable frame, or its first fragment | 7 x 55, SMD-S | its bytes | FCS or mCRC |
//! | continuation | 6 x 55, SMD-C, frag_count | its bytes | mCRC; in the last one the FCS |
//! | verify, respond | 7 x 55, 07 or 19 | 60 zeros | mCRC |
//!
//! SMD-S and SMD-C encode the frame count modulo 4. frag_count counts the continuations of a frame
//! modulo 4, from 0.

use super::{CONTINUATION_PREAMBLE, MCRC};
use thiserror::Error;

/// The frame check sequence, bytes (802.3-2022, 3.2.9).
const FCS: usize = 4;
/// A byte of the preamble (802.3-2022, 3.2.1).
const PREAMBLE: u8 = 0x55;
/// SMD-E, which equals the SFD (802.3-2022, table 99-1, which also has the SMDs below).
const SMD_E: u8 = 0xD5;
/// SMD-S by frame count. frag_count has the same codes (table 99-2).
const SMD_S: [u8; 4] = [0xE6, 0x4C, 0x7F, 0xB3];
/// SMD-C by frame count.
const SMD_C: [u8; 4] = [0x61, 0x52, 0x9E, 0x2A];
/// SMD-V.
const SMD_V: u8 = 0x07;
/// SMD-R.
const SMD_R: u8 = 0x19;
/// The data of verify and respond packets (99.4.3).
const QUESTION: [u8; 60] = [0; 60];

/// The frame check sequence of `bytes`, in the order of the line (802.3-2022, 3.2.9).
pub fn fcs(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// The mCRC after `bytes`, in the order of the line. `bytes` are all bytes of the frame so far,
/// including earlier fragments (802.3-2022, 99.3.6).
///
/// For the mCRC the standard inverts x^15 to x^0 of the remainder, for the FCS all 32 bits.
/// Therefore the mCRC is the FCS with its first two bytes on the line inverted.
pub fn mcrc(bytes: &[u8]) -> [u8; 4] {
    (crc32fast::hash(bytes) ^ 0x0000_FFFF).to_le_bytes()
}

/// The kind of an mPacket; counts are modulo 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An express frame, or any frame of a port without preemption.
    Express,
    /// A preemptable frame, or its first fragment.
    Start {
        /// The frame count, 0 to 3.
        frame: u8,
    },
    /// A later fragment.
    Continuation {
        /// The frame count of its first fragment, 0 to 3.
        frame: u8,
        /// Number of the continuation, 0 to 3.
        fragment: u8,
    },
    /// The request of verification: a neighbour that supports fragments responds.
    Verify,
    /// The answer.
    Respond,
}

/// Why bytes are not an mPacket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The mPacket ends before its CRC.
    #[error("truncated mPacket: it ends before its CRC")]
    Truncated,
    /// The byte after the preamble is not an SMD.
    #[error("byte {0:02X} after the preamble is not an SMD")]
    Smd(u8),
    /// The byte after an SMD-C is not a frag_count.
    #[error("byte {0:02X} after SMD-C is not a fragment count")]
    FragmentCount(u8),
}

/// An mPacket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpacket<'a> {
    /// The kind.
    pub kind: Kind,
    /// Bytes of the frame, without FCS or mCRC.
    pub data: &'a [u8],
    /// FCS or mCRC, in the order of the line.
    pub crc: [u8; 4],
}

impl Mpacket<'static> {
    /// The verify packet.
    pub fn verify() -> Self {
        Self { kind: Kind::Verify, data: &QUESTION, crc: mcrc(&QUESTION) }
    }

    /// The respond packet.
    pub fn respond() -> Self {
        Self { kind: Kind::Respond, ..Self::verify() }
    }
}

impl<'a> Mpacket<'a> {
    /// An express frame; `frame` ends with its FCS.
    ///
    /// # Panics
    /// If `frame` is shorter than an FCS.
    pub fn express(frame: &'a [u8]) -> Self {
        let (data, crc) = frame.split_last_chunk().expect("a frame ends with its FCS");
        Self { kind: Kind::Express, data, crc: *crc }
    }

    /// Appends the packet, from its preamble to its CRC.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (smd, count) = match self.kind {
            Kind::Express => (SMD_E, None),
            Kind::Start { frame } => (code(SMD_S, frame), None),
            Kind::Continuation { frame, fragment } => {
                (code(SMD_C, frame), Some(code(SMD_S, fragment)))
            }
            Kind::Verify => (SMD_V, None),
            Kind::Respond => (SMD_R, None),
        };
        let preamble = CONTINUATION_PREAMBLE - 1 - usize::from(count.is_some());
        out.extend(std::iter::repeat_n(PREAMBLE, preamble));
        out.push(smd);
        out.extend(count);
        out.extend(self.data);
        out.extend(self.crc);
    }

    /// Decodes the mPacket in `bytes`. The preamble may be shorter than 7 bytes. The CRC is not
    /// checked.
    ///
    /// # Errors
    /// An unknown SMD or frag_count, or an mPacket that ends before its CRC.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let start = bytes.iter().position(|&byte| byte != PREAMBLE);
        let bytes = &bytes[start.ok_or(DecodeError::Truncated)?..];
        let (&smd, mut rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
        let kind = if let Some(frame) = number(SMD_C, smd) {
            let (&count, after) = rest.split_first().ok_or(DecodeError::Truncated)?;
            rest = after;
            let fragment = number(SMD_S, count).ok_or(DecodeError::FragmentCount(count))?;
            Kind::Continuation { frame, fragment }
        } else {
            kind_of(smd).ok_or(DecodeError::Smd(smd))?
        };
        let (data, crc) = rest.split_last_chunk::<MCRC>().ok_or(DecodeError::Truncated)?;
        Ok(Self { kind, data, crc: *crc })
    }
}

/// The kind of an SMD other than SMD-C.
fn kind_of(smd: u8) -> Option<Kind> {
    match smd {
        SMD_E => Some(Kind::Express),
        SMD_V => Some(Kind::Verify),
        SMD_R => Some(Kind::Respond),
        _ => number(SMD_S, smd).map(|frame| Kind::Start { frame }),
    }
}

fn code(codes: [u8; 4], count: u8) -> u8 {
    codes[usize::from(count % 4)]
}

fn number(codes: [u8; 4], byte: u8) -> Option<u8> {
    (0..4).find(|&count| codes[usize::from(count)] == byte)
}

/// Cuts a preemptable frame into mPackets. [`super::split`] returns where a frame may be cut.
#[derive(Clone, Debug)]
pub struct Fragmenter<B> {
    /// The frame with its FCS.
    frame: B,
    number: u8,
    sent: usize,
    next: Kind,
}

impl<B: AsRef<[u8]>> Fragmenter<B> {
    /// A fragmenter of `frame`, which ends with its FCS. `number` is the frame count: the number of
    /// earlier preemptable frames of the port, of which only the remainder modulo 4 matters.
    ///
    /// # Panics
    /// If `frame` is no longer than an FCS.
    pub fn new(number: u8, frame: B) -> Self {
        assert!(frame.as_ref().len() > FCS, "a frame has bytes before its FCS");
        let number = number % 4;
        Self { frame, number, sent: 0, next: Kind::Start { frame: number } }
    }

    /// The mPacket with the next `bytes` bytes of the frame, or with all remaining bytes if there
    /// are fewer. FCS and mCRC do not count. `None` after the end of the frame.
    pub fn next(&mut self, bytes: usize) -> Option<Mpacket<'_>> {
        let (frame, fcs) = self.frame.as_ref().split_last_chunk::<FCS>()?;
        let left = &frame[self.sent..];
        if left.is_empty() {
            return None;
        }
        let kind = self.next;
        let fragment = match kind {
            Kind::Continuation { fragment, .. } => (fragment + 1) % 4,
            _ => 0,
        };
        self.next = Kind::Continuation { frame: self.number, fragment };
        let data = &left[..bytes.min(left.len())];
        self.sent += data.len();
        let is_last = self.sent == frame.len();
        let crc = if is_last { *fcs } else { mcrc(&frame[..self.sent]) };
        Some(Mpacket { kind, data, crc })
    }
}
