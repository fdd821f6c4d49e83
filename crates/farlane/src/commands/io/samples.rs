//! `--csv` and `--parquet`: a row a transfer.

use super::Args;
use super::document::Document;
use columns::{Column, Schema, Value};
use columns::{RowFiles, Targets};
use report::{Failure, Outcome as Written};
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Duration, Instant};
use workload::{Outcome, Transfer};

/// The columns of both.
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

/// The same for all sections.
pub type SharedSamples = Rc<RefCell<Samples>>;

/// The files of all transfers.
#[derive(Debug)]
pub struct Samples {
    /// The target under load.
    pub target: String,
    files: RowFiles,
}

impl Samples {
    /// Begins the files that are wanted, if any is. The error names one.
    pub fn create(args: &Args) -> Result<Option<Self>, Failure> {
        let targets = Targets { csv: args.csv.as_ref(), parquet: args.parquet.as_ref() };
        let files = RowFiles::create(targets, COLUMNS)?;
        Ok(files.map(|files| Self { target: String::new(), files }))
    }

    /// Adds a transfer that ended at `now` and was submitted at `at`, counted from the run's begin.
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

    /// Ends the files; that of Parquet says what was measured. The error names those that do not
    /// hold everything.
    pub fn finish(self, document: &Document) -> Written {
        let workload = document.sections.iter();
        let workload: Vec<_> = workload.map(|of| (&of.name, &of.workload)).collect();
        let targets = document.targets.iter();
        let targets: Vec<_> = targets.map(|of| (&of.name, &of.drive.serial_number)).collect();
        self.files.finish(&[
            ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("farlane.targets", serde_json::to_string(&targets).expect("plain keys")),
            ("farlane.randseed", document.randseed.to_string()),
            ("farlane.workload", serde_json::to_string(&workload).expect("plain keys")),
            ("farlane.clock", "monotonic, from the beginning of the first section".to_owned()),
            ("farlane.ended", document.ended.to_owned()),
        ])
    }
}
