//! Reads checked tables key by key. A key that is not set in the table is read from the table with
//! its defaults.

use crate::units::Parsed;
use crate::{Allowed, Entry, Key, KeyError, KeyValue, Kind, Origin, Table, Value};
use std::path::PathBuf;
use wire::units::with_unit;

/// A table and the tables with its defaults.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Name of the table, such as `drives.central`.
    pub name: String,
    /// Place of the table; the place of the parent table if it is not set.
    pub origin: Origin,
    keys: Table,
    layers: Vec<&'a [Entry]>,
}

/// Sets the fields of a structure for which keys with the same names are set.
#[macro_export]
macro_rules! set_fields {
    ($of:expr, $section:expr, $($field:ident)*) => {
        $(if let Some(value) = $section.get(stringify!($field)) {
            $of.$field = value;
        })*
    };
}

fn entries(value: &Value) -> &[Entry] {
    value.entries().expect("as checked")
}

impl<'a> Section<'a> {
    /// Returns the root table of a file, with these keys.
    pub fn root(keys: Table, value: &'a Value) -> Self {
        let (name, origin) = (String::new(), value.origin.clone());
        Self { name, origin, keys, layers: vec![entries(value)] }
    }

    /// Returns the table with these defaults.
    pub fn with_defaults(mut self, defaults: &Self) -> Self {
        self.layers.extend(&defaults.layers);
        self
    }

    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().copied().flatten()
    }

    /// Returns the keys that are set in the table or its defaults.
    pub fn keys_set(&self) -> impl Iterator<Item = &'static Key> {
        self.keys().filter(|key| self.find(key.name).is_some())
    }

    /// Returns whether the table can have a key.
    pub fn knows(&self, key: &str) -> bool {
        self.keys().any(|known| known.name == key)
    }

    /// Returns a table inside this one; empty if it is not set.
    ///
    /// # Panics
    /// If the key does not allow a table.
    pub fn table(&self, key: &str) -> Self {
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        let known = self.keys().find(|known| known.name == key).map(|known| known.allowed);
        let Some(Allowed::Table(keys) | Allowed::Named(keys)) = known else {
            panic!("[{name}] is a table")
        };
        let found = self.find(key);
        let origin = found.map_or(&self.origin, |entry| &entry.origin).clone();
        let layers = found.iter().map(|entry| entries(&entry.value)).collect();
        Self { name, origin, keys, layers }
    }

    /// Returns the tables inside the table `key`, by name, in the order of the file.
    pub fn named(&self, key: &str) -> Vec<(String, Self)> {
        let tables = self.table(key);
        let table = |entry: &'a Entry| {
            let name = format!("{}.{}", tables.name, entry.key);
            let layers = vec![entries(&entry.value)];
            (entry.key.clone(), Self { name, origin: entry.origin.clone(), layers, ..tables })
        };
        tables.layers.iter().copied().flatten().map(table).collect()
    }

    /// Returns the tables inside the table `key` with these defaults. If there are none, returns
    /// one table called `alone` with only the defaults.
    pub fn named_or(&self, key: &str, alone: &str, defaults: &Self) -> Vec<(String, Self)> {
        let named = self.named(key).into_iter();
        let named: Vec<_> = named.map(|(name, own)| (name, own.with_defaults(defaults))).collect();
        if !named.is_empty() {
            return named;
        }
        vec![(alone.to_owned(), Self { keys: self.table(key).keys, ..defaults.clone() })]
    }

    /// Returns whether the table is set.
    pub fn is_present(&self) -> bool {
        !self.layers.is_empty()
    }

    /// Returns the entry of a key in the table or in the defaults of the table; `None` if the key
    /// is not set.
    pub fn find(&self, key: &str) -> Option<&'a Entry> {
        self.layers.iter().find_map(|layer| layer.iter().find(|entry| entry.key == key))
    }

    /// Returns the place of a key; the place of the table if the key is not set.
    pub fn place(&self, key: &str) -> Origin {
        self.find(key).map_or_else(|| self.origin.clone(), |entry| entry.value.origin.clone())
    }

    /// Returns a mistake in the value of a key.
    ///
    /// # Errors
    /// The mistake.
    pub fn fail<T>(&self, key: &str, message: impl Into<String>) -> Result<T, KeyError> {
        Err(self.place(key).fail(message))
    }

    /// Returns the value of a key, if it is set.
    pub fn get<T: KeyValue>(&self, key: &str) -> Option<T> {
        self.read(key, T::parse, T::plain)
    }

    /// Returns the value of a key, parsed by `parse`, if it is set.
    pub fn parsed<T>(&self, key: &str, parse: fn(&str) -> Parsed<T>) -> Option<T> {
        self.read(key, parse, |number| parse(&number.to_string()).ok())
    }

    fn read<T>(
        &self,
        key: &str,
        parse: fn(&str) -> Parsed<T>,
        plain: impl Fn(i64) -> Option<T>,
    ) -> Option<T> {
        let allowed = self.keys().find(|known| known.name == key).map(|known| known.allowed);
        let entry = self.find(key)?;
        let read = match (allowed, &entry.value.kind) {
            (Some(Allowed::TimeIn(_, unit)), Kind::Integer(number)) => {
                parse(&format!("{number}{unit}")).ok()
            }
            (Some(Allowed::TimeIn(_, unit)), Kind::Text(text)) => {
                parse(&with_unit(text, unit)).ok()
            }
            (_, kind) => read(kind, parse, plain),
        };
        Some(read.expect("as checked"))
    }

    /// Returns the items of an array, each with its place.
    pub fn list<T: KeyValue>(&self, key: &str) -> Vec<(T, Origin)> {
        self.items(key, |kind| read(kind, T::parse, T::plain))
    }

    /// Returns the names of a key with one name or an array of names, each with its place.
    pub fn names(&self, key: &str) -> Vec<(String, Origin)> {
        match self.text(key) {
            Some(name) => vec![(name.to_owned(), self.place(key))],
            None => self.list(key),
        }
    }

    /// Returns the items of an array, parsed by `parse`, each with its place.
    pub fn parsed_list<T>(&self, key: &str, parse: fn(&str) -> Parsed<T>) -> Vec<(T, Origin)> {
        self.items(key, |kind| read(kind, parse, |number| parse(&number.to_string()).ok()))
    }

    fn items<T>(&self, key: &str, read: impl Fn(&Kind) -> Option<T>) -> Vec<(T, Origin)> {
        let Some(Kind::List(items)) = self.find(key).map(|entry| &entry.value.kind) else {
            return Vec::new();
        };
        let item = |item: &Value| (read(&item.kind).expect("as checked"), item.origin.clone());
        items.iter().map(item).collect()
    }

    /// Returns a text or a word, if it is set.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match &self.find(key)?.value.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a required text; `expected` describes it in the error.
    ///
    /// # Errors
    /// If the key is not set.
    pub fn required(&self, key: &str, expected: &str) -> Result<&'a str, KeyError> {
        let missing = || self.origin.fail(format!("[{}] needs {key}{expected}", self.name));
        self.text(key).ok_or_else(missing)
    }

    /// Returns the path of a file; `None` if the key is not set. A relative path in a plan is
    /// relative to the folder of the plan, a relative path in an option to the working directory.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(|name| self.place(key).path(name))
    }
}

fn read<T>(
    kind: &Kind,
    parse: fn(&str) -> Parsed<T>,
    plain: impl Fn(i64) -> Option<T>,
) -> Option<T> {
    match kind {
        Kind::Text(text) => parse(text).ok(),
        Kind::Integer(number) => plain(*number),
        _ => None,
    }
}
