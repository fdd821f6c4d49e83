//! `--csv` and `--parquet`: one row per transfer.

use columns::{Column, RowFiles, Schema, Targets, Value};
use report::{Failure, Outcome as Written};
use std::sync::{Arc, Mutex};
use wire::{Duration, Instant};
use workload::{Outcome, Transfer};

const COLUMNS: Schema = &[
    Column::text("section"),
    Column::unsigned("job", ""),
    Column::unsigned("submit_ns", "ns"),
    Column::unsigned("latency_ns", "ns"),
    Column::text("op"),
    Column::unsigned("offset", "B"),
    Column::unsigned("bytes", "B"),
    Column::text("status"),
    Column::text("target"),
];

/// Files of transfers that all sections share.
pub type SharedSamples = Arc<Mutex<Samples>>;

/// The files of all transfers.
#[derive(Debug)]
pub struct Samples {
    /// The target under load.
    pub target: String,
    files: RowFiles,
}

impl Samples {
    /// Begins the requested files; returns `None` if there are none.
    ///
    /// # Errors
    /// One line that names a file.
    pub fn create(targets: Targets<'_>) -> Result<Option<Self>, Failure> {
        let files = RowFiles::create(targets, COLUMNS)?;
        Ok(files.map(|files| Self { target: String::new(), files }))
    }

    /// Adds a transfer that ended at `now` and was submitted at `at`. Times count from the start of
    /// the run.
    pub fn write(
        &mut self,
        now: Instant,
        section: &str,
        op: &str,
        at: Duration,
        transfer: &Transfer,
    ) {
        let Transfer { job, offset, length, since, outcome, .. } = *transfer;
        let failure;
        let status = match outcome {
            Outcome::Done => "ok",
            Outcome::Lost => "lost",
            Outcome::Failed(status) => {
                failure = status.code.to_string();
                &failure
            }
        };
        self.files.push(
            now,
            &[
                Value::Text(section),
                Value::Unsigned(job as u64),
                Value::Unsigned(at.as_ns()),
                Value::Unsigned((now - since).as_ns()),
                Value::Text(op),
                Value::Unsigned(offset),
                Value::Unsigned(length),
                Value::Text(status),
                Value::Text(&self.target),
            ],
        );
    }

    /// Ends the files. Parquet receives `metadata`.
    ///
    /// # Errors
    /// One line that names the incomplete files.
    pub fn finish(self, metadata: &[(&str, String)]) -> Written {
        self.files.finish(metadata)
    }
}
