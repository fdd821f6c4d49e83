//! A checksum (CRC-32C) for each 512 bytes of a drive's contents, in the same file behind the data.
//! `docs/drive.md`, "Checksums", specifies the format.
//!
//! Two things tell data and checksums that parted from a fault of the medium:
//!
//! - An *intent* has the range and the new checksums of a change, and is written before the data.
//!   After a kill the page cache has all that was written, so a unit has its old or its new
//!   checksum.
//! - A *mark* states that a region was changed since its data were last durable, and is durable
//!   before the first change. After a crash, each unit and each checksum of a marked region has any
//!   value since then.

mod intent;
mod layout;
mod order;
mod recover;
#[cfg(test)]
mod tests;

pub(crate) use layout::Layout;
pub(super) use layout::{LARGEST, UNIT, units_around};
pub(super) use order::{Order, Turn};

use crate::files::File;
use bytes::Bytes;
use intent::Intent;
use layout::{REGION, pieces};
use nvme::block::Operation;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The CRC-32C of 512 zero bytes. Stored checksums are combined with it by XOR, so that a hole is
/// data with valid checksums.
const OF_ZEROES: u32 = 0x30fc_edc0;

/// The checksums of one file.
#[derive(Debug)]
pub(super) struct Checksums {
    pub layout: Layout,
    /// The marks, which are durable.
    marks: Vec<AtomicU64>,
    /// Held while marks are written.
    marking: Mutex<()>,
}

/// The stored checksums of whole units.
pub(super) fn sums_of(data: &[u8]) -> Vec<u8> {
    let sum = |unit| (crc32c::crc32c(unit) ^ OF_ZEROES).to_le_bytes();
    data.chunks(UNIT as usize).flat_map(sum).collect()
}

/// The units of `data` that do not have their checksum, by number.
pub(super) fn mismatches<'a>(data: &'a [u8], sums: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let pairs = data.chunks(UNIT as usize).zip(sums.as_chunks::<4>().0).enumerate();
    pairs.filter_map(|(number, (unit, sum))| {
        let found = crc32c::crc32c(unit) ^ OF_ZEROES;
        (found != u32::from_le_bytes(*sum)).then_some(number)
    })
}

impl Checksums {
    /// Executes one operation; `turn` belongs to it. Changes have been ordered by [`Order`].
    pub(super) fn execute(
        &self,
        file: &dyn File,
        operation: &Operation,
        turn: Turn,
    ) -> io::Result<Bytes> {
        let (offset, length) = operation.range();
        let range = offset..offset + length;
        match operation {
            Operation::Read { .. } => return self.read(file, range),
            Operation::Write { data, .. } => self.write(file, offset, data, turn.intent())?,
            Operation::WriteZeroes { .. } => self.zero(file, range, turn.intent())?,
            Operation::Discard { .. } => self.discard(file, range, turn.intent())?,
            Operation::Flush => file.sync_data()?,
        }
        Ok(Bytes::new())
    }

    /// Reads and verifies.
    fn read(&self, file: &dyn File, range: Range<u64>) -> io::Result<Bytes> {
        let units = units_around(&range);
        let (data, sums) = self.load(file, &units)?;
        if let Some(number) = mismatches(&data, &sums).next() {
            let at = units.start + number as u64 * UNIT;
            let why = format!("the {UNIT} bytes at {at} do not have their checksum");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let from = (range.start - units.start) as usize;
        Ok(Bytes::from(data).slice(from..from + (range.end - range.start) as usize))
    }

    /// The data and the stored checksums of whole units, not verified.
    fn load(&self, file: &dyn File, units: &Range<u64>) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let length = (units.end - units.start) as usize;
        let (mut data, mut sums) = (vec![0; length], vec![0; length / UNIT as usize * 4]);
        file.read_at(&mut data, units.start)?;
        file.read_at(&mut sums, self.layout.sum(units.start))?;
        Ok((data, sums))
    }

    /// Writes any range. The rest of units that are changed in part is read and verified first.
    fn write(&self, file: &dyn File, offset: u64, data: &[u8], intent: u64) -> io::Result<()> {
        let range = offset..offset + data.len() as u64;
        self.mark(file, &range)?;
        for piece in pieces(range, LARGEST) {
            let units = units_around(&piece);
            let new = &data[(piece.start - offset) as usize..(piece.end - offset) as usize];
            if units == piece {
                self.write_units(file, piece.start, new, intent)?;
                continue;
            }
            let mut whole = self.read(file, units.clone())?.to_vec();
            whole[(piece.start - units.start) as usize..][..new.len()].copy_from_slice(new);
            self.write_units(file, units.start, &whole, intent)?;
        }
        Ok(())
    }

    /// Writes at most [`LARGEST`] bytes of whole units.
    fn write_units(&self, file: &dyn File, at: u64, data: &[u8], intent: u64) -> io::Result<()> {
        let sums = sums_of(data);
        let place = self.layout.intents() + intent * layout::INTENT;
        file.write_at(&Intent::write(at, data.len() as u64, &sums), place)?;
        let written = file.write_at(data, at);
        self.complete(
            file,
            at..at + data.len() as u64,
            written.and_then(|()| file.write_at(&sums, self.layout.sum(at))),
        )
    }

    fn zero(&self, file: &dyn File, range: Range<u64>, intent: u64) -> io::Result<()> {
        self.mark(file, &range)?;
        let whole = whole_units(&range);
        for edge in [range.start..whole.start.min(range.end), whole.end..range.end] {
            let zeroes = vec![0; edge.end.saturating_sub(edge.start) as usize];
            self.write(file, edge.start, &zeroes, intent)?;
        }
        for piece in pieces(whole, REGION) {
            self.announce_zeroes(file, &piece, intent)?;
            let zeroed = file.zero_range(piece.start, piece.end - piece.start);
            let (sums, length) = self.layout.sums(&piece);
            let zeroed = zeroed.and_then(|()| file.zero_range(sums, length));
            self.complete(file, piece, zeroed)?;
        }
        Ok(())
    }

    /// Frees whole units, as far as the file system has holes.
    fn discard(&self, file: &dyn File, range: Range<u64>, intent: u64) -> io::Result<()> {
        self.mark(file, &range)?;
        for piece in pieces(whole_units(&range), REGION) {
            self.announce_zeroes(file, &piece, intent)?;
            match file.punch_hole(piece.start, piece.end - piece.start) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
                freed => {
                    let (sums, length) = self.layout.sums(&piece);
                    let freed = freed.and_then(|()| file.punch_hole(sums, length));
                    self.complete(file, piece, freed)?;
                }
            }
        }
        Ok(())
    }

    fn announce_zeroes(&self, file: &dyn File, units: &Range<u64>, intent: u64) -> io::Result<()> {
        let bytes = Intent::zeroes(units.start, units.end - units.start);
        file.write_at(&bytes, self.layout.intents() + intent * layout::INTENT)
    }

    /// Ends a change. If the change has failed, any part of the units may be changed, so the units
    /// get the checksums of the data that they have now.
    fn complete(
        &self,
        file: &dyn File,
        units: Range<u64>,
        changed: io::Result<()>,
    ) -> io::Result<()> {
        changed.inspect_err(|_| self.accept(file, units))
    }

    /// The write of an intent for whole units: place and bytes.
    pub(super) fn intent(&self, at: u64, data: &[u8], sums: &[u8], number: u64) -> (u64, Vec<u8>) {
        let place = self.layout.intents() + number * layout::INTENT;
        (place, Intent::write(at, data.len() as u64, sums))
    }

    /// The length of an intent with checksums of this number of bytes.
    pub(super) fn intent_length(&self, sums: usize) -> usize {
        intent::HEADER + sums
    }

    /// The marks of a range: words of marks with the bits of the regions.
    fn marks_of(range: &Range<u64>) -> impl Iterator<Item = (usize, u64)> + use<> {
        let regions = range.start / REGION..range.end.div_ceil(REGION);
        pieces(regions, 64).map(|part| {
            let bits = u64::MAX >> (64 - (part.end - part.start)) << (part.start % 64);
            ((part.start / 64) as usize, bits)
        })
    }

    /// Whether all regions of a range are marked.
    pub(super) fn is_marked(&self, range: &Range<u64>) -> bool {
        Self::marks_of(range)
            .all(|(word, bits)| self.marks[word].load(Ordering::Acquire) & bits == bits)
    }

    /// Whether any region is marked.
    pub(super) fn has_marks(&self) -> bool {
        self.marks.iter().any(|word| word.load(Ordering::Acquire) != 0)
    }

    /// Marks all regions of a range durably.
    fn mark(&self, file: &dyn File, range: &Range<u64>) -> io::Result<()> {
        if self.is_marked(range) {
            return Ok(());
        }
        let _held = self.marking.lock().expect("no worker panics with the lock");
        let words: Vec<_> = Self::marks_of(range).collect();
        let Some((first, _)) = words.first() else { return Ok(()) };
        let word = |(word, bits): &(usize, u64)| self.marks[*word].load(Ordering::Acquire) | bits;
        let bytes: Vec<u8> = words.iter().flat_map(|one| word(one).to_le_bytes()).collect();
        file.write_durably_at(&bytes, self.layout.marks() + *first as u64 * 8)?;
        for (word, bits) in words {
            self.marks[word].fetch_or(bits, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Removes all marks, when all data and checksums are durable and no change is under way. A mark
    /// that stays after a crash does no harm, so this is not durable.
    pub(super) fn clear_marks(&self, file: &dyn File) -> io::Result<()> {
        let _held = self.marking.lock().expect("no worker panics with the lock");
        if self.has_marks() {
            self.marks.iter().for_each(|word| word.store(0, Ordering::Release));
            file.write_at(&vec![0; self.marks.len() * 8], self.layout.marks())?;
        }
        Ok(())
    }

    /// Verifies all units; returns the ranges of bytes without their checksum or that cannot be
    /// read, in order.
    pub(super) fn verify(&self, file: &dyn File) -> Vec<Range<u64>> {
        let mut bad: Vec<Range<u64>> = Vec::new();
        for units in pieces(0..self.layout.end(), LARGEST) {
            let numbers: Vec<_> = match self.load(file, &units) {
                Ok((data, sums)) => mismatches(&data, &sums).collect(),
                Err(_) => (0..((units.end - units.start) / UNIT) as usize).collect(),
            };
            for start in numbers.into_iter().map(|number| units.start + number as u64 * UNIT) {
                match bad.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end += UNIT,
                    None => bad.push(start..start + UNIT),
                }
            }
        }
        bad
    }
}

/// The units inside a range; empty, at an end of a unit, if there is none.
fn whole_units(range: &Range<u64>) -> Range<u64> {
    let start = range.start.next_multiple_of(UNIT);
    start..(range.end / UNIT * UNIT).max(start)
}
