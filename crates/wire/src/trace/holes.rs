//! The parts of a TLP that its record leaves out.

use super::varint;
use std::ops::Range;

/// The parts of a TLP that its record leaves out from between others: pairs of numbers, the bytes
/// kept and the bytes left out behind them, from the first byte of the TLP on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holes<'a>(pub(super) &'a [u8]);

impl<'a> Holes<'a> {
    /// Nothing is left out from between.
    pub const NONE: Holes<'static> = Holes(&[]);

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    pub(super) fn count(self) -> usize {
        // Each pair is two numbers, each of which ends with its first byte below 80h.
        self.0.iter().filter(|byte| **byte < 0x80).count() / 2
    }

    /// Appends those of a TLP with a header of `header` bytes that keeps the first `front` bytes of
    /// its payload and these `parts` behind them.
    pub(super) fn put(header: usize, front: usize, parts: &[Range<usize>], out: &mut Vec<u8>) {
        let (mut kept, mut end) = (header + front, front);
        for part in parts {
            varint::put(out, kept as u64);
            varint::put(out, (part.start - end) as u64);
            (kept, end) = (part.len(), part.end);
        }
    }

    /// Checks `count` of them at the front of `rest`, for a record that keeps `bytes` of `length`.
    pub(super) fn take(rest: &mut &'a [u8], count: u32, length: usize) -> Option<Self> {
        let all = *rest;
        let (mut kept, mut end, mut first) = (0, 0, true);
        for _ in 0..count {
            let [more, out] = [varint::take(rest)?, varint::take(rest)?];
            let [more, out] = [more, out].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            kept = more.checked_add(kept)?;
            end = more.checked_add(end)?.checked_add(out)?;
            if out == 0 || more < if first { 12 } else { 1 } || end > length {
                return None;
            }
            first = false;
        }
        let fits = kept <= rest.len() && rest.len() + (end - kept) <= length;
        fits.then(|| Holes(&all[..all.len() - rest.len()]))
    }

    /// The parts of the TLP that are there, of a record that has `bytes` bytes of it.
    pub fn parts(self, bytes: usize) -> Vec<Range<usize>> {
        let (mut rest, mut parts) = (self.0, Vec::new());
        let (mut at, mut left) = (0, bytes);
        while let (Some(kept), Some(out)) = (varint::take(&mut rest), varint::take(&mut rest)) {
            let (kept, out) = (kept as usize, out as usize);
            parts.push(at..at + kept);
            at += kept + out;
            left -= kept;
        }
        parts.push(at..at + left);
        parts.retain(|part| !part.is_empty());
        parts
    }
}
