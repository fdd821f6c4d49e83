//! Values of keys, each with its place.

use crate::error_text;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// The place of a value or key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In a file.
    File {
        /// Name of the file.
        file: Arc<str>,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1; in a CSV file the number of the cell.
        column: usize,
    },
    /// In this option of the command line.
    Option(String),
}

impl Origin {
    /// Returns the path of a file that is named here. A relative path in a plan is relative to the
    /// plan, in an option to the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::File { file, .. } => {
                Path::new(&**file).parent().unwrap_or(Path::new("")).join(name)
            }
            Self::Option(_) => name.into(),
        }
    }

    /// Returns a mistake at this place.
    pub fn fail(&self, message: impl Into<String>) -> KeyError {
        KeyError { origin: self.clone(), message: message.into(), others: BTreeMap::new() }
    }
}

/// A mistake in a key or value, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The place.
    pub origin: Origin,
    /// The mistake, with the allowed values.
    pub message: String,
    /// Further mistakes in other places.
    others: BTreeMap<Origin, String>,
}

/// Maximum number of mistakes in a message.
const SHOWN: usize = 20;

impl KeyError {
    /// Returns the place of the mistake that the text shows first.
    pub fn first(&self) -> &Origin {
        self.others.keys().chain([&self.origin]).min().unwrap_or(&self.origin)
    }

    /// Combines two mistakes and their further mistakes. Each place has only one mistake, because
    /// many stations can read one table.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (origin, message) in std::iter::once((other.origin, other.message)).chain(other.others)
        {
            if origin != self.origin {
                self.others.entry(origin).or_insert(message);
            }
        }
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Option(option) => f.write_str(option),
        }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<_> = self.others.iter().collect();
        all.push((&self.origin, &self.message));
        all.sort_unstable();
        for (number, (origin, message)) in all.iter().take(SHOWN).enumerate() {
            let line = if number == 0 { "" } else { "\n" };
            write!(f, "{line}{origin}: {message}")?;
        }
        match all.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// The contents of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// An array.
    List(Vec<Value>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
    /// Another type of TOML, by name.
    Other(&'static str),
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Place of the value.
    pub origin: Origin,
    /// Contents of the value.
    pub kind: Kind,
}

/// A key of a table, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub origin: Origin,
    /// Value of the key.
    pub value: Value,
}

/// The text of a file, for the places in it.
#[derive(Debug)]
pub struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
    /// Start of each line in bytes.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Returns the text of the file with this name.
    pub fn new(file: &str, text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { file: file.into(), text, lines: std::iter::once(0).chain(ends).collect() }
    }

    /// Returns the place of a byte.
    pub fn at(&self, offset: usize) -> Origin {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1];
        let column = self.text[start..offset].chars().count() + 1;
        Origin::File { file: self.file.clone(), line, column }
    }

    fn value(&self, offset: usize, value: &DeValue) -> Value {
        let origin = self.at(offset);
        let kind = match value {
            DeValue::String(text) => Kind::Text(text.to_string()),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Kind::Integer(number),
                    Err(_) => Kind::Other("number that is too large"),
                }
            }
            DeValue::Boolean(flag) => Kind::Boolean(*flag),
            // The text keeps the number exact.
            DeValue::Float(number) => Kind::Text(number.as_str().to_owned()),
            DeValue::Array(items) => {
                let item =
                    |item: &toml::Spanned<DeValue>| self.value(item.span().start, item.get_ref());
                Kind::List(items.iter().map(item).collect())
            }
            DeValue::Table(table) => Kind::Table(self.table(table)),
            other => Kind::Other(other.type_str()),
        };
        Value { origin, kind }
    }

    fn table(&self, table: &DeTable) -> Vec<Entry> {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| {
                let start = key.span().start;
                let value = self.value(value.span().start, value.get_ref());
                let key = key.get_ref().to_string();
                (start, Entry { key, origin: self.at(start), value })
            })
            .collect();
        entries.sort_by_key(|(start, _)| *start);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// Parses TOML.
///
/// # Errors
/// If the text is not TOML; the error has the place of the mistake.
pub fn parse(file: &str, text: &str) -> Result<Value, KeyError> {
    let source = Source::new(file, text);
    let table = DeTable::parse(text).map_err(|error| {
        let (at, message) = error_text::describe(text, &error);
        source.at(at).fail(message)
    })?;
    Ok(Value { origin: source.at(0), kind: Kind::Table(source.table(table.get_ref())) })
}

impl Value {
    /// Returns the entries of a table.
    ///
    /// # Errors
    /// If the value is not a table.
    pub fn entries(&self) -> Result<&[Entry], KeyError> {
        match &self.kind {
            Kind::Table(entries) => Ok(entries),
            _ => Err(self.origin.fail("expected a table")),
        }
    }

    /// Returns the value of `key` in this table. A missing key is added with an empty table.
    ///
    /// # Errors
    /// If the value is not a table.
    pub fn member(&mut self, key: &str, origin: &Origin) -> Result<&mut Self, KeyError> {
        let Kind::Table(entries) = &mut self.kind else {
            let message = format!("the value that should have the key '{key}' is not a table");
            return Err(origin.fail(message));
        };
        let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let value = Self { origin: origin.clone(), kind: Kind::Table(Vec::new()) };
            entries.push(Entry { key: key.to_owned(), origin: origin.clone(), value });
            entries.len() - 1
        });
        Ok(&mut entries[at].value)
    }
}
