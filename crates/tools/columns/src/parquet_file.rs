//! The Parquet format (for readers of Apache Parquet format 2.9 and later): columns are INT64 or
//! UTF8, and required, or for INT64 optional.
//!
//! Numbers are delta-encoded (DELTA_BINARY_PACKED), so times and counters are small. Texts are
//! indices in a dictionary. Pages are not compressed. A truncated file has no footer, so readers
//! reject it.

use crate::batch::{Batch, Cells};
use crate::{Column, Kind, Schema};
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

/// Rows per row group; one group is kept in memory. The number is DuckDB's default (122,880),
/// rounded.
pub const ROW_GROUP: usize = 128 << 10;

/// A Parquet file that is being written.
pub struct Parquet<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Rows of the next row group.
    rows: Batch,
}

impl<W: Write + Send> Parquet<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn new(sink: W, schema: Schema) -> io::Result<Self> {
        let mut properties =
            WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Chunk);
        for column in schema.iter().filter(|column| column.kind != Kind::Text) {
            properties = properties
                .set_column_dictionary_enabled(column.name.into(), false)
                .set_column_encoding(column.name.into(), Encoding::DELTA_BINARY_PACKED);
        }
        let fields = schema.iter().map(field).collect::<Result<_>>();
        let root = fields
            .and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
        let file = root.and_then(|root| {
            SerializedFileWriter::new(sink, Arc::new(root), Arc::new(properties.build()))
        });
        Ok(Self { file: file.map_err(fault)?, rows: Batch::new(schema) })
    }

    /// Adds the rows of a batch. Full groups of [`ROW_GROUP`] rows are written.
    ///
    /// # Errors
    /// Errors of the sink. After an error nothing more can be written.
    pub fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.rows.append(batch);
        match self.rows.rows() {
            0..ROW_GROUP => Ok(()),
            _ => self.row_group().map_err(fault),
        }
    }

    /// Writes the last rows, and the footer with these keys and values. The unit of a column is the
    /// value of the key `unit.COLUMN`.
    ///
    /// # Errors
    /// Errors of the sink.
    pub fn finish(mut self, metadata: &[(&str, String)]) -> io::Result<()> {
        if self.rows.rows() > 0 {
            self.row_group().map_err(fault)?;
        }
        for (key, value) in metadata {
            let pair = KeyValue::new((*key).to_owned(), value.clone());
            self.file.append_key_value_metadata(pair);
        }
        for Column { name, unit, .. } in
            self.rows.schema().iter().filter(|column| !column.unit.is_empty())
        {
            let pair = KeyValue::new(format!("unit.{name}"), (*unit).to_owned());
            self.file.append_key_value_metadata(pair);
        }
        let mut sink = self.file.into_inner().map_err(fault)?;
        sink.flush()
    }

    fn row_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for cells in self.rows.columns() {
            let mut column = group.next_column()?.expect("a column of the schema");
            write_column(&mut column, cells)?;
            column.close()?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

fn field(column: &Column) -> Result<TypePtr> {
    let (physical, converted, logical) = match column.kind {
        Kind::Unsigned | Kind::Optional => {
            let logical = LogicalType::integer(64, false);
            (Physical::INT64, ConvertedType::UINT_64, Some(logical))
        }
        Kind::Signed => (Physical::INT64, ConvertedType::NONE, None),
        Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Some(LogicalType::String)),
    };
    let repetition = match column.kind {
        Kind::Optional => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    let builder = Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_converted_type(converted)
        .with_logical_type(logical);
    Ok(Arc::new(builder.build()?))
}

fn write_column(column: &mut SerializedColumnWriter, cells: &Cells) -> Result<()> {
    match cells {
        Cells::Numbers(numbers) => {
            column.typed::<Int64Type>().write_batch(numbers, None, None)?;
        }
        Cells::Optional(cells) => {
            let numbers: Vec<i64> = cells.iter().flatten().map(|number| number as i64).collect();
            // Definition levels: 1 for a cell with a value, 0 for null.
            let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
            column.typed::<Int64Type>().write_batch(&numbers, Some(&levels), None)?;
        }
        Cells::Texts(texts) => {
            let words: Vec<ByteArray> =
                texts.words.iter().map(|word| ByteArray::from(word.as_str())).collect();
            let cells: Vec<ByteArray> =
                texts.cells.iter().map(|cell| words[*cell as usize].clone()).collect();
            column.typed::<ByteArrayType>().write_batch(&cells, None, None)?;
        }
    }
    Ok(())
}

/// Returns the sink's own error, if there is one.
fn fault(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => {
            cause.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error)
        }
        other => io::Error::other(other.to_string()),
    }
}
