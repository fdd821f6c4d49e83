//! Rows of declared columns, for the programs of others: the caller declares [`Column`]s once,
//! collects rows in a [`Batch`], and writes batches as [`Csv`], as [`Parquet`], or as both.
//!
//! Adding a row to a batch is cheap: numbers are copied, and a text is looked up among the texts
//! of its column. Whatever formats, encodes or writes happens with whole batches, and may happen
//! in another thread, as in [`RowFiles`]. Sinks are the caller's.
//!
//! # Modules
//!
//! - `batch`: rows in memory, by column
//! - `csv`: the CSV format
//! - `parquet_file`: the Parquet format
//! - `rows`: files with one row per event, written by a thread

mod batch;
mod csv;
mod parquet_file;
mod rows;
#[cfg(test)]
mod tests;

pub use batch::{Batch, Value};
pub use csv::Csv;
pub use parquet_file::{Parquet, ROW_GROUP};
pub use rows::{RowFiles, Targets};

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers from 0 to 2^64 - 1.
    Unsigned,
    /// Numbers from -2^63 to 2^63 - 1.
    Signed,
    /// Numbers from 0 to 2^64 - 1, or nothing: an empty cell in CSV, null in Parquet.
    Optional,
    /// Texts, most of which occur again and again.
    Text,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: the head of the column in CSV, the field in Parquet.
    pub name: &'static str,
    /// What its cells are.
    pub kind: Kind,
    /// The unit of its numbers, such as `ns`; empty if they have none.
    pub unit: &'static str,
}

impl Column {
    /// A column of numbers from 0 in this unit.
    pub const fn unsigned(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Unsigned, unit }
    }

    /// A column of numbers from 0 in this unit, some of which are missing.
    pub const fn optional(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Optional, unit }
    }

    /// A column of numbers of either sign in this unit.
    pub const fn signed(name: &'static str, unit: &'static str) -> Self {
        Self { name, kind: Kind::Signed, unit }
    }

    /// A column of texts.
    pub const fn text(name: &'static str) -> Self {
        Self { name, kind: Kind::Text, unit: "" }
    }
}

/// The columns of a file, in their order.
pub type Schema = &'static [Column];
