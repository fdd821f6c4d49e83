//! The CSV format (RFC 4180). The first line has the column names. Lines end with LF.

use crate::{Batch, Schema, Value};
use std::fmt::Write as _;
use std::io::{self, Write};

/// A CSV file that is being written.
#[derive(Debug)]
pub struct Csv<W> {
    sink: W,
    /// Buffer of formatted lines.
    text: String,
}

impl<W: Write> Csv<W> {
    /// Begins the file with the names of the columns.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn new(mut sink: W, schema: Schema) -> io::Result<Self> {
        let names: Vec<_> = schema.iter().map(|column| column.name).collect();
        writeln!(sink, "{}", names.join(","))?;
        Ok(Self { sink, text: String::new() })
    }

    /// Writes the rows of a batch and flushes the sink.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn write(&mut self, batch: &Batch) -> io::Result<()> {
        for row in 0..batch.rows() {
            for column in 0..batch.schema().len() {
                if column > 0 {
                    self.text.push(',');
                }
                cell(&mut self.text, batch.value(row, column));
            }
            self.text.push('\n');
        }
        self.sink.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.sink.flush()
    }
}

/// Appends a cell. A text with a comma, a quotation mark or a line break is quoted (RFC 4180,
/// section 2).
fn cell(line: &mut String, value: Value) {
    let written = match value {
        Value::Optional(None) => Ok(()),
        Value::Unsigned(number) | Value::Optional(Some(number)) => write!(line, "{number}"),
        Value::Signed(number) => write!(line, "{number}"),
        Value::Text(text) if text.contains([',', '"', '\n', '\r']) => {
            write!(line, "\"{}\"", text.replace('"', "\"\""))
        }
        Value::Text(text) => line.write_str(text),
    };
    written.expect("a string takes everything");
}
