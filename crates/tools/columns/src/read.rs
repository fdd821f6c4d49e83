//! Reads columns of a CSV or Parquet file, one row at a time.

use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::{self, Read, Seek};

/// The first bytes of a Parquet file.
const PARQUET: &[u8; 4] = b"PAR1";

/// A file of rows with named columns.
pub struct Rows {
    /// Names of the columns.
    pub names: Vec<String>,
    source: Source,
}

enum Source {
    Csv(csv::Reader<File>),
    Parquet(Box<SerializedFileReader<File>>),
}

/// The cells of a row as texts.
pub type RowCells = Vec<String>;

/// Rows with their places.
pub type RowIterator = Box<dyn Iterator<Item = io::Result<(String, RowCells)>>>;

impl Rows {
    /// Opens a file: Parquet by its first bytes, otherwise CSV (RFC 4180) with the names of the
    /// columns in the first line.
    ///
    /// # Errors
    /// Errors of the file, and of its format.
    pub fn open(mut file: File) -> io::Result<Self> {
        if is_parquet(&mut file)? {
            let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
            let fields = reader.metadata().file_metadata().schema().get_fields();
            let names = fields.iter().map(|field| field.name().to_owned()).collect();
            return Ok(Self { names, source: Source::Parquet(Box::new(reader)) });
        }
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.flexible(true).trim(csv::Trim::All).from_reader(file);
        let names = reader.headers().map_err(io::Error::other)?;
        let names = names.iter().map(str::to_owned).collect();
        Ok(Self { names, source: Source::Csv(reader) })
    }

    /// Returns the rows of these columns, each with its place: `line 2` of CSV, `row 1` of Parquet.
    /// Times of Parquet's type TIMESTAMP are in seconds. A missing cell is an empty text.
    ///
    /// # Errors
    /// If a column of Parquet has no numbers.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn of(self, columns: &[usize]) -> io::Result<RowIterator> {
        match self.source {
            Source::Csv(reader) => {
                let columns = columns.to_vec();
                Ok(Box::new(reader.into_records().map(move |record| {
                    let record = record.map_err(io::Error::other)?;
                    let cell = |at: &usize| record.get(*at).unwrap_or_default().to_owned();
                    let line = record.position().map_or(0, csv::Position::line);
                    Ok((format!("line {line}"), columns.iter().map(cell).collect()))
                })))
            }
            Source::Parquet(reader) => parquet_rows(reader, columns),
        }
    }
}

/// Returns whether a file is a Parquet file, by its first bytes.
pub(crate) fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut magic = Vec::new();
    file.take(PARQUET.len() as u64).read_to_end(&mut magic)?;
    file.rewind()?;
    Ok(magic == PARQUET)
}

fn parquet_rows(
    reader: Box<SerializedFileReader<File>>,
    columns: &[usize],
) -> io::Result<RowIterator> {
    let schema = reader.metadata().file_metadata().schema();
    let fields: Vec<_> = columns.iter().map(|at| schema.get_fields()[*at].clone()).collect();
    if let Some(field) = fields.iter().find(|field| !is_number(field)) {
        return Err(io::Error::other(format!("column {} has no numbers", field.name())));
    }
    let decimals: Vec<usize> = fields.iter().map(|field| decimals(field)).collect();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build();
    let projection = projection.map_err(io::Error::other)?;
    let rows =
        RowIter::from_file_into(reader).project(Some(projection)).map_err(io::Error::other)?;
    Ok(Box::new(rows.zip(1u64..).map(move |(row, number)| {
        let row = row.map_err(io::Error::other)?;
        let cell = |(name, decimals): (&String, &usize)| {
            let field = row.get_column_iter().find(|(own, _)| *own == name).map(|(_, field)| field);
            field.map_or_else(String::new, |field| text(field, *decimals))
        };
        Ok((format!("row {number}"), names.iter().zip(&decimals).map(cell).collect()))
    })))
}

fn is_number(field: &Type) -> bool {
    use Physical::{DOUBLE, FLOAT, INT32, INT64};
    field.is_primitive() && matches!(field.get_physical_type(), INT32 | INT64 | FLOAT | DOUBLE)
}

/// Decimal places of a column's integers.
fn decimals(field: &Type) -> usize {
    let Some(LogicalType::Timestamp(time)) = field.get_basic_info().logical_type_ref() else {
        return 0;
    };
    match time.unit {
        TimeUnit::MILLIS => 3,
        TimeUnit::MICROS => 6,
        TimeUnit::NANOS => 9,
    }
}

fn text(field: &Field, decimals: usize) -> String {
    match field {
        Field::Null => String::new(),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Long(n) | Field::TimestampMillis(n) | Field::TimestampMicros(n) if decimals > 0 => {
            let scale = 10_i64.pow(decimals as u32);
            format!("{}.{:0decimals$}", n.div_euclid(scale), n.rem_euclid(scale))
        }
        other => other.to_string(),
    }
}
