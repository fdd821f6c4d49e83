//! The omitted parts of a TLP in its record.

use super::varint;
use std::ops::Range;

/// Size of a hash in bytes.
pub(super) const HASH: usize = 8;

/// The omitted parts of a TLP, called holes, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holes<'a>(pub(super) &'a [u8]);

/// An omitted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Kept bytes between the previous hole and this one.
    pub kept: usize,
    /// Omitted bytes.
    pub length: usize,
    /// Keyed hash of the omitted bytes.
    pub hash: u64,
}

impl<'a> Holes<'a> {
    /// No holes.
    pub const NONE: Holes<'static> = Holes(&[]);

    /// Whether there are no holes.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the holes.
    pub fn iter(self) -> impl Iterator<Item = Hole> {
        let mut rest = self.0;
        std::iter::from_fn(move || Hole::take(&mut rest))
    }

    /// Appends the holes of a TLP whose header has `header` bytes. `left_out` has ranges of the
    /// payload, each with its hash.
    pub(super) fn put(header: usize, left_out: &[(Range<usize>, u64)], out: &mut Vec<u8>) {
        let mut end = 0;
        for (hole, hash) in left_out {
            let (start, length) = (header + hole.start, hole.len());
            varint::put(out, (start - end) as u64);
            varint::put(out, length as u64);
            out.extend_from_slice(&hash.to_be_bytes());
            end = start + length;
        }
    }

    /// Takes `count` holes off the front of `rest`, which then has the kept bytes of a TLP of
    /// `length` bytes. `None` if kept bytes and holes do not match this length.
    pub(super) fn take(rest: &mut &'a [u8], count: u32, length: usize) -> Option<Self> {
        let all = *rest;
        let (mut kept, mut end) = (0usize, 0usize);
        for number in 0..count {
            let hole = Hole::take(rest)?;
            kept = kept.checked_add(hole.kept)?;
            end = end.checked_add(hole.kept)?.checked_add(hole.length)?;
            let least = if number == 0 { 12 } else { 1 };
            if hole.length == 0 || hole.kept < least || end > length {
                return None;
            }
        }
        let fits = kept <= rest.len() && rest.len() + (end - kept) <= length;
        fits.then(|| Holes(&all[..all.len() - rest.len()]))
    }

    /// The kept parts of the TLP as byte ranges, at least one. `bytes` is the number of kept bytes
    /// in the record.
    pub fn parts(self, bytes: usize) -> Vec<Range<usize>> {
        let (mut parts, mut at, mut left) = (Vec::new(), 0, bytes);
        for hole in self.iter() {
            parts.push(at..at + hole.kept);
            at += hole.kept + hole.length;
            left -= hole.kept;
        }
        if left > 0 || parts.is_empty() {
            parts.push(at..at + left);
        }
        parts
    }
}

impl Hole {
    fn take(rest: &mut &[u8]) -> Option<Self> {
        let [kept, length] = [varint::take(rest)?, varint::take(rest)?];
        let hash = u64::from_be_bytes(*rest.split_off(..HASH)?.first_chunk()?);
        Some(Self {
            kept: usize::try_from(kept).ok()?,
            length: usize::try_from(length).ok()?,
            hash,
        })
    }
}
