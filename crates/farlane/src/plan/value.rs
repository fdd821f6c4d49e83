//! A plan's values, each with the place where it stands.

use super::section::unknown;
use super::{PlanError, keys, mistake};
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Where a value or key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    File {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// In an option of the command line: this one.
    Option(String),
}

impl Origin {
    /// A file named here: in a plan from where the plan is, in an option from
    /// where the command runs.
    pub fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::File { file, .. } => Path::new(file).parent().unwrap_or(Path::new("")).join(name),
            Self::Option(_) => name.into(),
        }
    }

    /// A mistake here.
    pub fn fail(&self, what: impl Into<String>) -> PlanError {
        PlanError { origin: self.clone(), what: what.into() }
    }
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// An array.
    List(Vec<Value>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
    /// Anything else TOML has: its name.
    Other(&'static str),
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its place.
    pub origin: Origin,
    /// What it is.
    pub kind: Kind,
}

/// A key of a table, with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub origin: Origin,
    /// What it is set to.
    pub value: Value,
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn at(&self, offset: usize) -> Origin {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Origin::File {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
        }
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

/// Reads TOML.
///
/// # Errors
/// Where the text is none.
pub fn parse(file: &str, text: &str) -> Result<Value, PlanError> {
    let source = Source { file, text };
    let table = DeTable::parse(text).map_err(|error| {
        let (at, what) = mistake::of(text, &error);
        source.at(at).fail(what)
    })?;
    Ok(Value { origin: source.at(0), kind: Kind::Table(source.table(table.get_ref())) })
}

impl Value {
    /// Sets the key at a dotted path, as an option of the command line does.
    ///
    /// # Errors
    /// As [`Plan::with`](super::Plan::with).
    pub fn set(&mut self, path: &str, text: &str, option: &str) -> Result<(), PlanError> {
        let origin = Origin::Option(format!("{option} {path}={text}"));
        let mut value = self;
        let (mut name, mut heading) = (String::new(), String::new());
        for key in path.split('.') {
            heading = value.allows(key, &name, &heading).map_err(|what| origin.fail(what))?;
            name = if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
            value = value.member(key, &origin)?;
        }
        let kind = match text.parse() {
            Ok(number) => Kind::Integer(number),
            Err(_) => Kind::Text(text.to_owned()),
        };
        *value = Self { origin, kind };
        Ok(())
    }

    /// Whether the table `name`, headed as in [`keys::TABLES`], may get `key`
    /// from an option; yields the heading of what the key holds.
    fn allows(&self, key: &str, name: &str, heading: &str) -> Result<String, String> {
        let below =
            |key: &str| if heading.is_empty() { key.into() } else { format!("{heading}.{key}") };
        if let Some((_, known)) = keys::TABLES.iter().find(|(of, _)| *of == heading) {
            let what = if name.is_empty() { "key".into() } else { format!("key of [{name}]") };
            let found = known.contains(&key).then(|| below(key));
            return found.ok_or_else(|| unknown(&what, key, known));
        }
        let named = below("NAME");
        if !keys::TABLES.iter().any(|(of, _)| *of == named) {
            return Err(format!("there is no table above '{key}'"));
        }
        let names: Vec<&str> = match &self.kind {
            Kind::Table(entries) => entries.iter().map(|entry| entry.key.as_str()).collect(),
            _ => Vec::new(),
        };
        match names[..] {
            [] => Err(format!("the plan has no [{name}.{key}], nor any other [{name}.NAME]")),
            _ if names.contains(&key) => Ok(named),
            _ => Err(unknown(&format!("name in [{name}]"), key, &names)),
        }
    }

    /// What `key` of this table holds; an empty table if it held nothing.
    fn member(&mut self, key: &str, origin: &Origin) -> Result<&mut Self, PlanError> {
        let Kind::Table(entries) = &mut self.kind else {
            return Err(origin.fail(format!("there is no table above '{key}'")));
        };
        let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let value = Self { origin: origin.clone(), kind: Kind::Table(Vec::new()) };
            entries.push(Entry { key: key.to_owned(), origin: origin.clone(), value });
            entries.len() - 1
        });
        Ok(&mut entries[at].value)
    }
}
