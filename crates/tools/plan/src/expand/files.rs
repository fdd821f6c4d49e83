//! Files of a plan: included plans, and rows in CSV.

use super::super::tables::ROOT;
use super::csv_rows::csv_rows;
use super::{INCLUDE, ROWS, graphml, tsnkit};
use keys::allowed::find;
use keys::{Allowed, Entry, KeyError, Kind, Mistakes, Origin, Value, all};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the plan with the tables of the files that it includes, and with the rows of its CSV
/// files as arrays of tables; and whether there are such files.
///
/// # Errors
/// A file that cannot be read, and keys that two files set.
pub fn read(plan: Value) -> Result<(Value, bool), KeyError> {
    let mut included = Included::default();
    if let Origin::File { file, .. } = &plan.origin {
        included.open.extend(Path::new(&**file).canonicalize().ok());
    }
    let mut plan = included.merged(plan)?;
    let mut is_read = !included.read.is_empty();
    rows(Allowed::Table(ROOT), &mut plan, &mut is_read)?;
    Ok((plan, is_read))
}

#[derive(Default)]
struct Included {
    /// Files that are being read: each includes the next.
    open: Vec<PathBuf>,
    /// All files that were included.
    read: Vec<PathBuf>,
}

impl Included {
    /// Returns a file with the tables of the files that it includes, theirs first.
    fn merged(&mut self, mut plan: Value) -> Result<Value, KeyError> {
        let Kind::Table(entries) = &mut plan.kind else { return Ok(plan) };
        let Some(at) = entries.iter().position(|entry| entry.key == INCLUDE) else {
            return Ok(plan);
        };
        let include = entries.remove(at).value;
        let files = match &include.kind {
            Kind::List(files) => &files[..],
            _ => std::slice::from_ref(&include),
        };
        let (mut all, mut mistakes) = (Vec::new(), Mistakes::default());
        for file in files {
            if let Kind::Table(entries) = self.file(file)?.kind {
                merge(&mut all, entries, &mut mistakes);
            }
        }
        merge(&mut all, std::mem::take(entries), &mut mistakes);
        mistakes.or(Value { kind: Kind::Table(all), ..plan })
    }

    /// Reads an included file. Nothing is left of a file that was included before.
    fn file(&mut self, name: &Value) -> Result<Value, KeyError> {
        let (path, text) = contents(INCLUDE, name)?;
        let known = path.canonicalize().unwrap_or_else(|_| path.clone());
        if self.open.contains(&known) {
            let message = format!("{INCLUDE}: {} includes itself", path.display());
            return Err(name.origin.fail(message));
        }
        if self.read.contains(&known) {
            return Ok(Value { origin: name.origin.clone(), kind: Kind::Table(Vec::new()) });
        }
        self.read.push(known.clone());
        self.open.push(known);
        let merged = self.merged(part(&path, &text)?);
        self.open.pop();
        merged
    }
}

/// Returns the tables of an included file.
fn part(path: &Path, text: &str) -> Result<Value, KeyError> {
    let name = path.display().to_string();
    let tables = match path.extension().and_then(OsStr::to_str) {
        Some("csv") => tsnkit::read(&name, text)?,
        Some("graphml") => graphml::read(&name, text)?,
        _ => return keys::parse(&name, text),
    };
    let origin = Origin::File { file: name.into(), line: 1, column: 1 };
    Ok(Value { origin, kind: Kind::Table(tables) })
}

/// Returns path and text of the file that a key names.
fn contents(key: &str, name: &Value) -> Result<(PathBuf, String), KeyError> {
    let Kind::Text(file) = &name.kind else {
        return Err(name.origin.fail(format!("{key}: expected a text")));
    };
    let path = name.origin.path(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(name.origin.fail(format!("{key}: {}: {error}", path.display()))),
    }
}

/// Adds entries to a table, also to the tables in it.
fn merge(into: &mut Vec<Entry>, from: Vec<Entry>, mistakes: &mut Mistakes) {
    let known = into.iter().enumerate().map(|(at, entry)| (entry.key.clone(), at));
    let known: BTreeMap<String, usize> = known.collect();
    for entry in from {
        let Some(at) = known.get(&entry.key) else {
            into.push(entry);
            continue;
        };
        let first = &mut into[*at];
        match (&mut first.value.kind, entry.value.kind) {
            (Kind::Table(into), Kind::Table(from)) => merge(into, from, mistakes),
            _ => {
                let message = format!("'{}' is already set at {}", entry.key, first.origin);
                mistakes.note(entry.origin.fail(message));
            }
        }
    }
}

/// Replaces the names of CSV files by their rows.
fn rows(allowed: Allowed, value: &mut Value, is_read: &mut bool) -> Result<(), KeyError> {
    let Kind::Table(entries) = &mut value.kind else { return Ok(()) };
    all(entries.iter_mut().map(|entry| match allowed {
        Allowed::Table(table) => match find(table, &entry.key) {
            Some(key) => rows(key.allowed, &mut entry.value, is_read),
            None => Ok(()),
        },
        Allowed::Named(table) => {
            if let Kind::Table(own) = &mut entry.value.kind
                && let Some(file) = own.iter_mut().find(|own| own.key == ROWS)
                && let Kind::Text(_) = file.value.kind
            {
                *is_read = true;
                let (path, text) = contents(ROWS, &file.value)?;
                file.value.kind = Kind::List(csv_rows(&path.display().to_string(), &text)?);
            }
            rows(Allowed::Table(table), &mut entry.value, is_read)
        }
        _ => Ok(()),
    }))
    .map(drop)
}
