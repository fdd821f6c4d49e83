//! `--csv` and `--parquet`: a row a frame, in ns of TAI.

use super::document::Document;
use super::options::Output;
use crate::rows::{RowFiles, Targets};
use columns::{Column, Schema, Value};
use latency::{Sample, Stamp};
use report::Outcome;
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
    Column::optional("back_arrived_ns", "ns"),
    Column::optional("back_received_ns", "ns"),
];

/// Writes the files that are wanted.
pub fn write(document: &Document, samples: &[Sample], output: &Output) -> Outcome {
    let targets = Targets { csv: output.csv.as_ref(), parquet: output.parquet.as_ref() };
    let Some(mut files) = RowFiles::create(targets, COLUMNS)? else { return Ok(()) };
    for sample in samples {
        let cell = |stamp: Stamp| Value::Optional(stamp.map(u64::from));
        files.push(
            Instant::ZERO,
            &[
                Value::Unsigned(sample.sequence),
                Value::Unsigned(sample.scheduled),
                Value::Unsigned(sample.woken),
                Value::Unsigned(sample.sent),
                cell(sample.queued),
                cell(sample.driver),
                cell(sample.wire),
                cell(sample.arrived_wire),
                cell(sample.arrived),
                cell(sample.received),
                cell(sample.returned),
                cell(sample.back_arrived),
                cell(sample.back_received),
            ],
        );
    }
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
