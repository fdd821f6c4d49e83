//! Rows with one frame each, times in ns of TAI.

use columns::{Column, RowFiles, Schema, Targets, Value};
use latency::{Sample, Stamp};
use latency_linux::{Document, Rows, Run};
use report::{Failure, Outcome};
use std::time;
use wire::Instant;

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

/// CSV and Parquet files with one row per frame, written during the run.
pub struct Files {
    files: RowFiles,
    began: time::Instant,
}

impl Files {
    /// Begins the requested files; `None` if there are none.
    ///
    /// # Errors
    /// A sentence that names a file.
    pub fn create(targets: Targets) -> Result<Option<Self>, Failure> {
        let files = RowFiles::create(targets, COLUMNS)?;
        Ok(files.map(|files| Self { files, began: time::Instant::now() }))
    }

    /// Ends the files with the remaining rows.
    ///
    /// # Errors
    /// A sentence that names the incomplete files.
    pub fn finish(mut self, run: &Run) -> Outcome {
        run.unwritten.iter().for_each(|sample| self.push(sample));
        self.files.finish(&metadata(&run.document))
    }
}

impl Rows for Files {
    fn is_free(&mut self) -> bool {
        self.files.is_free()
    }

    fn push(&mut self, sample: &Sample) {
        let at = Instant::from_ns(self.began.elapsed().as_nanos() as u64);
        self.files.push(at, &row(sample));
    }
}

fn metadata(document: &Document) -> [(&'static str, String); 9] {
    [
        ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("farlane.end", document.end.clone()),
        ("farlane.label", document.label.clone()),
        ("farlane.run", document.run.clone()),
        ("farlane.interval_ns", document.interval_ns.to_string()),
        ("farlane.cycle_ns", document.cycle_ns.to_string()),
        ("farlane.window_ns", document.window_ns.to_string()),
        ("farlane.clock", "TAI since 1970".to_owned()),
        ("farlane.ended", document.ended.clone()),
    ]
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
