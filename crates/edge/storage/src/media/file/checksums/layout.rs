//! The places of data, checksums, marks and intents in the file (`docs/drive.md`, "Checksums").

use std::ops::Range;

/// Number of bytes with one checksum: the smallest logical block, so that no format of blocks
/// splits a unit. Disks write as many bytes atomically.
pub(in crate::media::file) const UNIT: u64 = 512;
/// Number of bytes of data with one mark: few marks to store durably, and little to read again after
/// a crash.
pub(super) const REGION: u64 = 16 << 20;
/// Number of intents: the changes that may be under way at once.
pub(super) const INTENTS: u64 = 64;
/// Number of bytes of the place of an intent.
pub(super) const INTENT: u64 = 4096;
/// The largest write with one intent in bytes. Its checksums fit into the place of the intent.
pub(in crate::media::file) const LARGEST: u64 = 256 << 10;
/// Each part begins at a multiple of this number of bytes.
const ALIGNMENT: u64 = 4096;

/// The layout of a file with this number of bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub size: u64,
}

impl Layout {
    /// Number of bytes of the whole file; `None` if `size` is too large.
    pub(crate) fn file_length(size: u64) -> Option<u64> {
        (size <= u64::MAX / 2).then(|| Self { size }.intents() + INTENTS * INTENT)
    }

    /// End of the last unit.
    pub(super) fn end(&self) -> u64 {
        self.size.next_multiple_of(UNIT)
    }

    /// Offset of the checksum of the unit that begins at `offset`.
    pub(crate) fn sum(&self, offset: u64) -> u64 {
        self.size.next_multiple_of(ALIGNMENT) + offset / UNIT * 4
    }

    /// Offset and number of bytes of the checksums of whole units.
    pub(super) fn sums(&self, units: &Range<u64>) -> (u64, u64) {
        (self.sum(units.start), (units.end - units.start) / UNIT * 4)
    }

    /// Offset of the marks: one bit per region, in words of 64 bits.
    pub(super) fn marks(&self) -> u64 {
        self.sum(self.end()).next_multiple_of(ALIGNMENT)
    }

    /// Number of words of marks.
    pub(super) fn words(&self) -> u64 {
        self.size.div_ceil(REGION).div_ceil(64)
    }

    /// Offset of the intents.
    pub(super) fn intents(&self) -> u64 {
        (self.marks() + self.words() * 8).next_multiple_of(ALIGNMENT)
    }
}

/// The units that contain a range.
pub(in crate::media::file) fn units_around(range: &Range<u64>) -> Range<u64> {
    range.start / UNIT * UNIT..range.end.next_multiple_of(UNIT)
}

/// The parts of a range, each inside one piece of `length` bytes.
pub(super) fn pieces(range: Range<u64>, length: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let next = range.end.min((at / length + 1) * length);
        let piece = at..next;
        at = next;
        (!piece.is_empty()).then_some(piece)
    })
}
