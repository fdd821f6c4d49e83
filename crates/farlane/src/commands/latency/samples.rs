//! `--csv` and `--parquet`: a row a frame, in ns of TAI, while the run lasts.

use super::document::Document;
use super::options::Output;
use crate::rows::{RowFiles, Targets};
use columns::{Column, Schema, Value};
use latency::{Sample, Stamp};
use live::latency::now;
use report::{Failure, Outcome};
use wire::Instant;

/// The columns of both.
const COLUMNS: Schema = &[
    Column::unsigned("sequence", ""),
    Column::unsigned("scheduled_ns", "ns"),
    Column::unsigned("woken_ns", "ns"),
    Column::unsigned("sent_ns", "ns"),
    Column::optional("queued_ns", "ns"),
    Column::optional("driver_ns", "ns"),
    Column::optional("wire_ns", "ns"),
    Column::optional("arrived_wire_ns", "ns"),
    Column::optional("arrived_ns", "ns"),
    Column::optional("received_ns", "ns"),
    Column::optional("returned_ns", "ns"),
    Column::optional("back_queued_ns", "ns"),
    Column::optional("back_driver_ns", "ns"),
    Column::optional("back_wire_ns", "ns"),
    Column::optional("back_arrived_wire_ns", "ns"),
    Column::optional("back_arrived_ns", "ns"),
    Column::optional("back_received_ns", "ns"),
];

/// How long after a frame its row is written, in ns, and how many later frames there must be: what
/// is known of it travels in those.
const AGE: u64 = 2_000_000_000;
const LATER: u64 = 8;

/// Whether everything that will be known of a frame is known: one of this number that came, or was
/// due, at `at`, if the last one that this end knows is `last`.
pub fn is_old(now: u64, at: u64, sequence: u64, last: u64) -> bool {
    at + AGE <= now && sequence + LATER <= last
}

/// The files of a run, written while it lasts.
#[derive(Debug)]
pub struct Rows {
    files: Option<RowFiles>,
    /// When they were begun, in ns.
    began: u64,
    /// The rows of all frames below are written.
    next: u64,
}

impl Rows {
    /// Begins the files that are wanted. Their writer has the CPUs and the class of this thread.
    pub fn create(output: &Output) -> Result<Self, Failure> {
        let targets = Targets { csv: output.csv.as_ref(), parquet: output.parquet.as_ref() };
        let files = RowFiles::create(targets, COLUMNS)?;
        Ok(Self { files, began: now(), next: 0 })
    }

    /// The first frame that has no row.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether it is too late for a stamp of this frame: its row is written.
    pub fn is_past(&self, sequence: u64) -> bool {
        self.files.is_some() && sequence < self.next
    }

    /// Writes the rows of these frames, in the order of their numbers and from
    /// [`next`](Self::next) on, as far as nothing has to wait for the disk.
    pub fn advance<'a>(&mut self, frames: impl Iterator<Item = &'a Sample>) {
        let Some(files) = &mut self.files else { return };
        let time = Instant::from_ns(now().saturating_sub(self.began));
        for sample in frames {
            if !files.is_free() {
                break;
            }
            files.push(time, &row(sample));
            self.next = sample.sequence + 1;
        }
    }

    /// Writes the rows of these frames, and ends the files.
    pub fn finish(self, document: &Document, frames: &[Sample]) -> Outcome {
        let Some(mut files) = self.files else { return Ok(()) };
        let time = Instant::from_ns(now().saturating_sub(self.began));
        frames.iter().for_each(|sample| files.push(time, &row(sample)));
        files.finish(&[
            ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("farlane.end", document.end.clone()),
            ("farlane.label", document.label.clone()),
            ("farlane.run", document.run.clone()),
            ("farlane.interval_ns", document.interval_ns.to_string()),
            ("farlane.cycle_ns", document.cycle_ns.to_string()),
            ("farlane.window_ns", document.window_ns.to_string()),
            ("farlane.clock", "TAI since 1970".to_owned()),
            ("farlane.ended", document.ended.clone()),
        ])
    }
}

fn row(sample: &Sample) -> [Value<'static>; COLUMNS.len()] {
    let cell = |stamp: Stamp| Value::Optional(stamp.map(u64::from));
    [
        Value::Unsigned(sample.sequence),
        Value::Unsigned(sample.scheduled),
        Value::Unsigned(sample.woken),
        Value::Unsigned(sample.sent),
        cell(sample.departure.queued),
        cell(sample.departure.driver),
        cell(sample.departure.wire),
        cell(sample.arrived_wire),
        cell(sample.arrived),
        cell(sample.received),
        cell(sample.returned),
        cell(sample.back_departure.queued),
        cell(sample.back_departure.driver),
        cell(sample.back_departure.wire),
        cell(sample.back_arrived_wire),
        cell(sample.back_arrived),
        cell(sample.back_received),
    ]
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
