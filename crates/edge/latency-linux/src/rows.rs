//! Rows of frames, written during the run.

use latency::Sample;

/// The destination of rows. The measuring thread writes them.
pub trait Rows {
    /// Whether the next row can be added without waiting for the disk.
    fn is_free(&mut self) -> bool;
    /// Adds the row of a frame.
    fn push(&mut self, sample: &Sample);
}

/// The row of a frame is written when `AGE` ns have passed and `LATER` later frames are known,
/// because later frames have stamps of earlier ones.
const AGE: u64 = 2_000_000_000;
const LATER: u64 = 8;

/// Whether no more stamps are expected for the frame `sequence`, which arrived or was due at `at`.
/// `last` is the number of the last known frame. Times are in ns.
pub(crate) fn is_old(now: u64, at: u64, sequence: u64, last: u64) -> bool {
    at + AGE <= now && sequence + LATER <= last
}

/// The row writer of a run.
pub(crate) struct RowWriter<'a> {
    rows: Option<&'a mut dyn Rows>,
    /// The number of the first frame without a row.
    next: u64,
}

impl<'a> RowWriter<'a> {
    /// A writer before the first row.
    pub(crate) fn new(rows: Option<&'a mut dyn Rows>) -> Self {
        Self { rows, next: 0 }
    }

    /// The number of the first frame without a row.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the row of the frame `sequence` is written, so that a further stamp is too late.
    pub(crate) fn is_past(&self, sequence: u64) -> bool {
        self.rows.is_some() && sequence < self.next
    }

    /// Writes the rows of `frames` until the disk is busy. `frames` must be ordered by number and
    /// begin at [`next`](Self::next).
    pub(crate) fn advance<'s>(&mut self, frames: impl Iterator<Item = &'s Sample>) {
        let Some(rows) = &mut self.rows else { return };
        for sample in frames {
            if !rows.is_free() {
                break;
            }
            rows.push(sample);
            self.next = sample.sequence + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 4 s between frames, a row waits for later frames; with 1 us, for the time.
    #[test]
    fn a_row_is_written_when_nothing_more_is_expected() {
        assert!(!is_old(1_999_999_999, 0, 5, 1000) && is_old(2_000_000_000, 0, 5, 1000));
        assert!(!is_old(28_000_000_000, 0, 0, 7) && is_old(32_000_000_000, 0, 0, 8));
    }
}
