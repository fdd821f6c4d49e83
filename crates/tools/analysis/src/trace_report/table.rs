//! `--csv` and `--parquet`: one row per command, always with the same columns.

use crate::commands::Command;
use crate::trace::Leg;
use crate::trace::measures::{self, Measure, MeasureKind};
use columns::{Batch, Column, RowFiles, Targets, Value};
use report::{Failure, Outcome};
use wire::Instant;

/// The first columns. The columns of [`measures::ALL`] follow.
const FIRST: [Column; 14] = [
    Column::unsigned("number", ""),
    Column::text("drive"),
    Column::unsigned("queue", ""),
    Column::unsigned("cid", ""),
    Column::unsigned("nsid", ""),
    Column::text("opcode"),
    Column::text("command"),
    Column::optional("lba", ""),
    Column::optional("blocks", ""),
    Column::unsigned("data_bytes", "B"),
    Column::unsigned("moved_bytes", "B"),
    Column::optional("status", ""),
    Column::unsigned("begin_ns", "ns"),
    Column::optional("end_ns", "ns"),
];

const COLUMNS: [Column; FIRST.len() + measures::COUNT] = {
    let mut columns = [FIRST[0]; FIRST.len() + measures::COUNT];
    let mut at = 0;
    while at < columns.len() {
        columns[at] = match at.checked_sub(FIRST.len()) {
            None => FIRST[at],
            Some(measure) => column(&measures::ALL[measure]),
        };
        at += 1;
    }
    columns
};

const fn column(measure: &Measure) -> Column {
    let unit = match measure.kind {
        MeasureKind::Tlps => "",
        MeasureKind::Bytes => "B",
        _ => "ns",
    };
    Column::optional(measure.column, unit)
}

/// Writer of the files with all commands that fit the filters.
pub struct Table(RowFiles);

impl Table {
    /// Begins the requested files; returns `None` if there are none. The error names a file.
    pub fn create(targets: Targets<'_>) -> Result<Option<Self>, Failure> {
        Ok(RowFiles::create(targets, &COLUMNS)?.map(Self))
    }

    /// Adds a command with its number and its path.
    pub fn add(&mut self, number: u64, command: &Command, path: &[Leg]) {
        // A file needs no flush by time: batches fill up as fast as the trace is read.
        with_row(number, command, path, |row| self.0.push(Instant::ZERO, row));
    }

    /// Ends the files. The error names the incomplete files.
    pub fn finish(self) -> Outcome {
        self.0.finish(&[
            ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("farlane.clock", "of the node nearest to the host, from its start".to_owned()),
        ])
    }
}

/// Adds a row to a batch without rows or with earlier rows of this function.
pub fn push(batch: &mut Batch, number: u64, command: &Command, path: &[Leg]) {
    with_row(number, command, path, |row| batch.push(row));
}

/// Returns a batch for [`push`].
pub fn batch() -> Batch {
    Batch::new(&COLUMNS)
}

fn with_row(number: u64, command: &Command, path: &[Leg], push: impl FnOnce(&[Value<'_>])) {
    let Command { device, queue, entry, .. } = command;
    let (drive, opcode) = (device.to_string(), format!("{:#04x}", entry.opcode));
    let name = command.name();
    let mut row = vec![
        Value::Unsigned(number),
        Value::Text(&drive),
        Value::Unsigned(u64::from(*queue)),
        Value::Unsigned(u64::from(entry.cid)),
        Value::Unsigned(u64::from(entry.nsid)),
        Value::Text(&opcode),
        Value::Text(&name),
        Value::Optional(command.slba()),
        Value::Optional(command.blocks().map(u64::from)),
        Value::Unsigned(command.transfer.bytes()),
        Value::Unsigned(command.moved),
        Value::Optional(command.status_number().map(u64::from)),
        Value::Unsigned(command.start.as_ns()),
        Value::Optional(command.end.map(|end| end.as_ns())),
    ];
    row.extend(measures::values(command, path).map(Value::Optional));
    push(&row);
}
