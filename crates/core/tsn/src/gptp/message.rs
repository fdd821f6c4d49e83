//! The messages of 802.1AS, byte by byte (IEEE 802.1AS-2020, 10.6 and 11.4; IEEE 1588-2019, 13.3).
//!
//! Fields of Announce and Follow_Up about leap seconds and about phase changes of the grandmaster
//! are written as zero and ignored, because no state machine of this crate uses them.

use thiserror::Error;

use super::best_master::{ClockIdentity, PortIdentity, SystemIdentity};

/// The EtherType of PTP (IEEE 802.1AS-2020, 11.3.4).
pub const ETHER_TYPE: u16 = 0x88f7;

/// The destination address of all messages; bridges do not forward it (11.3.4, table 11-3).
pub const ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e];

/// The header of each message, bytes (10.6.2, table 10-7).
const HEADER: usize = 34;
/// A time stamp, bytes (6.4.3.4).
const TIMESTAMP: usize = 10;
/// The Follow_Up information TLV (11.4.4.3, table 11-11): type, length and 28 bytes.
const FOLLOW_UP_TLV: usize = 32;
/// Fixed part of Announce after the header (10.6.3.1, table 10-11).
const ANNOUNCE: usize = 30;
/// Type of the path trace TLV (10.6.3.3.8).
const PATH_TRACE: u16 = 0x0008;
/// The first bytes of the Follow_Up information TLV: type, length, organisation and subtype
/// (11.4.4.3.2 to 11.4.4.3.5).
const ORGANISATION: [u8; 10] = [0x00, 0x03, 0x00, 0x1c, 0x00, 0x80, 0xc2, 0x00, 0x00, 0x01];

/// The most clocks in a path trace; a message with more does not fit a frame (10.3.11.2.1).
const MOST_PATH: usize = 179;

/// The time stamp of local time zero, in seconds. It is above zero, so that negative local times
/// have a time stamp.
const EPOCH_SECONDS: i128 = 1 << 30;
const SECOND: i128 = 1_000_000_000_000;

/// Why a received message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Too few bytes.
    #[error("truncated message: {0} bytes are too short for IEEE 802.1AS")]
    Short(usize),
    /// Another version of PTP, or another profile.
    #[error("the message is not PTP version 2 with majorSdoId 1")]
    Version,
    /// A message type that 802.1AS does not define or that this crate does not use.
    #[error("unknown message type {0:#x}")]
    Kind(u8),
    /// A time stamp outside of the range of local times.
    #[error("a time stamp is out of range")]
    Time,
    /// A mandatory TLV is missing or wrong, or a TLV is longer than the message.
    #[error("a mandatory TLV is missing or wrong, or a TLV is longer than the message")]
    Tlv,
}

/// The body of a message. Times are in picoseconds of the clock that made the time stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// An event message; its Follow_Up has the sending time.
    Sync,
    /// The sending time of a Sync.
    FollowUp {
        /// The time of the grandmaster's clock, without the correction (preciseOriginTimestamp).
        origin: i64,
        /// The rate of the grandmaster relative to the sender: (ratio - 1) * 2^41
        /// (cumulativeScaledRateOffset, 11.4.4.3.6).
        rate: i32,
    },
    /// An event message that requests a delay measurement.
    DelayRequest,
    /// An event message that answers a request.
    DelayResponse {
        /// Reception time of the request.
        received: i64,
        /// The sender of the request.
        requester: PortIdentity,
    },
    /// Sending time of the answer.
    DelayFollowUp {
        /// The sending time.
        sent: i64,
        /// The sender of the request.
        requester: PortIdentity,
    },
    /// The best grandmaster that the sender has selected.
    Announce {
        /// The grandmaster.
        root: SystemIdentity,
        /// Number of links between the sender and the grandmaster.
        steps: u16,
        /// The clocks from the grandmaster to the sender.
        path: Vec<ClockIdentity>,
    },
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// domainNumber.
    pub domain: u8,
    /// correctionField, in 2^-16 ns.
    pub correction: i64,
    /// sourcePortIdentity.
    pub source: PortIdentity,
    /// sequenceId.
    pub sequence: u16,
    /// logMessageInterval.
    pub log_interval: i8,
    /// The body.
    pub body: Body,
}

impl Body {
    /// messageType (10.6.2.2.2, 11.4.2.2), and whether the message is an event message.
    const fn kind(&self) -> (u8, bool) {
        match self {
            Self::Sync => (0x0, true),
            Self::DelayRequest => (0x2, true),
            Self::DelayResponse { .. } => (0x3, true),
            Self::FollowUp { .. } => (0x8, false),
            Self::DelayFollowUp { .. } => (0xa, false),
            Self::Announce { .. } => (0xb, false),
        }
    }
}

impl Message {
    /// Whether transmission and reception of the message get a time stamp.
    pub const fn is_event(&self) -> bool {
        self.body.kind().1
    }

    /// Encodes the message, from the header on.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, _) = self.body.kind();
        let mut out = vec![0x10 | kind, 0x12, 0, 0, self.domain, 0];
        // twoStepFlag in Sync and Pdelay_Resp (10.6.2.2.8), ptpTimescale in all messages.
        let two_step = matches!(self.body, Body::Sync | Body::DelayResponse { .. });
        out.extend([if two_step { 0x02 } else { 0 }, 0x08]);
        out.extend(self.correction.to_be_bytes());
        out.extend([0; 4]);
        self.source.encode(&mut out);
        out.extend(self.sequence.to_be_bytes());
        // controlField (10.6.2.2.13).
        out.extend([match kind {
            0x0 => 0,
            0x8 => 2,
            _ => 5,
        }]);
        out.extend(self.log_interval.to_be_bytes());
        match &self.body {
            Body::Sync => out.extend([0; TIMESTAMP]),
            Body::DelayRequest => out.extend([0; 2 * TIMESTAMP]),
            Body::FollowUp { origin, rate } => {
                timestamp(*origin, &mut out);
                out.extend(ORGANISATION);
                out.extend(rate.to_be_bytes());
                out.extend([0; FOLLOW_UP_TLV - ORGANISATION.len() - 4]);
            }
            Body::DelayResponse { received: at, requester }
            | Body::DelayFollowUp { sent: at, requester } => {
                timestamp(*at, &mut out);
                requester.encode(&mut out);
            }
            Body::Announce { root, steps, path } => {
                out.extend([0; TIMESTAMP + 3]);
                root.encode(&mut out);
                out.extend(steps.to_be_bytes());
                // timeSource: internal oscillator (8.6.2.7, table 8-2).
                out.push(0xa0);
                let path = &path[..path.len().min(MOST_PATH)];
                out.extend(PATH_TRACE.to_be_bytes());
                out.extend(((path.len() * 8) as u16).to_be_bytes());
                path.iter().for_each(|clock| out.extend(clock.0.to_be_bytes()));
            }
        }
        let length = (out.len() as u16).to_be_bytes();
        out[2..4].copy_from_slice(&length);
        out
    }

    /// Decodes the message at the beginning of `bytes`. Padding may follow.
    ///
    /// # Errors
    /// Why the message is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let short = Malformed::Short(bytes.len());
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or(short)?;
        if header[0] >> 4 != 1 || header[1] & 0xf != 2 {
            return Err(Malformed::Version);
        }
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let rest = bytes.get(HEADER..length).ok_or(short)?;
        Ok(Self {
            domain: header[4],
            correction: i64::from_be_bytes(*field(header, 8)?),
            source: PortIdentity::decode(*field(header, 20)?),
            sequence: u16::from_be_bytes(*field(header, 30)?),
            log_interval: header[33] as i8,
            body: body(header[0] & 0xf, rest)?,
        })
    }
}

fn body(kind: u8, rest: &[u8]) -> Result<Body, Malformed> {
    let stamp = || time(*field(rest, 0)?);
    let requester = || Ok(PortIdentity::decode(*field(rest, TIMESTAMP)?));
    Ok(match kind {
        0x0 => Body::Sync,
        0x2 => Body::DelayRequest,
        0x3 => Body::DelayResponse { received: stamp()?, requester: requester()? },
        0x8 => {
            let tlv: &[u8; FOLLOW_UP_TLV] = field(rest, TIMESTAMP)?;
            if tlv[..ORGANISATION.len()] != ORGANISATION {
                return Err(Malformed::Tlv);
            }
            let rate = i32::from_be_bytes(*field(tlv, ORGANISATION.len())?);
            Body::FollowUp { origin: stamp()?, rate }
        }
        0xa => Body::DelayFollowUp { sent: stamp()?, requester: requester()? },
        0xb => {
            let root = SystemIdentity::decode(field(rest, TIMESTAMP + 3)?);
            let steps = u16::from_be_bytes(*field(rest, TIMESTAMP + 17)?);
            Body::Announce { root, steps, path: path(rest.get(ANNOUNCE..).unwrap_or_default())? }
        }
        other => return Err(Malformed::Kind(other)),
    })
}

/// The path trace among the TLVs of an Announce.
fn path(mut tlvs: &[u8]) -> Result<Vec<ClockIdentity>, Malformed> {
    while let Some((head, rest)) = tlvs.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = rest.get(..length).ok_or(Malformed::Tlv)?;
        if u16::from_be_bytes([head[0], head[1]]) == PATH_TRACE {
            let clocks = value.as_chunks::<8>().0;
            return Ok(clocks
                .iter()
                .map(|clock| ClockIdentity(u64::from_be_bytes(*clock)))
                .collect());
        }
        tlvs = &rest[length..];
    }
    Err(Malformed::Tlv)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], Malformed> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.ok_or(Malformed::Short(bytes.len()))
}

/// Appends a time stamp in whole nanoseconds. The correction carries the rest.
fn timestamp(ps: i64, out: &mut Vec<u8>) {
    let ps = i128::from(ps) + EPOCH_SECONDS * SECOND;
    let seconds = ps.div_euclid(SECOND) as u64;
    out.extend(&seconds.to_be_bytes()[2..]);
    out.extend(((ps.rem_euclid(SECOND) / 1_000) as u32).to_be_bytes());
}

fn time(bytes: [u8; TIMESTAMP]) -> Result<i64, Malformed> {
    let [a, b, c, d, e, f, nanoseconds @ ..] = bytes;
    let seconds = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
    let nanoseconds = u32::from_be_bytes(nanoseconds);
    let ps = (i128::from(seconds) - EPOCH_SECONDS) * SECOND + i128::from(nanoseconds) * 1_000;
    // Room for corrections.
    const RANGE: i64 = i64::MAX / 4;
    i64::try_from(ps).ok().filter(|ps| (-RANGE..RANGE).contains(ps)).ok_or(Malformed::Time)
}

/// Splits a time into picoseconds of whole nanoseconds, and the rest as a correction (10.6.2.2.9).
pub(super) fn split(ps: i64) -> (i64, i64) {
    let rest = ps.rem_euclid(1_000);
    (ps - rest, correction(rest))
}

/// Converts picoseconds to a correction, in 2^-16 ns.
pub(super) fn correction(ps: i64) -> i64 {
    (i128::from(ps) * 65_536 / 1_000) as i64
}

/// Converts a correction to picoseconds, limited to the range of time stamps.
pub(super) fn corrected(correction: i64) -> i64 {
    (i128::from(correction) * 1_000 / 65_536).clamp((i64::MIN / 4).into(), (i64::MAX / 4).into())
        as i64
}
