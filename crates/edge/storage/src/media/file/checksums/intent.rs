//! The intent of a change: 8 bytes each for offset and length of the units, 4 bytes for the number
//! of checksums, the CRC-32C of all other bytes, and the new checksums. Zeroes have no checksums.
//! All numbers are little-endian.

use super::layout::{INTENT, Layout, UNIT};
use std::ops::Range;

/// Offset of the CRC-32C.
const CHECK: usize = 20;
/// Number of bytes before the checksums.
pub(super) const HEADER: usize = 24;

/// A change that may be under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Intent {
    /// The units, as a range of bytes.
    pub units: Range<u64>,
    /// The new checksums; empty for zeroes.
    sums: Vec<u8>,
}

impl Intent {
    /// The bytes of the intent to write data with these checksums.
    pub(super) fn write(offset: u64, length: u64, sums: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + sums.len());
        bytes.extend(offset.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend((sums.len() as u32 / 4).to_le_bytes());
        let check = crc32c::crc32c_append(crc32c::crc32c(&bytes), sums);
        bytes.extend(check.to_le_bytes());
        bytes.extend(sums);
        bytes
    }

    /// The bytes of the intent to zero units.
    pub(super) fn zeroes(offset: u64, length: u64) -> Vec<u8> {
        Self::write(offset, length, &[])
    }

    /// Parses the place of an intent; `None` without a whole intent.
    pub(super) fn parse(bytes: &[u8; INTENT as usize], layout: Layout) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside"));
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside"));
        let sums = bytes.get(HEADER..HEADER.checked_add((word(16) as usize).checked_mul(4)?)?)?;
        if crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECK]), sums) != word(CHECK) {
            return None;
        }
        let (offset, length) = (number(0), number(8));
        let units = offset..offset.checked_add(length).filter(|end| *end <= layout.end())?;
        let whole = offset.is_multiple_of(UNIT) && length.is_multiple_of(UNIT) && length > 0;
        let fits = sums.is_empty() || sums.len() as u64 == length / UNIT * 4;
        (whole && fits).then(|| Self { units, sums: sums.to_vec() })
    }

    /// The new checksums of units inside the intent.
    pub(super) fn sums(&self, units: &Range<u64>) -> Vec<u8> {
        let place = |at: u64| ((at - self.units.start) / UNIT * 4) as usize;
        match self.sums.is_empty() {
            true => vec![0; place(units.end) - place(units.start)],
            false => self.sums[place(units.start)..place(units.end)].to_vec(),
        }
    }
}
