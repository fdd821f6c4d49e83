//! Payloads: which ones a trace keeps, and the keyed hash of those that it leaves out.

use super::record::{Record, max_record_length};
use crate::tlp::Tlp;
use highway::{HighwayHash, HighwayHasher, Key};
use std::fmt;
use std::ops::Range;

/// The text whose hash tells in a file's header which key it has, without the key.
const CHECK: &[u8] = b"farlane trace payload key";

/// The key of the hashes of payloads that a trace leaves out: HighwayHash (Alakuijala, Cox and
/// Wassenberg, 2016, arXiv:1612.06257) with 64 bits of output.
///
/// It is in no file: whoever has it can test guesses of what was left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PayloadKey([u64; 4]);

impl PayloadKey {
    /// Bytes of a key.
    pub const LENGTH: usize = 32;

    /// A key that everybody knows, for what needs no guard: simulated data, and payloads that are
    /// in the file anyway.
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

    /// What the header of a file says of its key: equal numbers are equal keys. Never 0.
    pub fn check(&self) -> u64 {
        self.hash(CHECK).max(1)
    }
}

/// Without the key.
impl fmt::Debug for PayloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PayloadKey({:016x})", self.check())
    }
}

/// Follows the TLPs at a port, in order and from the first, so far that it knows what their
/// payloads are.
pub trait Follower: fmt::Debug + Send {
    /// The next TLP passes, towards the host if `up`. Bytes of its payload, from the first on, that
    /// are for certain no data of users: registers, queue entries, lists of pointers, interrupts.
    fn tlp(&mut self, up: bool, tlp: &Tlp) -> usize;

    /// Further parts of that payload, in order, behind those bytes and not right behind them, of
    /// which the same is certain. `None` unless what is between and behind them has meanings of its
    /// own, and hashes.
    fn parts(&self) -> Option<&[Range<usize>]> {
        None
    }

    /// A link came up or went down, or a frame passed it, as `record` says.
    fn link(&mut self, record: &Record<'_>);
}

/// What a trace keeps of a TLP's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes from its first on; as many as there are, or more, for all.
    pub bytes: usize,
    /// Parts of these that are left out all the same, in order, each with its keyed hash; then
    /// `bytes` is at least the end of the last one.
    pub left_out: Vec<(Range<usize>, u64)>,
    /// The keyed hash of the whole payload; with fewer bytes than all only.
    pub hash: Option<u64>,
}

impl Kept {
    /// The most bytes that the record of `tlp` takes.
    pub fn max_record_length(&self, tlp: &Tlp) -> usize {
        // Of each part left out the hash and two lengths of at most two bytes, and their number.
        max_record_length(tlp.wire_length() + 12 * self.left_out.len() + 2)
    }

    /// The whole payload.
    pub const ALL: Self = Self { bytes: usize::MAX, left_out: Vec::new(), hash: None };
}

/// Decides what to keep of each payload. All traces use it.
#[derive(Debug)]
pub struct Payloads {
    /// `None` to keep data of users too.
    follower: Option<Box<dyn Follower>>,
    key: PayloadKey,
    /// Bytes kept of a payload at most.
    most: usize,
}

impl Payloads {
    /// Keeps what `follower` knows, or with `None` everything; of each payload `snap` bytes at
    /// most. What is not kept is hashed with `key`.
    pub fn new(follower: Option<Box<dyn Follower>>, key: PayloadKey, snap: Option<u16>) -> Self {
        Self { follower, key, most: snap.map_or(usize::MAX, usize::from) }
    }

    /// What to keep of the next TLP.
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

    /// Keeps the first `bytes` of a payload and `parts` behind them, as far as a snap allows.
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
