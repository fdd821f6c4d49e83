//! Rows in memory, by column.

use crate::{Kind, Schema};
use std::collections::BTreeMap;

/// The value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Value in a column of [`Kind::Unsigned`].
    Unsigned(u64),
    /// Value in a column of [`Kind::Signed`].
    Signed(i64),
    /// Value in a column of [`Kind::Optional`].
    Optional(Option<u64>),
    /// Value in a column of [`Kind::Text`].
    Text(&'a str),
}

/// Rows of one schema.
#[derive(Clone, Debug)]
pub struct Batch {
    schema: Schema,
    columns: Vec<Cells>,
    rows: usize,
}

/// The cells of a column, as Apache Arrow lays them out.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Numbers. Values of [`Kind::Unsigned`] are stored with the same 64 bits.
    Numbers(Vec<i64>),
    /// Numbers, some of which are missing.
    Optional(Optionals),
    /// Texts.
    Texts(Texts),
}

/// Numbers, some of which are missing.
#[derive(Clone, Debug, Default)]
pub struct Optionals {
    /// The 64 bits of each number; 0 for a missing number.
    pub numbers: Vec<i64>,
    /// A bit by row, least significant bit first: 1 for a number, 0 for a missing one (Arrow
    /// Columnar Format, "Validity bitmaps").
    pub present: Vec<u8>,
}

impl Cells {
    /// Creates a column without cells.
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Unsigned | Kind::Signed => Self::Numbers(Vec::new()),
            Kind::Optional => Self::Optional(Optionals::default()),
            Kind::Text => Self::Texts(Texts::default()),
        }
    }
}

impl Optionals {
    /// Adds a cell.
    pub(crate) fn push(&mut self, number: Option<u64>) {
        let row = self.numbers.len();
        if row.is_multiple_of(8) {
            self.present.push(0);
        }
        self.present[row / 8] |= u8::from(number.is_some()) << (row % 8);
        self.numbers.push(number.unwrap_or(0) as i64);
    }

    /// Returns the cell of a row.
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        (self.present[row / 8] >> (row % 8) & 1 == 1).then_some(self.numbers[row] as u64)
    }

    /// Returns all cells.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<u64>> {
        (0..self.numbers.len()).map(|row| self.get(row))
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.present.clear();
    }
}

/// Texts. Each different text is stored once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// The different texts, in the order of their first cells.
    pub words: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// Index in `words` by row.
    pub cells: Vec<u32>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        // Most texts equal the text of the previous row.
        if let Some(last) = self.cells.last()
            && self.words[*last as usize] == text
        {
            return *last;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.words.len() as u32;
        self.words.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(crate) fn push(&mut self, text: &str) {
        let number = self.number(text);
        self.cells.push(number);
    }

    fn append(&mut self, other: &Self) {
        let known: Vec<u32> = other.words.iter().map(|word| self.number(word)).collect();
        self.cells.extend(other.cells.iter().map(|cell| known[*cell as usize]));
    }
}

impl Batch {
    /// Creates a batch without rows.
    pub fn new(schema: Schema) -> Self {
        let cells = |column: &crate::Column| Cells::new(column.kind);
        Self { schema, columns: schema.iter().map(cells).collect(), rows: 0 }
    }

    /// Creates a batch of columns with this number of rows.
    pub(crate) fn of(schema: Schema, columns: Vec<Cells>, rows: usize) -> Self {
        Self { schema, columns, rows }
    }

    /// Adds a row with one cell per column.
    ///
    /// # Panics
    /// If the cells do not match the schema.
    pub fn push(&mut self, row: &[Value]) {
        assert_eq!(row.len(), self.schema.len(), "a cell a column");
        let places = self.columns.iter_mut().zip(self.schema);
        for ((cells, column), value) in places.zip(row) {
            match (cells, column.kind, value) {
                (Cells::Numbers(cells), Kind::Unsigned, Value::Unsigned(value)) => {
                    cells.push(*value as i64);
                }
                (Cells::Numbers(cells), Kind::Signed, Value::Signed(value)) => cells.push(*value),
                (Cells::Optional(cells), _, Value::Optional(value)) => cells.push(*value),
                (Cells::Texts(cells), _, Value::Text(text)) => cells.push(text),
                _ => panic!("{}: {value:?} in a column of {:?}", column.name, column.kind),
            }
        }
        self.rows += 1;
    }

    /// Adds the rows of another batch with the same schema.
    ///
    /// # Panics
    /// If the schemas differ.
    pub fn append(&mut self, other: &Self) {
        assert_eq!(self.schema, other.schema, "batches of one file");
        for (cells, more) in self.columns.iter_mut().zip(&other.columns) {
            match (cells, more) {
                (Cells::Numbers(cells), Cells::Numbers(more)) => cells.extend(more),
                (Cells::Optional(cells), Cells::Optional(more)) => {
                    more.iter().for_each(|cell| cells.push(cell));
                }
                (Cells::Texts(cells), Cells::Texts(more)) => cells.append(more),
                _ => unreachable!("columns of one schema"),
            }
        }
        self.rows += other.rows;
    }

    /// Removes all rows but keeps the memory of numbers.
    pub fn clear(&mut self) {
        for cells in &mut self.columns {
            match cells {
                Cells::Numbers(cells) => cells.clear(),
                Cells::Optional(cells) => cells.clear(),
                Cells::Texts(texts) => {
                    texts.cells.clear();
                    texts.words.clear();
                    texts.numbers.clear();
                }
            }
        }
        self.rows = 0;
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns.
    pub fn schema(&self) -> Schema {
        self.schema
    }

    /// Returns the cells by column.
    pub(crate) fn columns(&self) -> &[Cells] {
        &self.columns
    }

    /// Returns the cells by column, without a copy.
    pub fn into_columns(self) -> Vec<Cells> {
        self.columns
    }

    /// Returns the cell of a column in a row.
    pub(crate) fn value(&self, row: usize, column: usize) -> Value<'_> {
        match (&self.columns[column], self.schema[column].kind) {
            (Cells::Numbers(cells), Kind::Unsigned) => Value::Unsigned(cells[row] as u64),
            (Cells::Numbers(cells), _) => Value::Signed(cells[row]),
            (Cells::Optional(cells), _) => Value::Optional(cells.get(row)),
            (Cells::Texts(texts), _) => Value::Text(&texts.words[texts.cells[row] as usize]),
        }
    }
}
