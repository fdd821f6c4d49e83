//! Records of a trace.

use super::event::NvmeEvent;
use super::holes::{HASH, Holes};
use super::payload::Kept;
use super::varint;
use crate::frame::{FrameReport, HEADER, Kind};
use crate::tlp::{MAX_TLP, Tlp};
use std::fmt;

/// Bytes kept of a TLP in a frame: its header of 16 bytes, or of 12 bytes padded with zeroes.
pub const HEAD: usize = 16;
/// The maximum number of TLPs of a frame whose headers are kept.
pub const MAX_HEADS: usize = 1024;

/// The place where a record was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tap(u8);

impl Tap {
    /// Below the root port, on the host node.
    pub const ROOT_PORT: Self = Self(0);
    /// Between the tunnel and the function that a device or switch node serves.
    pub const FUNCTION: Self = Self(1);
    /// A device or switch node's link to its host.
    pub const UPLINK: Self = Self(2);
    /// The first link to a device node.
    const FIRST_LINK: u8 = 3;
    /// Number of distinguishable links to device nodes.
    const LINKS: u8 = 64;

    /// A host or switch node's link below downstream port `port`, 0 to 63; ports after 63 count as
    /// 63.
    pub const fn link(port: usize) -> Self {
        let most = Self::LINKS as usize - 1;
        Self(Self::FIRST_LINK + if port < most { port as u8 } else { most as u8 })
    }

    /// The downstream port of a link to a device node.
    pub fn port(self) -> Option<usize> {
        self.0.checked_sub(Self::FIRST_LINK).map(usize::from)
    }

    /// Whether the place is a link, not a port.
    pub const fn is_link(self) -> bool {
        self.0 >= Self::UPLINK.0
    }

    const fn from_bits(bits: u8) -> Option<Self> {
        if bits < Self::FIRST_LINK + Self::LINKS { Some(Self(bits)) } else { None }
    }
}

impl fmt::Display for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.port()) {
            (Self::ROOT_PORT, _) => f.pad("root port"),
            (Self::FUNCTION, _) => f.pad("function"),
            (_, Some(port)) => f.pad(&format!("link {port}")),
            _ => f.pad("link to the host"),
        }
    }
}

/// The state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState<'a> {
    /// The connection to the peer is established; the greeting follows.
    Connected,
    /// The link is down. The text is the cause.
    Down(&'a str),
    /// Another connection to the peer is established, which may carry on the session of the former
    /// one; the greeting follows.
    Returned,
    /// The connection is lost, and its session waits for another one. The text is the cause.
    Interrupted(&'a str),
}

impl<'a> LinkState<'a> {
    /// The byte of the state, and the text that follows.
    fn fields(self) -> (u8, &'a str) {
        match self {
            Self::Down(why) => (0, why),
            Self::Connected => (1, ""),
            Self::Returned => (2, ""),
            Self::Interrupted(why) => (3, why),
        }
    }
}

/// One observation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A TLP passed a port.
    Tlp {
        /// The place.
        tap: Tap,
        /// Whether the direction is towards the host.
        up: bool,
        /// Length of the TLP in bytes on the wire: header, payload, ECRC.
        length: u16,
        /// All bytes of the TLP, or the first ones, without the holes.
        bytes: &'a [u8],
        /// The keyed hash of the whole payload, if not all bytes are kept.
        hash: Option<u64>,
        /// The holes; only with a hash.
        holes: Holes<'a>,
    },
    /// A frame of TLPs was sent to the network, or was received completely.
    Frame {
        /// The link.
        tap: Tap,
        /// Whether the direction is towards the host.
        up: bool,
        /// Sequence number of the frame.
        sequence: u32,
        /// Size of the frame in bytes, including the header.
        bytes: u32,
        /// Number of TLPs in the frame.
        tlps: u32,
        /// The headers of the first TLPs, [`HEAD`] bytes each.
        heads: &'a [u8],
    },
    /// A control frame was sent to the network, or was received completely.
    Control {
        /// The link.
        tap: Tap,
        /// Whether the direction is towards the host.
        up: bool,
        /// Kind of the frame, see [`crate::frame::Kind`].
        kind: u8,
        /// Payload of the frame.
        payload: &'a [u8],
    },
    /// A link came up or went down.
    Link {
        /// The link.
        tap: Tap,
        /// The new state.
        state: LinkState<'a>,
    },
    /// An event of the drive behind a port.
    Nvme {
        /// The port.
        tap: Tap,
        /// The event.
        event: NvmeEvent,
    },
    /// Number of commands that a host node pushed not at all or only in part, since the node's
    /// start.
    NotPushed {
        /// The reason, as [`crate::push::Reason`]; readers skip unknown numbers.
        reason: u8,
        /// Number of commands.
        commands: u64,
    },
    /// A planned fault began to act.
    Fault {
        /// The port or link.
        tap: Tap,
        /// The text form of the fault.
        text: &'a str,
    },
    /// A kind or an event that this version does not support.
    Unknown {
        /// The kind.
        kind: u8,
        /// The bytes after the time.
        bytes: &'a [u8],
    },
}

const TLP: u8 = 1;
const FRAME: u8 = 2;
const CONTROL: u8 = 3;
const LINK: u8 = 4;
const NVME: u8 = 5;
const HASHED_TLP: u8 = 6;
const HOLED_TLP: u8 = 7;
const NOT_PUSHED: u8 = 8;
const FAULT: u8 = 9;
const UP: u8 = 0x80;

/// The maximum number of bytes of contents of an event record.
const MAX_NVME: usize = NvmeEvent::MAX_LENGTH;

/// The maximum number of bytes of a record with `bytes` of contents.
pub const fn max_record_length(bytes: usize) -> usize {
    // The terms: kind, length, time, tap, and up to three numbers. An event consists only of
    // numbers.
    bytes + 1 + 5 + varint::MAX_LENGTH + 1 + 15
}

impl<'a> Record<'a> {
    /// The record of a frame that passed link `tap`.
    pub fn of_frame(tap: Tap, report: &'a FrameReport) -> Self {
        let (header, up) = (report.header, report.sent == (tap == Tap::UPLINK));
        if header.kind != Kind::Tlps {
            let kind = header.kind as u8;
            return Self::Control { tap, up, kind, payload: &report.payload };
        }
        Self::Frame {
            tap,
            up,
            sequence: header.sequence,
            bytes: HEADER as u32 + u32::from(header.length),
            tlps: report.trace_ids.len() as u32,
            heads: &report.heads,
        }
    }

    /// The maximum number of bytes that the record takes.
    pub fn max_length(&self) -> usize {
        max_record_length(match self {
            // The number of holes takes at most two bytes.
            Self::Tlp { bytes, holes, .. } => bytes.len() + HASH + 2 + holes.0.len(),
            Self::Unknown { bytes, .. } => bytes.len(),
            Self::Frame { heads, .. } => heads.len(),
            Self::Control { payload, .. } => payload.len(),
            Self::Link { state, .. } => state.fields().1.len(),
            Self::NotPushed { .. } => 1 + varint::MAX_LENGTH,
            Self::Fault { text, .. } => text.len(),
            Self::Nvme { .. } => MAX_NVME,
        })
    }

    /// Appends the record, whose time is `delta_ns` nanoseconds after the previous record of the
    /// chunk.
    pub fn encode(&self, delta_ns: u64, out: &mut Vec<u8>) {
        if let Self::Nvme { tap, event } = self {
            return encode_nvme(*tap, event, delta_ns, out);
        }
        out.push(self.kind());
        let start = out.len();
        varint::put(out, delta_ns);
        match *self {
            Self::Tlp { tap, up, length, bytes, hash, holes } => {
                put_tap(out, tap, up);
                varint::put(out, u64::from(length));
                hash.iter().for_each(|hash| out.extend_from_slice(&hash.to_be_bytes()));
                if !holes.is_empty() {
                    varint::put(out, holes.iter().count() as u64);
                    out.extend_from_slice(holes.0);
                }
                out.extend_from_slice(bytes);
            }
            Self::Frame { tap, up, sequence, bytes, tlps, heads } => {
                put_tap(out, tap, up);
                varint::put(out, u64::from(sequence));
                varint::put(out, u64::from(bytes));
                varint::put(out, u64::from(tlps));
                out.extend_from_slice(heads);
            }
            Self::Control { tap, up, kind, payload } => {
                put_tap(out, tap, up);
                out.push(kind);
                out.extend_from_slice(payload);
            }
            Self::Link { tap, state } => {
                let (number, why) = state.fields();
                put_tap(out, tap, false);
                out.push(number);
                out.extend_from_slice(why.as_bytes());
            }
            Self::NotPushed { reason, commands } => {
                put_tap(out, Tap::ROOT_PORT, false);
                out.push(reason);
                varint::put(out, commands);
            }
            Self::Fault { tap, text } => {
                put_tap(out, tap, false);
                out.extend_from_slice(text.as_bytes());
            }
            Self::Nvme { .. } => {}
            Self::Unknown { bytes, .. } => out.extend_from_slice(bytes),
        }
        // The length precedes the contents.
        let end = out.len();
        varint::put(out, (end - start) as u64);
        let length = out.len() - end;
        out[start..].rotate_right(length);
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Tlp { hash: None, .. } => TLP,
            Self::Tlp { holes, .. } if !holes.is_empty() => HOLED_TLP,
            Self::Tlp { .. } => HASHED_TLP,
            Self::Frame { .. } => FRAME,
            Self::Control { .. } => CONTROL,
            Self::Link { .. } => LINK,
            Self::Nvme { .. } => NVME,
            Self::NotPushed { .. } => NOT_PUSHED,
            Self::Fault { .. } => FAULT,
            Self::Unknown { kind, .. } => *kind,
        }
    }
}

/// Appends the record of an event in one piece.
fn encode_nvme(tap: Tap, event: &NvmeEvent, delta_ns: u64, out: &mut Vec<u8>) {
    let mut bytes = [0; 2 + varint::MAX_LENGTH + 1 + NvmeEvent::MAX_LENGTH];
    let mut front = varint::Writer::new(&mut bytes);
    front.byte(NVME);
    // The length is a single byte, filled in when it is known.
    front.byte(0);
    front.number(delta_ns);
    front.byte(tap.0);
    event.put(&mut front);
    let end = front.length();
    bytes[1] = (end - 2) as u8;
    out.extend_from_slice(&bytes[..end]);
}

/// Appends the record of a TLP that passed `tap`, `delta_ns` after the previous record, with the
/// `kept` parts of its payload.
pub fn encode_tlp(tap: Tap, up: bool, tlp: &Tlp, kept: &Kept, delta_ns: u64, out: &mut Vec<u8>) {
    let (total, all) = (tlp.wire_length(), kept.left_out.is_empty());
    let whole = all && kept.bytes >= tlp.data.len();
    if whole && tlp.digest {
        let mut bytes = Vec::with_capacity(total);
        tlp.encode(&mut bytes);
        let (length, holes) = (total as u16, Holes::NONE);
        let record = Record::Tlp { tap, up, length, bytes: &bytes, hash: None, holes };
        return record.encode(delta_ns, out);
    }
    if !all {
        let mut bytes = tlp.header()[..tlp.header_length()].to_vec();
        let mut from = 0;
        for (hole, _) in &kept.left_out {
            bytes.extend_from_slice(&tlp.data[from..hole.start]);
            from = hole.end;
        }
        bytes.extend_from_slice(&tlp.data[from..kept.bytes]);
        let mut holes = Vec::new();
        Holes::put(tlp.header_length(), &kept.left_out, &mut holes);
        let (length, holes) = (total as u16, Holes(&holes));
        let record = Record::Tlp { tap, up, length, bytes: &bytes, hash: kept.hash, holes };
        return record.encode(delta_ns, out);
    }
    let data = &tlp.data[..kept.bytes.min(tlp.data.len())];
    if data.len() > 16 || delta_ns >= varint::SHORT {
        return encode_long(tap, up, tlp, (data, kept.hash), delta_ns, out);
    }
    let (kind, hashed) = if kept.hash.is_some() { (HASHED_TLP, HASH) } else { (TLP, 0) };
    let kept_bytes = tlp.header_length() + data.len();
    let ((delta, n), (length, m)) = (varint::short(delta_ns), varint::short(total as u64));
    let behind = n + 1 + m + hashed + kept_bytes;
    // This function is the main cost of recording. It writes each part with a fixed size into one
    // array; the next part overwrites the excess.
    let place = u64::from(tap.0 | if up { UP } else { 0 });
    let front = u64::from(kind) | (behind as u64) << 8 | delta << 16;
    let front = front | (place | length << 8) << (16 + 8 * n);
    let at = 3 + n + m + hashed;
    let start = out.len();
    out.extend_from_slice(&[0; FRONT]);
    let room: &mut [u8; FRONT] = out[start..].first_chunk_mut().expect("just made");
    room[..8].copy_from_slice(&front.to_le_bytes());
    if let Some(hash) = kept.hash {
        room[at - HASH..at].copy_from_slice(&hash.to_be_bytes());
    }
    room[at..at + 16].copy_from_slice(&tlp.header());
    let payload = &mut room[at + tlp.header_length()..];
    if let Some(data) = data.first_chunk::<16>().filter(|_| data.len() == 16) {
        payload[..16].copy_from_slice(data);
    } else if let Some(data) = data.first_chunk::<4>().filter(|_| data.len() == 4) {
        payload[..4].copy_from_slice(data);
    } else if !data.is_empty() {
        payload[..data.len()].copy_from_slice(data);
    }
    out.truncate(start + at + kept_bytes);
}

/// Size in bytes of the record of a short TLP: numbers, hash, header and payload.
const FRONT: usize = 8 + HASH + 16 + 16;

/// As [`encode_tlp`], for any payload length and any time.
fn encode_long(
    tap: Tap,
    up: bool,
    tlp: &Tlp,
    (data, hash): (&[u8], Option<u64>),
    delta_ns: u64,
    out: &mut Vec<u8>,
) {
    let (total, kept) = (tlp.wire_length() as u64, tlp.header_length() + data.len());
    let kept = kept + hash.map_or(0, |_| HASH);
    let length = varint::length(delta_ns) + 1 + varint::length(total) + kept;
    out.push(if hash.is_some() { HASHED_TLP } else { TLP });
    varint::put(out, length as u64);
    varint::put(out, delta_ns);
    put_tap(out, tap, up);
    varint::put(out, total);
    hash.iter().for_each(|hash| out.extend_from_slice(&hash.to_be_bytes()));
    out.extend_from_slice(&tlp.header()[..tlp.header_length()]);
    out.extend_from_slice(data);
}

fn put_tap(out: &mut Vec<u8>, tap: Tap, up: bool) {
    out.push(tap.0 | if up { UP } else { 0 });
}

/// A record with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed<'a> {
    /// Time on the node's clock in nanoseconds.
    pub at_ns: u64,
    /// The record.
    pub record: Record<'a>,
}

/// Iterates over the complete records of a chunk; skips and counts invalid records.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    at_ns: u64,
    bad: u64,
}

impl<'a> Records<'a> {
    /// The records of a chunk that begins at `start_ns`.
    pub const fn new(start_ns: u64, records: &'a [u8]) -> Self {
        Self { rest: records, at_ns: start_ns, bad: 0 }
    }

    /// Records skipped so far.
    pub const fn bad(&self) -> u64 {
        self.bad
    }

    /// The bytes that were not read yet. At the end: an incomplete record.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self) -> Option<(u8, &'a [u8])> {
        let (kind, mut rest) = self.rest.split_first()?;
        let length = usize::try_from(varint::take(&mut rest)?).ok()?;
        if length > rest.len() {
            return None;
        }
        let (body, rest) = rest.split_at(length);
        self.rest = rest;
        Some((*kind, body))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Timed<'a>;

    fn next(&mut self) -> Option<Timed<'a>> {
        loop {
            let (kind, mut body) = self.take()?;
            let record = varint::take(&mut body).and_then(|delta| {
                self.at_ns = self.at_ns.saturating_add(delta);
                decode(kind, body)
            });
            match record {
                Some(record) => return Some(Timed { at_ns: self.at_ns, record }),
                None => self.bad += 1,
            }
        }
    }
}

fn decode(kind: u8, body: &[u8]) -> Option<Record<'_>> {
    if !matches!(kind, TLP..=FAULT) {
        return Some(Record::Unknown { kind, bytes: body });
    }
    let (first, mut rest) = body.split_first()?;
    let (tap, up) = (Tap::from_bits(first & !UP)?, first & UP != 0);
    let number = |rest: &mut &[u8]| u32::try_from(varint::take(rest)?).ok();
    match kind {
        TLP | HASHED_TLP | HOLED_TLP => {
            let length = u16::try_from(number(&mut rest)?).ok()?;
            let hash = match kind {
                TLP => None,
                _ => Some(u64::from_be_bytes(*rest.split_off(..HASH)?.first_chunk()?)),
            };
            let holes = match kind {
                HOLED_TLP => {
                    let count = number(&mut rest)?;
                    Holes::take(&mut rest, count, length.into())
                        .filter(|holes| !holes.is_empty())?
                }
                _ => Holes::NONE,
            };
            let fits = (12..=MAX_TLP).contains(&usize::from(length));
            let kept = (12..=usize::from(length)).contains(&rest.len());
            (fits && kept).then_some(Record::Tlp { tap, up, length, bytes: rest, hash, holes })
        }
        FRAME => {
            let (sequence, bytes) = (number(&mut rest)?, number(&mut rest)?);
            let tlps = number(&mut rest)?;
            let (count, odd) = (rest.len() / HEAD, rest.len() % HEAD);
            let fits = odd == 0 && count <= MAX_HEADS && count <= tlps as usize;
            fits.then_some(Record::Frame { tap, up, sequence, bytes, tlps, heads: rest })
        }
        CONTROL => {
            let (kind, payload) = rest.split_first()?;
            Some(Record::Control { tap, up, kind: *kind, payload })
        }
        NOT_PUSHED => {
            let (reason, mut commands) = rest.split_first()?;
            let commands = varint::take(&mut commands)?;
            Some(Record::NotPushed { reason: *reason, commands })
        }
        FAULT => Some(Record::Fault { tap, text: std::str::from_utf8(rest).ok()? }),
        // An unknown event does not make a record invalid.
        NVME => Some(match NvmeEvent::take(rest) {
            Some(event) => Record::Nvme { tap, event },
            None => Record::Unknown { kind, bytes: body },
        }),
        _ => {
            let (state, why) = rest.split_first()?;
            let state = match state {
                0 => LinkState::Down(std::str::from_utf8(why).ok()?),
                1 => LinkState::Connected,
                2 => LinkState::Returned,
                3 => LinkState::Interrupted(std::str::from_utf8(why).ok()?),
                _ => return None,
            };
            Some(Record::Link { tap, state })
        }
    }
}
