//! Rows of frames, written during the run.

use latency::Sample;

/// The destination of rows. The measuring thread writes them.
pub trait Rows {
    /// Whether the next row can be added without waiting for the disk.
    fn is_free(&mut self) -> bool;
    /// Adds the row of a frame.
    fn push(&mut self, sample: &Sample);
}

/// When the row of a frame is written: after this time in ns, and after this many later frames,
/// which carry stamps of earlier ones.
const AGE: u64 = 2_000_000_000;
const LATER: u64 = 8;

/// Whether a frame is complete: it has this number and arrived, or was due, at `at`; `last` is the
/// last known frame.
pub(crate) fn is_old(now: u64, at: u64, sequence: u64, last: u64) -> bool {
    at + AGE <= now && sequence + LATER <= last
}

/// The row writer of a run.
pub(crate) struct RowWriter<'a> {
    rows: Option<&'a mut dyn Rows>,
    /// The rows of all lower frames are written.
    next: u64,
}

impl<'a> RowWriter<'a> {
    /// A writer before the first row.
    pub(crate) fn new(rows: Option<&'a mut dyn Rows>) -> Self {
        Self { rows, next: 0 }
    }

    /// The first frame without a row.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the row of this frame is written, so that a stamp is too late.
    pub(crate) fn is_past(&self, sequence: u64) -> bool {
        self.rows.is_some() && sequence < self.next
    }

    /// Writes the rows of these frames, ordered by number and from [`next`](Self::next) on, until
    /// the disk is busy.
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

    /// Frames every 4 s wait for later ones, frames every microsecond for the time.
    #[test]
    fn a_row_is_written_when_nothing_more_is_expected() {
        assert!(!is_old(1_999_999_999, 0, 5, 1000) && is_old(2_000_000_000, 0, 5, 1000));
        assert!(!is_old(28_000_000_000, 0, 0, 7) && is_old(32_000_000_000, 0, 0, 8));
    }
}
