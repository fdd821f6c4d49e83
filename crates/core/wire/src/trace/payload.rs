//! The payloads that a trace keeps, and the keyed hashes of omitted payloads.

use super::record::{Record, max_record_length};
use crate::tlp::Tlp;
use highway::{HighwayHash, HighwayHasher, Key};
use std::fmt;
use std::ops::Range;

/// The text whose hash identifies the key in a file's header, without revealing the key.
const CHECK: &[u8] = b"farlane trace payload key";

/// The key of the hashes of omitted payloads: HighwayHash (Alakuijala, Cox and Wassenberg, 2016,
/// arXiv:1612.06257) with 64 bits of output.
///
/// No file contains the key, because a reader with the key could test guesses of omitted bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PayloadKey([u64; 4]);

impl PayloadKey {
    /// Size of a key in bytes.
    pub const LENGTH: usize = 32;

    /// The key of zeroes, which is not secret. For data without need of protection: simulated data,
    /// and payloads that are in the file anyway.
    pub const PUBLIC: Self = Self([0; 4]);

    /// The key with these bytes: four numbers of 64 bits, little-endian.
    pub const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        let ([a, b, c, d], []) = bytes.as_chunks() else { unreachable!() };
        Self([
            u64::from_le_bytes(*a),
            u64::from_le_bytes(*b),
            u64::from_le_bytes(*c),
            u64::from_le_bytes(*d),
        ])
    }

    /// The hash of a payload.
    pub fn hash(&self, payload: &[u8]) -> u64 {
        HighwayHasher::new(Key(self.0)).hash64(payload)
    }

    /// The check value of the key for a file's header: equal values mean equal keys. Never 0.
    pub fn check(&self) -> u64 {
        self.hash(CHECK).max(1)
    }
}

/// Hides the key.
impl fmt::Debug for PayloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PayloadKey({:016x})", self.check())
    }
}

/// Follows the TLPs at a port from the first one, to classify their payloads.
pub trait Follower: fmt::Debug + Send {
    /// Takes the next TLP, towards the host if `up`. Returns the number of bytes at the start of
    /// the payload that are certain to contain no user data: registers, queue entries, lists of
    /// pointers, interrupts.
    fn tlp(&mut self, up: bool, tlp: &Tlp) -> usize;

    /// Further parts of the last TLP's payload, in ascending order, that are certain to contain no
    /// user data. With `None`, all remaining bytes are omitted together, with one hash.
    fn parts(&self) -> Option<&[Range<usize>]> {
        None
    }

    /// Takes a link change, or a frame of the link, from `record`.
    fn link(&mut self, record: &Record<'_>);
}

/// The kept parts of a TLP's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Number of bytes kept at the start of the payload, except the parts in `left_out`. A number
    /// above the payload's length means the whole payload.
    pub bytes: usize,
    /// The omitted parts of the first `bytes` bytes, in ascending order, each with its keyed hash.
    pub left_out: Vec<(Range<usize>, u64)>,
    /// The keyed hash of the whole payload; only if not all bytes are kept.
    pub hash: Option<u64>,
}

impl Kept {
    /// The maximum number of bytes of the record of `tlp`.
    pub fn max_record_length(&self, tlp: &Tlp) -> usize {
        // For each omitted part the hash and two lengths of at most two bytes; and the number of
        // parts.
        max_record_length(tlp.wire_length() + 12 * self.left_out.len() + 2)
    }

    /// The whole payload.
    pub const ALL: Self = Self { bytes: usize::MAX, left_out: Vec::new(), hash: None };
}

/// Decides which bytes of each payload a trace keeps.
#[derive(Debug)]
pub struct Payloads {
    /// Selects the bytes without user data; `None` to keep user data too.
    follower: Option<Box<dyn Follower>>,
    key: PayloadKey,
    /// The maximum number of bytes kept of a payload.
    most: usize,
}

impl Payloads {
    /// Keeps the bytes that `follower` selects, or all bytes with `None`; in both cases only within
    /// the first `snap` bytes of a payload. Hashes omitted bytes with `key`.
    pub fn new(follower: Option<Box<dyn Follower>>, key: PayloadKey, snap: Option<u16>) -> Self {
        Self { follower, key, most: snap.map_or(usize::MAX, usize::from) }
    }

    /// The kept parts of the next TLP.
    pub fn kept_of(&mut self, up: bool, tlp: &Tlp) -> Kept {
        let known = self.follower.as_mut().map(|follower| follower.tlp(up, tlp));
        let bytes = known.unwrap_or(usize::MAX).min(self.most);
        let hash = (bytes < tlp.data.len()).then(|| self.key.hash(&tlp.data));
        let parts = self.follower.as_ref().and_then(|follower| follower.parts());
        match parts.filter(|_| hash.is_some()) {
            Some(parts) => self.in_parts(bytes, parts, tlp, hash),
            None => Kept { bytes, left_out: Vec::new(), hash },
        }
    }

    /// Keeps the first `bytes` of a payload and the later `parts`, within the snap length.
    fn in_parts(&self, bytes: usize, parts: &[Range<usize>], tlp: &Tlp, hash: Option<u64>) -> Kept {
        let end = tlp.data.len();
        let (mut left_out, mut from) = (Vec::new(), bytes);
        let behind = end..end;
        for part in parts.iter().filter(|part| part.end <= self.most).chain([&behind]) {
            if from < part.start {
                let hole = from..part.start;
                left_out.push((hole.clone(), self.key.hash(&tlp.data[hole])));
            }
            from = part.end;
        }
        Kept { bytes: end, left_out, hash }
    }

    /// As [`Follower::link`].
    pub fn link(&mut self, record: &Record<'_>) {
        if let Some(follower) = &mut self.follower {
            follower.link(record);
        }
    }
}
