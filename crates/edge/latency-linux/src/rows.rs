//! Rows of frames, while the run lasts.

use latency::Sample;

/// Where rows go. The thread that measures writes them.
pub trait Rows {
    /// Whether the next row does not have to wait for the disk.
    fn is_free(&mut self) -> bool;
    /// Adds the row of a frame.
    fn push(&mut self, sample: &Sample);
}

/// How long after a frame its row is written, in ns, and how many later frames there must be: what
/// is known of it travels in those.
const AGE: u64 = 2_000_000_000;
const LATER: u64 = 8;

/// Whether everything that will be known of a frame is known: one of this number that came, or was
/// due, at `at`, if the last one that this end knows is `last`.
pub fn is_old(now: u64, at: u64, sequence: u64, last: u64) -> bool {
    at + AGE <= now && sequence + LATER <= last
}

/// The rows of a run.
pub struct RowWriter<'a> {
    rows: Option<&'a mut dyn Rows>,
    /// The rows of all frames below are written.
    next: u64,
}

impl<'a> RowWriter<'a> {
    /// No row is written.
    pub fn new(rows: Option<&'a mut dyn Rows>) -> Self {
        Self { rows, next: 0 }
    }

    /// The first frame that has no row.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether it is too late for a stamp of this frame: its row is written.
    pub fn is_past(&self, sequence: u64) -> bool {
        self.rows.is_some() && sequence < self.next
    }

    /// Writes the rows of these frames, in the order of their numbers and from
    /// [`next`](Self::next) on, as far as nothing has to wait for the disk.
    pub fn advance<'s>(&mut self, frames: impl Iterator<Item = &'s Sample>) {
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
