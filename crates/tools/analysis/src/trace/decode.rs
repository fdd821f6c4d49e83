//! Decodes the TLPs of records.

use crate::commands::Payload;
use bytes::Bytes;
use wire::tlp::Tlp;
use wire::trace::{Hole, Holes, PayloadKey};

/// Decodes the TLP of a record. Also returns the recorded parts of the payload. Bytes that were not
/// recorded read as zeroes. Returns `None` if the bytes are not a TLP.
pub(super) fn tlp(
    length: u16,
    bytes: &[u8],
    hash: Option<u64>,
    holes: Holes<'_>,
) -> Option<(Tlp, Payload)> {
    let whole = usize::from(length);
    let mut parts = holes.parts(bytes.len());
    let (mut all, mut rest) = (Vec::with_capacity(whole), bytes);
    for part in &parts {
        all.resize(part.start, 0);
        let (kept, behind) = rest.split_at(part.len());
        all.extend_from_slice(kept);
        rest = behind;
    }
    let cut = bytes.len() < whole;
    if cut {
        all.resize(whole, 0);
        // The ECRC is not recorded either.
        if all[2] & 0x80 != 0 {
            all[2] &= !0x80;
            all.truncate(whole - 4);
        }
    }
    let mut all = Bytes::from(all);
    let tlp = Tlp::decode(&mut all).ok().filter(|_| all.is_empty())?;
    let header = tlp.header_length();
    let in_payload = |at: usize| at.saturating_sub(header).min(tlp.data.len());
    parts.iter_mut().for_each(|part| *part = in_payload(part.start)..in_payload(part.end));
    let known = parts.remove(0).end;
    let mut at = 0;
    let hole = |hole: Hole| {
        let start = at + hole.kept;
        at = start + hole.length;
        (in_payload(start)..in_payload(at), hole.hash)
    };
    let holes = holes.iter().map(hole).collect();
    let print =
        hash.or_else(|| (known == tlp.data.len()).then(|| PayloadKey::PUBLIC.hash(&tlp.data)));
    Some((tlp, Payload { known, parts, holes, print, from_push: false }))
}

/// Decodes the header of the TLP that begins with `bytes`, at least 12 bytes. Payload and ECRC are
/// dropped, and a memory write becomes a read.
pub(super) fn header(bytes: &[u8]) -> Option<Tlp> {
    let length = if bytes[0] & 0x20 == 0 { 12 } else { 16 };
    let mut header = bytes.get(..length)?.to_vec();
    if header[0] & 0x40 != 0 {
        header[0] &= !0x40;
        header[2] &= !3;
        header[3] = 0;
    }
    header[2] &= !0x80;
    Tlp::decode(&mut Bytes::from(header)).ok()
}

/// A print to distinguish the payloads of one TLP at two points. Both need a print of the whole
/// payload. The two low bits state whether the print is keyed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PayloadPrint(u64);

impl PayloadPrint {
    const KEYED: u64 = 1;
    const WHOLE: u64 = 2;

    /// Computes the print of a record's payload.
    pub fn new(length: u16, bytes: &[u8], hash: Option<u64>, holes: Holes<'_>) -> Self {
        if let Some(hash) = hash {
            return Self(hash & !3 | Self::KEYED);
        }
        match tlp(length, bytes, None, holes) {
            Some((tlp, Payload { print: Some(print), .. })) if !tlp.data.is_empty() => {
                Self(print & !3 | Self::WHOLE)
            }
            _ => Self::default(),
        }
    }

    /// Returns whether the payloads certainly differ. `one_key`: whether keyed hashes have the same
    /// key.
    pub fn differs(self, other: Self, one_key: bool) -> bool {
        let kinds = (self.0 & 3, other.0 & 3);
        let comparable =
            kinds == (Self::WHOLE, Self::WHOLE) || kinds == (Self::KEYED, Self::KEYED) && one_key;
        comparable && self != other
    }
}

/// The 12 or 16 header bytes of a TLP. Configuration requests of type 1 count as type 0, so that a
/// TLP has the same key at a port and on a link.
pub(super) type Key = [u8; 16];

/// Returns the key of the TLP that begins with `bytes`, at least 12 bytes.
pub(super) fn key(bytes: &[u8]) -> Key {
    let mut key = [0; 16];
    let length = if bytes[0] & 0x20 != 0 { 16 } else { 12 }.min(bytes.len());
    key[..length].copy_from_slice(&bytes[..length]);
    if key[0] & 0x1f == 0b00101 {
        key[0] &= !1;
    }
    key
}
