//! Tables of a plan, read key by key: from the table itself, or else from the
//! one that holds the defaults.

use super::PlanError;
use super::units::{self, Bounded};
use super::value::{Entry, Kind, Origin, Value};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use wire::Duration;

/// A table, with the tables that it takes its defaults from.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Its name: `drives.central`.
    pub name: String,
    /// Its place; that of the plan if it is not there.
    pub origin: Origin,
    layers: Vec<&'a [Entry]>,
}

/// The name nearest to `word`, if one is near.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let ranked = names.iter().map(|name| (distance(word, name), *name));
    ranked.min().filter(|(far, name)| *far <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

/// Letters to change, add or leave out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.iter().enumerate() {
            let change = corner + usize::from(left != *right);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// What to say of a word that is none of `names`.
pub fn unknown(what: &str, word: &str, names: &[&str]) -> String {
    let hint = match nearest(word, names) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => ".".to_owned(),
    };
    format!("unknown {what} '{word}'{hint} There are: {}", names.join(", "))
}

fn entries(value: &Value) -> Result<&[Entry], PlanError> {
    match &value.kind {
        Kind::Table(entries) => Ok(entries),
        _ => Err(value.origin.fail("expected a table")),
    }
}

/// Every key is one of `keys`.
fn check(entries: &[Entry], name: &str, keys: &[&str]) -> Result<(), PlanError> {
    match entries.iter().find(|entry| !keys.contains(&entry.key.as_str())) {
        None => Ok(()),
        Some(entry) => {
            let what = if name.is_empty() { "key".into() } else { format!("key of [{name}]") };
            Err(entry.origin.fail(unknown(&what, &entry.key, keys)))
        }
    }
}

impl<'a> Section<'a> {
    /// The whole plan.
    pub fn root(value: &'a Value, keys: &[&str]) -> Result<Self, PlanError> {
        let layer = entries(value)?;
        check(layer, "", keys)?;
        Ok(Self { name: String::new(), origin: value.origin.clone(), layers: vec![layer] })
    }

    /// One without defaults.
    pub fn none() -> Self {
        let origin = Origin::Option(String::new());
        Self { name: String::new(), origin, layers: Vec::new() }
    }

    /// The same table with these defaults.
    pub fn over(mut self, defaults: &Self) -> Self {
        self.layers.extend(&defaults.layers);
        self
    }

    /// A table in this one; empty if it is not there.
    pub fn table(&self, key: &str, keys: &[&str]) -> Result<Self, PlanError> {
        let name = if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) };
        let Some(entry) = self.find(key) else {
            return Ok(Self { name, origin: self.origin.clone(), layers: Vec::new() });
        };
        let layer = entries(&entry.value)?;
        check(layer, &name, keys)?;
        Ok(Self { name, origin: entry.origin.clone(), layers: vec![layer] })
    }

    /// The tables in the table `key`, by name, in the order of the file.
    pub fn named(
        &self,
        key: &str,
        keys: &[&str],
        defaults: &Self,
    ) -> Result<Vec<(String, Self)>, PlanError> {
        let Some(entry) = self.find(key) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for entry in entries(&entry.value)? {
            let name = format!("{key}.{}", entry.key);
            let layer = entries(&entry.value)?;
            check(layer, &name, keys)?;
            let mut layers = vec![layer];
            layers.extend(&defaults.layers);
            all.push((entry.key.clone(), Self { name, origin: entry.origin.clone(), layers }));
        }
        Ok(all)
    }

    /// Whether the table is there.
    pub fn is_there(&self) -> bool {
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

    /// A text that `parse` understands, if it is there.
    pub fn parsed<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Result<Option<T>, PlanError> {
        self.find(key).map(|entry| understood(&entry.value, key, &parse)).transpose()
    }

    /// A number with a unit within a range, if it is there.
    pub fn within<T: Bounded>(
        &self,
        key: &str,
        range: &RangeInclusive<T>,
    ) -> Result<Option<T>, PlanError> {
        let found = self.parsed(key, T::read)?;
        match found {
            Some(value) if !range.contains(&value) => {
                let [least, most] = [range.start(), range.end()].map(T::words);
                let what = format!("{key}: {least} to {most}; found {}", value.words());
                Err(self.place(key).fail(what))
            }
            found => Ok(found),
        }
    }

    /// A time of up to a second, or what is standard.
    pub fn time(&self, key: &str, standard: Duration) -> Result<Duration, PlanError> {
        Ok(self.within(key, &units::SHORT)?.unwrap_or(standard))
    }

    /// The same for each item of an array.
    pub fn list<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Result<Option<Vec<(T, Origin)>>, PlanError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        let Kind::List(items) = &entry.value.kind else {
            return Err(entry.value.origin.fail(format!("{key}: expected an array of texts")));
        };
        let item =
            |value: &Value| understood(value, key, &parse).map(|item| (item, value.origin.clone()));
        items.iter().map(item).collect::<Result<_, _>>().map(Some)
    }

    /// One of several words, if it is there.
    pub fn word(&self, key: &str, words: &[&str]) -> Result<Option<&'a str>, PlanError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        match &entry.value.kind {
            Kind::Text(text) if words.contains(&text.as_str()) => Ok(Some(text)),
            Kind::Text(text) => Err(entry.value.origin.fail(unknown(key, text, words))),
            _ => {
                let what = format!("{key}: expected one of {}", words.join(", "));
                Err(entry.value.origin.fail(what))
            }
        }
    }

    /// A text, if it is there.
    pub fn text(&self, key: &str) -> Result<Option<(&'a str, Origin)>, PlanError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        match &entry.value.kind {
            Kind::Text(text) => Ok(Some((text, entry.value.origin.clone()))),
            _ => Err(entry.value.origin.fail(format!("{key}: expected a text"))),
        }
    }

    /// A file: one that a plan names is found from where the plan is.
    pub fn path(&self, key: &str) -> Result<Option<PathBuf>, PlanError> {
        match self.text(key)? {
            Some(("-", origin)) => {
                let what =
                    format!("{key}: a plan names files; for standard output there are options");
                Err(origin.fail(what))
            }
            found => Ok(found.map(|(name, origin)| origin.path(name))),
        }
    }

    /// A whole number from `least` to `most`, if it is there.
    pub fn number(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, PlanError> {
        let Some(entry) = self.find(key) else { return Ok(None) };
        let number = match entry.value.kind {
            Kind::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        };
        let fits = number.filter(|number| (least..=most).contains(number));
        fits.map(Some).ok_or_else(|| {
            let what = format!("{key}: expected a whole number, {least} to {most}");
            entry.value.origin.fail(what)
        })
    }
}

fn understood<T>(
    value: &Value,
    key: &str,
    parse: &impl Fn(&str) -> Result<T, &'static str>,
) -> Result<T, PlanError> {
    let fail = |found: String, wanted: &str| {
        value.origin.fail(format!("{key}: expected {wanted}; found {found}"))
    };
    match &value.kind {
        Kind::Text(text) => parse(text).map_err(|wanted| fail(format!("'{text}'"), wanted)),
        Kind::Integer(number) => match parse(&number.to_string()) {
            Ok(value) => Ok(value),
            Err(wanted) => Err(fail(format!("{number} without a unit"), wanted)),
        },
        Kind::List(_) => Err(fail("an array".into(), "a text")),
        Kind::Table(_) => Err(fail("a table".into(), "a text")),
        Kind::Other(name) => Err(fail(format!("a {name}"), "a text")),
    }
}
