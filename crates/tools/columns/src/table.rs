//! Whole tables in memory: of a [`Batch`], or of a file that farlane wrote.

use crate::batch::Cells;
use crate::read::is_parquet;
use crate::{Batch, Kind, Schema};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek};

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<TableColumn>,
    /// Number of rows.
    pub rows: usize,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Name of the column.
    pub name: String,
    /// Unit of the numbers, such as `ns`; empty if there is none, or if it is unknown.
    pub unit: String,
    /// Type of the cells.
    pub kind: Kind,
    /// The cells.
    pub cells: Cells,
}

impl From<Batch> for Table {
    fn from(batch: Batch) -> Self {
        let (schema, rows) = (batch.schema(), batch.rows());
        let columns = schema.iter().zip(batch.into_columns()).map(|(column, cells)| TableColumn {
            name: column.name.to_owned(),
            unit: column.unit.to_owned(),
            kind: column.kind,
            cells,
        });
        Self { columns: columns.collect(), rows }
    }
}

impl Table {
    /// Reads a file of [`RowFiles`](crate::RowFiles): Parquet by its first bytes, otherwise CSV,
    /// in which a column of whole numbers and empty cells has numbers. A column of empty cells has
    /// numbers if its name ends in `_ns`.
    ///
    /// # Errors
    /// Errors of the file and of its format. A column whose type is not in [`Kind`].
    pub fn read(mut file: File) -> io::Result<Self> {
        if is_parquet(&mut file)? { parquet_table(file) } else { csv_table(file) }
    }
}

impl Batch {
    /// Reads a file of these columns.
    ///
    /// # Errors
    /// As [`Table::read`]; other columns.
    pub fn read(file: File, schema: Schema) -> io::Result<Self> {
        let Table { columns, rows } = Table::read(file)?;
        let found = columns.iter().map(|column| (&*column.name, column.kind));
        if !found.eq(schema.iter().map(|column| (column.name, column.kind))) {
            return Err(io::Error::other("a file with other columns"));
        }
        Ok(Self::of(schema, columns.into_iter().map(|column| column.cells).collect(), rows))
    }
}

/// Returns the keys and values in the footer of a Parquet file.
///
/// # Errors
/// Errors of the file, and of its format.
pub fn metadata(file: File) -> io::Result<BTreeMap<String, String>> {
    let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
    let pairs = reader.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    Ok(pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect())
}

fn csv_table(mut file: File) -> io::Result<Table> {
    let mut reader = csv::Reader::from_reader(&file);
    let heads = reader.headers().map_err(io::Error::other)?.clone();
    let mut seen = vec![Seen::default(); heads.len()];
    for record in reader.into_records() {
        let record = record.map_err(io::Error::other)?;
        seen.iter_mut().zip(&record).for_each(|(seen, cell)| seen.add(cell));
    }
    let column = |(name, seen): (&str, Seen)| {
        let kind = seen.kind(name);
        TableColumn { name: name.to_owned(), unit: String::new(), kind, cells: Cells::new(kind) }
    };
    let mut columns: Vec<TableColumn> = heads.iter().zip(seen).map(column).collect();
    // The second time, the type of each column is known.
    file.rewind()?;
    let mut rows = 0;
    for record in csv::Reader::from_reader(&file).into_records() {
        let record = record.map_err(io::Error::other)?;
        for (column, cell) in columns.iter_mut().zip(&record) {
            column.push(cell)?;
        }
        rows += 1;
    }
    Ok(Table { columns, rows })
}

/// The cells of a column of CSV.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    empty: bool,
    unsigned: bool,
    negative: bool,
    text: bool,
}

impl Seen {
    fn add(&mut self, cell: &str) {
        match (cell.is_empty(), cell.parse::<u64>(), cell.parse::<i64>()) {
            (true, ..) => self.empty = true,
            (_, Ok(_), _) => self.unsigned = true,
            (_, _, Ok(_)) => self.negative = true,
            _ => self.text = true,
        }
    }

    fn kind(self, name: &str) -> Kind {
        let Self { empty, unsigned, negative, text } = self;
        match (empty, unsigned, negative, text) {
            (false, true, false, false) => Kind::Unsigned,
            (false, _, true, false) => Kind::Signed,
            (true, true, false, false) => Kind::Optional,
            (_, false, false, false) if name.ends_with("_ns") => Kind::Optional,
            _ => Kind::Text,
        }
    }
}

impl TableColumn {
    /// Adds a cell of CSV.
    fn push(&mut self, cell: &str) -> io::Result<()> {
        let changed = || io::Error::other(format!("column {} changed while read", self.name));
        match (&mut self.cells, self.kind) {
            (Cells::Numbers(numbers), Kind::Unsigned) => {
                numbers.push(cell.parse::<u64>().map_err(|_| changed())? as i64);
            }
            (Cells::Numbers(numbers), _) => numbers.push(cell.parse().map_err(|_| changed())?),
            (Cells::Optional(numbers), _) => numbers.push(cell.parse().ok()),
            (Cells::Texts(texts), _) => texts.push(cell),
        }
        Ok(())
    }
}

fn parquet_table(file: File) -> io::Result<Table> {
    let reader = SerializedFileReader::new(file).map_err(io::Error::other)?;
    let about = reader.metadata().file_metadata();
    let unit = |name: &str| {
        let mut pairs = about.key_value_metadata().into_iter().flatten();
        let unit = pairs.find(|pair| pair.key.strip_prefix("unit.") == Some(name));
        unit.and_then(|pair| pair.value.clone()).unwrap_or_default()
    };
    let column = |field: &Type| {
        let name = field.name();
        let kind = kind(field).ok_or_else(|| {
            io::Error::other(format!("column {name} has neither whole numbers nor texts"))
        })?;
        let (name, unit) = (name.to_owned(), unit(name));
        Ok(TableColumn { name, unit, kind, cells: Cells::new(kind) })
    };
    let fields = about.schema().get_fields().iter();
    let mut columns =
        fields.map(|field| column(field)).collect::<io::Result<Vec<TableColumn>>>()?;
    let mut rows = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(io::Error::other)?;
        let count = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        for (number, column) in columns.iter_mut().enumerate() {
            let cells = group.get_column_reader(number).map_err(io::Error::other)?;
            read(cells, count, &mut column.cells)?;
        }
        rows += count;
    }
    Ok(Table { columns, rows })
}

/// Returns the type of a column; `None` if it is none of farlane's.
fn kind(field: &Type) -> Option<Kind> {
    if !field.is_primitive() {
        return None;
    }
    let is_optional = field.is_optional();
    let about = field.get_basic_info();
    let is_unsigned = about.converted_type() == ConvertedType::UINT_64
        || matches!(about.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed);
    match (field.get_physical_type(), is_optional) {
        (Physical::INT64, true) if is_unsigned => Some(Kind::Optional),
        (Physical::INT64, false) if is_unsigned => Some(Kind::Unsigned),
        (Physical::INT64, false) => Some(Kind::Signed),
        (Physical::BYTE_ARRAY, false) => Some(Kind::Text),
        _ => None,
    }
}

/// Adds the cells of a row group.
fn read(reader: ColumnReader, rows: usize, cells: &mut Cells) -> io::Result<()> {
    match (reader, cells) {
        (ColumnReader::Int64ColumnReader(reader), Cells::Numbers(numbers)) => {
            values(reader, rows, numbers, None)
        }
        (ColumnReader::Int64ColumnReader(reader), Cells::Optional(numbers)) => {
            let (mut present, mut levels) = (Vec::new(), Vec::new());
            values(reader, rows, &mut present, Some(&mut levels))?;
            let mut present = present.into_iter();
            for level in levels {
                let number = if level == 1 { present.next() } else { None };
                numbers.push(number.map(|number| number as u64));
            }
            Ok(())
        }
        (ColumnReader::ByteArrayColumnReader(reader), Cells::Texts(texts)) => {
            let mut bytes = Vec::new();
            values(reader, rows, &mut bytes, None)?;
            bytes.iter().try_for_each(|text| {
                texts.push(text.as_utf8().map_err(io::Error::other)?);
                Ok(())
            })
        }
        _ => Err(io::Error::other("a column of another type than the schema's")),
    }
}

fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    values: &mut Vec<T::T>,
    mut levels: Option<&mut Vec<i16>>,
) -> io::Result<()> {
    let mut left = rows;
    while left > 0 {
        let read = reader.read_records(left, levels.as_deref_mut(), None, values);
        match read.map_err(io::Error::other)?.0 {
            0 => return Err(io::Error::other("a row group ends early")),
            read => left -= read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Csv, Parquet, Schema, Value};
    use std::io::Write;

    const COLUMNS: Schema = &[
        Column::text("name"),
        Column::unsigned("count", ""),
        Column::signed("error_ns", "ns"),
        Column::optional("late_ns", "ns"),
        Column::optional("never_ns", "ns"),
    ];

    fn same(found: &Cells, wanted: &Cells) -> bool {
        match (found, wanted) {
            (Cells::Numbers(found), Cells::Numbers(wanted)) => found == wanted,
            (Cells::Optional(found), Cells::Optional(wanted)) => {
                (&found.numbers, &found.present) == (&wanted.numbers, &wanted.present)
            }
            (Cells::Texts(found), Cells::Texts(wanted)) => {
                (&found.words, &found.cells) == (&wanted.words, &wanted.cells)
            }
            _ => false,
        }
    }

    /// More rows than a row group, so that groups are joined.
    #[test]
    fn table_of_a_file_equals_the_rows_that_were_written() {
        let [csv, parquet] = [0, 1].map(|_| tempfile::tempfile().unwrap());
        let mut as_csv = Csv::new(&csv, COLUMNS).unwrap();
        let mut as_parquet = Parquet::new(parquet.try_clone().unwrap(), COLUMNS).unwrap();
        let mut all = Batch::new(COLUMNS);
        for first in [0, crate::ROW_GROUP as u64] {
            let mut batch = Batch::new(COLUMNS);
            for row in first..first + crate::ROW_GROUP as u64 {
                batch.push(&[
                    Value::Text(["é", "two words", "a,\"b\""][row as usize % 3]),
                    Value::Unsigned(u64::MAX - row),
                    Value::Signed(7 - row as i64),
                    Value::Optional((row % 5 != 0).then_some(row)),
                    Value::Optional(None),
                ]);
            }
            as_csv.write(&batch).unwrap();
            as_parquet.write(&batch).unwrap();
            all.append(&batch);
        }
        as_parquet.finish(&[]).unwrap();
        let wanted = Table::from(all);
        for (mut file, has_units) in [(csv, false), (parquet, true)] {
            file.rewind().unwrap();
            let found = Table::read(file).unwrap();
            assert_eq!(found.rows, wanted.rows);
            assert_eq!(found.columns.len(), wanted.columns.len());
            for (found, wanted) in found.columns.iter().zip(&wanted.columns) {
                assert_eq!((&found.name, found.kind), (&wanted.name, wanted.kind));
                assert!(!has_units || found.unit == wanted.unit);
                assert!(same(&found.cells, &wanted.cells), "{}", found.name);
            }
        }
    }

    #[test]
    fn file_of_another_format_is_an_error() {
        for (bytes, why) in [(&b"a,b\n1\n"[..], "line: 2"), (b"PAR1 is all", "")] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            let error = Table::read(file).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
