//! Files with one row per event, for `--csv` and `--parquet`.
//!
//! The measuring thread only collects rows. Another thread formats, encodes and writes them, so
//! events wait only if the disk is slower than the events for a long time.

use crate::{Batch, Csv, Parquet, Schema, Value};
use report::target::{Sink, Target};
use report::{Failure, Outcome};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use wire::{Duration, Instant};

/// Maximum number of rows in a batch for the writer.
const BATCH: usize = 16 << 10;
/// Maximum age of a batch's first row when another row is added.
const OLDEST: Duration = Duration::from_ms(100);
/// Maximum number of batches that wait for the writer. With more batches the measuring thread
/// waits.
const WAITING: usize = 8;

/// The requested files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Targets<'a> {
    /// Target of `--csv`.
    pub csv: Option<&'a Target>,
    /// Target of `--parquet`.
    pub parquet: Option<&'a Target>,
}

/// Where the rows of a table go.
#[derive(Debug)]
pub enum RowTarget {
    /// To files.
    Files(RowFiles),
    /// To memory.
    Memory(Batch),
}

impl RowTarget {
    /// Adds a row at this time.
    ///
    /// # Panics
    /// If the cells do not match the schema.
    pub fn push(&mut self, now: Instant, row: &[Value]) {
        match self {
            Self::Files(files) => files.push(now, row),
            Self::Memory(batch) => batch.push(row),
        }
    }
}

/// Files that are being written. After the first error of a file, the file is abandoned and the
/// measurement continues.
#[derive(Debug)]
pub struct RowFiles {
    batch: Batch,
    /// Time of the first row in the batch.
    since: Instant,
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
    /// Number of batches that the writer has. `spare`: empty batches that the writer has returned.
    away: usize,
    spare: Vec<Batch>,
    writer: JoinHandle<Vec<File>>,
}

impl RowFiles {
    /// Begins the requested files; `None` if there are none. The error names a file.
    pub fn create(targets: Targets, schema: Schema) -> Result<Option<Self>, Failure> {
        let csv = targets.csv.map(|target| {
            Ok(File::begin(target, Csv::new(target.create()?, schema).map(Format::Csv)))
        });
        let parquet = targets.parquet.map(|target| {
            let file = Parquet::new(target.create_binary()?, schema);
            Ok(File::begin(target, file.map(|file| Format::Parquet(Box::new(file)))))
        });
        let files: Vec<File> = csv.into_iter().chain(parquet).collect::<Result<_, Failure>>()?;
        if files.is_empty() {
            return Ok(None);
        }
        let (full, batches) = sync_channel(WAITING);
        let (used, empty) = channel();
        #[allow(clippy::disallowed_methods, reason = "it only writes files")]
        let writer = std::thread::spawn(move || write(files, &batches, &used));
        let (batch, since) = (Batch::new(schema), Instant::ZERO);
        let (away, spare) = (0, Vec::new());
        Ok(Some(Self { batch, since, full, empty, away, spare, writer }))
    }

    /// Returns whether the next row can be added without waiting for the disk.
    pub fn is_free(&mut self) -> bool {
        for batch in self.empty.try_iter() {
            self.away -= 1;
            self.spare.push(batch);
        }
        self.away < WAITING
    }

    /// Adds a row at this time.
    ///
    /// # Panics
    /// If the cells do not match the schema.
    pub fn push(&mut self, now: Instant, row: &[Value]) {
        if self.batch.rows() == 0 {
            self.since = now;
        }
        self.batch.push(row);
        if self.batch.rows() >= BATCH || now.since(self.since) >= OLDEST {
            // Collects the batches that the writer has finished.
            self.is_free();
            let next = self.spare.pop().unwrap_or_else(|| Batch::new(self.batch.schema()));
            self.hand_over(next);
        }
    }

    fn hand_over(&mut self, next: Batch) {
        let batch = std::mem::replace(&mut self.batch, next);
        self.away += 1;
        // The writer lives until the channel is closed.
        self.full.send(batch).expect("the writer takes every batch");
    }

    /// Ends the files. Parquet receives these keys and values. The error names incomplete files.
    pub fn finish(mut self, metadata: &[(&str, String)]) -> Outcome {
        self.hand_over(Batch::new(&[]));
        drop(self.full);
        let files = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let faults = files.into_iter().filter_map(|file| file.finish(metadata));
        let faults: Vec<String> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(Failure(faults.join("; "))) }
    }
}

struct File {
    target: Target,
    format: Result<Format, io::Error>,
}

enum Format {
    Csv(Csv<Sink>),
    Parquet(Box<Parquet<Sink>>),
}

impl File {
    fn begin(target: &Target, format: io::Result<Format>) -> Self {
        Self { target: target.clone(), format }
    }

    fn write(&mut self, batch: &Batch) {
        let written = match &mut self.format {
            Ok(Format::Csv(file)) => file.write(batch),
            Ok(Format::Parquet(file)) => file.write(batch),
            Err(_) => return,
        };
        if let Err(fault) = written {
            self.format = Err(fault);
        }
    }

    fn finish(self, metadata: &[(&str, String)]) -> Option<String> {
        let ended = self.format.and_then(|format| match format {
            Format::Csv(_) => Ok(()),
            Format::Parquet(file) => file.finish(metadata),
        });
        ended.err().map(|fault| self.target.failed(&fault).to_string())
    }
}

/// Writes batches until the channel is closed.
fn write(mut files: Vec<File>, batches: &Receiver<Batch>, used: &Sender<Batch>) -> Vec<File> {
    for mut batch in batches {
        files.iter_mut().for_each(|file| file.write(&batch));
        batch.clear();
        // At the end nobody receives the batch.
        let _ = used.send(batch);
    }
    files
}
