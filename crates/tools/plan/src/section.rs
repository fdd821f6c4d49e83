//! Tables of a plan that was checked, read key by key: from the table itself,
//! or else from the one that holds the defaults.

use super::allowed::{Allowed, Key, Table};
use super::keys::{ROOT, TRANSPORTS};
use super::mistakes::Mistakes;
use super::units::PlanValue;
use super::value::{Entry, Kind, Origin, PlanError, Value};
use std::path::PathBuf;
use wire::units::with_unit;

/// A table, with the tables that it takes its defaults from.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Its name: `drives.central`.
    pub name: String,
    /// Its place; that of the plan if it is not set.
    pub origin: Origin,
    keys: Table,
    layers: Vec<&'a [Entry]>,
}

/// Tables that hold for everything of their kind.
pub struct Defaults<'a> {
    /// `[pcie]`.
    pub pcie: Section<'a>,
    /// `[link]`.
    pub link: Section<'a>,
    /// `[host]`.
    pub host: Section<'a>,
    /// `[drive]`.
    pub drive: Section<'a>,
}

impl<'a> Defaults<'a> {
    /// Those of a plan.
    pub fn read(root: &Section<'a>) -> Self {
        let [pcie, link, host, drive] =
            ["pcie", "link", "host", "drive"].map(|key| root.table(key));
        Self { pcie, link, host, drive }
    }
}

/// Sets those fields of a structure for which there are keys of their names.
macro_rules! set_fields {
    ($of:expr, $section:expr, $($field:ident)*) => {
        $(if let Some(value) = $section.get(stringify!($field)) {
            $of.$field = value;
        })*
    };
}
pub(super) use set_fields;

fn entries(value: &Value) -> &[Entry] {
    value.entries().expect("as checked")
}

impl<'a> Section<'a> {
    /// The whole plan.
    pub fn root(value: &'a Value) -> Self {
        let (name, origin) = (String::new(), value.origin.clone());
        Self { name, origin, keys: ROOT, layers: vec![entries(value)] }
    }

    /// The same table with these defaults.
    pub fn with_defaults(mut self, defaults: &Self) -> Self {
        self.layers.extend(&defaults.layers);
        self
    }

    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().copied().flatten()
    }

    /// A table in this one; empty if it is not there.
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

    /// The tables in the table `key`, by name, in the order of the file.
    pub fn named(&self, key: &str) -> Vec<(String, Self)> {
        let of = self.table(key);
        let table = |entry: &'a Entry| {
            let name = format!("{}.{}", of.name, entry.key);
            let layers = vec![entries(&entry.value)];
            (entry.key.clone(), Self { name, origin: entry.origin.clone(), layers, ..of })
        };
        of.layers.iter().copied().flatten().map(table).collect()
    }

    /// The same with these defaults; if there are none, one called `alone`
    /// that has nothing else.
    pub fn named_or(&self, key: &str, alone: &str, defaults: &Self) -> Vec<(String, Self)> {
        let named = self.named(key).into_iter();
        let named: Vec<_> = named.map(|(name, own)| (name, own.with_defaults(defaults))).collect();
        if !named.is_empty() {
            return named;
        }
        vec![(alone.to_owned(), Self { keys: self.table(key).keys, ..defaults.clone() })]
    }

    /// Whether the plan has this table.
    pub fn is_present(&self) -> bool {
        !self.layers.is_empty()
    }

    /// What a key is set to, here or by default.
    pub fn find(&self, key: &str) -> Option<&'a Entry> {
        self.layers.iter().find_map(|layer| layer.iter().find(|entry| entry.key == key))
    }

    /// The place of a key, or that of the table.
    pub fn place(&self, key: &str) -> Origin {
        self.find(key).map_or_else(|| self.origin.clone(), |entry| entry.value.origin.clone())
    }

    /// A mistake in the value of a key.
    pub fn fail<T>(&self, key: &str, what: impl Into<String>) -> Result<T, PlanError> {
        Err(self.place(key).fail(what))
    }

    /// A key's value, if it is there.
    pub fn get<T: PlanValue>(&self, key: &str) -> Option<T> {
        let allowed = self.keys().find(|known| known.name == key).map(|known| known.allowed);
        let entry = self.find(key)?;
        Some(match (allowed, &entry.value.kind) {
            (Some(Allowed::TimeIn(_, unit)), Kind::Integer(number)) => {
                T::parse(&format!("{number}{unit}")).expect("as checked")
            }
            (Some(Allowed::TimeIn(_, unit)), Kind::Text(text)) => {
                T::parse(&with_unit(text, unit)).expect("as checked")
            }
            _ => read(&entry.value),
        })
    }

    /// The items of an array, each with its place.
    pub fn list<T: PlanValue>(&self, key: &str) -> Vec<(T, Origin)> {
        let Some(Kind::List(items)) = self.find(key).map(|entry| &entry.value.kind) else {
            return Vec::new();
        };
        items.iter().map(|item| (read(item), item.origin.clone())).collect()
    }

    /// A text or one of several words, if it is there.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        match &self.find(key)?.value.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A required text: `what` describes it in the error.
    pub fn required(&self, key: &str, what: &str) -> Result<&'a str, PlanError> {
        let missing = || self.origin.fail(format!("[{}] needs {key}{what}", self.name));
        self.text(key).ok_or_else(missing)
    }

    /// A file: one that a plan names is found from where the plan is.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(|name| self.place(key).path(name))
    }

    /// Checks that every key that is set is used by one of the transports that
    /// are `there`, of which a plan without hosts has none: a key without effect is a mistake.
    ///
    /// # Errors
    /// Each unused key, of those that `which` selects.
    pub fn check_used(
        &self,
        there: &[&str],
        which: impl Fn(&Key) -> bool,
    ) -> Result<(), PlanError> {
        let mut mistakes = Mistakes::default();
        let set = |key: &&Key| which(key) && self.find(key.name).is_some();
        for Key { name, with, .. } in self.keys().filter(set) {
            let of_all = *with == TRANSPORTS.as_slice();
            if !(of_all || there.iter().any(|used| with.contains(used))) {
                let mut names = there.to_vec();
                names.dedup();
                let (names, with) = (names.join(" and "), with.join(", "));
                let where_not = match there {
                    [] => "without hosts".to_owned(),
                    _ => format!("with transport {names}"),
                };
                let what = format!("{name} means nothing {where_not}: it is of {with}");
                mistakes.note(self.place(name).fail(what));
            }
        }
        mistakes.or(())
    }
}

fn read<T: PlanValue>(value: &Value) -> T {
    let read = match &value.kind {
        Kind::Text(text) => T::parse(text).ok(),
        Kind::Integer(number) => T::plain(*number),
        _ => None,
    };
    read.expect("as checked")
}
