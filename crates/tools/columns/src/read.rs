//! Reads columns of a CSV or Parquet file, one row at a time.

use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

/// The first bytes of a Parquet file.
const PARQUET: &[u8; 4] = b"PAR1";

/// A file of rows with named columns.
pub struct Rows {
    /// Names of the columns.
    pub names: Vec<String>,
    source: Source,
}

enum Source {
    Csv { lines: io::Lines<BufReader<File>>, line: u64 },
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
        let mut magic = Vec::new();
        file.by_ref().take(PARQUET.len() as u64).read_to_end(&mut magic)?;
        file.rewind()?;
        if magic == PARQUET {
            let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
            let fields = reader.metadata().file_metadata().schema().get_fields();
            let names = fields.iter().map(|field| field.name().to_owned()).collect();
            return Ok(Self { names, source: Source::Parquet(Box::new(reader)) });
        }
        let mut lines = BufReader::new(file).lines();
        let heading = lines.next().transpose()?.unwrap_or_default();
        let names = cells(heading.trim_start_matches('\u{feff}'));
        Ok(Self { names, source: Source::Csv { lines, line: 1 } })
    }

    /// Returns the rows of these columns, each with its place: `line 2` of CSV, `row 1` of Parquet.
    /// Empty lines of CSV are skipped. Times of Parquet's type TIMESTAMP are in seconds. A missing
    /// cell is an empty text.
    ///
    /// # Errors
    /// If a column of Parquet has no numbers.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn of(self, columns: &[usize]) -> io::Result<RowIterator> {
        match self.source {
            Source::Csv { lines, mut line } => {
                let columns = columns.to_vec();
                let numbered = lines.map(move |text| {
                    line += 1;
                    Ok((line, text?))
                });
                let filled = |row: &io::Result<(u64, String)>| {
                    row.as_ref().map_or(true, |(_, text)| !text.is_empty())
                };
                let row = move |row: io::Result<(u64, String)>| {
                    let (line, text) = row?;
                    let mut all = cells(&text);
                    let cell =
                        |at: &usize| all.get_mut(*at).map(std::mem::take).unwrap_or_default();
                    Ok((format!("line {line}"), columns.iter().map(cell).collect()))
                };
                Ok(Box::new(numbered.filter(filled).map(row)))
            }
            Source::Parquet(reader) => parquet_rows(reader, columns),
        }
    }
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

/// The cells of a line of CSV.
fn cells(line: &str) -> RowCells {
    let (mut cells, mut quoted, mut before) = (vec![String::new()], false, ' ');
    for character in line.chars() {
        let cell = cells.last_mut().expect("there is one");
        match character {
            '"' => {
                // Two marks inside quotation marks are one.
                if !quoted && before == '"' {
                    cell.push('"');
                }
                quoted = !quoted;
            }
            ',' if !quoted => cells.push(String::new()),
            _ => cell.push(character),
        }
        before = character;
    }
    cells
}
