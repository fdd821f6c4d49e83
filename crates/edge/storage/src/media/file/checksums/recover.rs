//! The checksums after the end of a process.

use super::intent::Intent;
use super::layout::{INTENT, INTENTS, LARGEST, Layout, REGION, UNIT, pieces};
use super::{Checksums, mismatches, sums_of};
use crate::files::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

impl Checksums {
    /// Opens the checksums of a file with `size` bytes of data. `killed`: the page cache has all
    /// that the last process has written, and it was not closed in order.
    ///
    /// # Errors
    /// If the marks cannot be read.
    pub(in crate::media::file) fn open(
        file: &dyn File,
        size: u64,
        killed: bool,
    ) -> io::Result<Self> {
        let layout = Layout { size };
        let mut bytes = vec![0; layout.words() as usize * 8];
        file.read_at(&mut bytes, layout.marks())?;
        let word = |word: &[u8; 8]| AtomicU64::new(u64::from_le_bytes(*word));
        let marks = bytes.as_chunks().0.iter().map(word).collect();
        let sums = Self { layout, marks, marking: Mutex::new(()) };
        if sums.has_marks() {
            match killed {
                true => sums.after_kill(file),
                false => sums.after_crash(file),
            }
            // After an error the marks stay, and the regions are read again after the next crash.
            let _ = file
                .sync_data()
                .and_then(|()| file.zero_range(layout.intents(), INTENTS * INTENT))
                .and_then(|()| sums.clear_marks(file));
        }
        Ok(sums)
    }

    /// Units with the checksum of an intent get this checksum. Units that have neither their old
    /// nor their new checksum stay wrong: a kill does not tear units.
    fn after_kill(&self, file: &dyn File) {
        for number in 0..INTENTS {
            let mut bytes = [0; INTENT as usize];
            let read = file.read_at(&mut bytes, self.layout.intents() + number * INTENT);
            let intent = read.ok().and_then(|()| Intent::parse(&bytes, self.layout));
            let Some(intent) = intent else { continue };
            for units in pieces(intent.units.clone(), LARGEST) {
                let new = intent.sums(&units);
                self.change_sums(file, &units, |data, sums| {
                    for unit in mismatches(data, &sums.to_vec()) {
                        let range = unit * UNIT as usize..(unit + 1) * UNIT as usize;
                        if sums_of(&data[range]) == new[unit * 4..][..4] {
                            sums[unit * 4..][..4].copy_from_slice(&new[unit * 4..][..4]);
                        }
                    }
                });
            }
        }
    }

    /// All units of marked regions get the checksums of their data.
    fn after_crash(&self, file: &dyn File) {
        for region in 0..self.marks.len() as u64 * 64 {
            let word = self.marks[region as usize / 64].load(Ordering::Acquire);
            if word >> (region % 64) & 1 == 1 {
                let end = self.layout.end().min((region + 1) * REGION);
                self.accept(file, (region * REGION).min(end)..end);
            }
        }
    }

    /// Gives units the checksums of their data. Units that cannot be read keep their checksums.
    pub(super) fn accept(&self, file: &dyn File, units: Range<u64>) {
        for units in pieces(units, LARGEST) {
            self.change_sums(file, &units, |data, sums| *sums = sums_of(data));
        }
    }

    /// Changes the checksums of units by their data. If data or checksums cannot be read or written,
    /// a read of the units finds this fault of the medium.
    fn change_sums(
        &self,
        file: &dyn File,
        units: &Range<u64>,
        change: impl FnOnce(&[u8], &mut Vec<u8>),
    ) {
        let Ok((data, sums)) = self.load(file, units) else { return };
        let mut new = sums.clone();
        change(&data, &mut new);
        if new != sums {
            let _ = file.write_at(&new, self.layout.sum(units.start));
        }
    }
}
