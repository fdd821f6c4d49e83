//! Files with rows of declared columns, for other programs, and files of other programs. The caller declares [`Column`]s once,
//! collects rows in a [`Batch`], and writes batches as [`Csv`], as [`Parquet`], or as both.
//!
//! Adding a row to a batch is cheap: numbers are copied, and a text is looked up among the texts of
//! its column. Formatting, encoding and writing work on whole batches and can run in another
//! thread, as in [`RowFiles`]. The caller provides the sinks.
//!
//! # Modules
//!
//! - `batch`: rows in memory, by column
//! - `csv`: the CSV format
//! - `parquet_file`: the Parquet format
//! - `read`: rows of CSV and Parquet files
//! - `rows`: files with one row per event, written by a thread
//! - `table`: whole files in memory

mod batch;
mod csv;
mod parquet_file;
mod read;
mod rows;
mod table;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Cells, Optionals, Texts, Value};
pub use csv::Csv;
pub use parquet_file::{Parquet, ROW_GROUP};
pub use read::{RowIterator, Rows};
pub use rows::{RowFiles, RowTarget, Targets};
pub use table::{Table, TableColumn, metadata};

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers from 0 to 2^64 - 1.
    Unsigned,
    /// Numbers from -2^63 to 2^63 - 1.
    Signed,
    /// Numbers from 0 to 2^64 - 1, or nothing: an empty cell in CSV, null in Parquet.
    Optional,
    /// Texts, most of which occur many times.
    Text,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column in CSV, and of the field in Parquet.
    pub name: &'static str,
    /// Type of the cells.
    pub kind: Kind,
    /// Unit of the numbers, such as `ns`; empty if there is none.
    pub unit: &'static str,
}

impl Column {
    /// Declares a column of unsigned numbers in this unit.
    pub const fn unsigned(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Unsigned, unit }
    }

    /// Declares a column of unsigned numbers in this unit, some of which may be missing.
    pub const fn optional(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Optional, unit }
    }

    /// Declares a column of signed numbers in this unit.
    pub const fn signed(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Signed, unit }
    }

    /// Declares a column of texts.
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: Kind::Text, unit: "" }
    }
}

/// The columns of a file, in order.
pub type Schema = &'static [Column];
