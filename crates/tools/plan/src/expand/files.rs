//! Files of a plan: included plans, and rows in CSV.

use super::super::tables::ROOT;
use super::{INCLUDE, ROWS};
use keys::allowed::{self, find};
use keys::{Allowed, Entry, KeyError, Kind, Mistakes, Origin, Value, all};
use std::collections::BTreeMap;
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
        let merged = self.merged(keys::parse(&path.display().to_string(), &text)?);
        self.open.pop();
        merged
    }
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
                file.value.kind = Kind::List(csv_rows(&file.value)?);
            }
            rows(Allowed::Table(table), &mut entry.value, is_read)
        }
        _ => Ok(()),
    }))
    .map(drop)
}

/// Returns the rows of a CSV file, whose first line has the names of the columns.
fn csv_rows(name: &Value) -> Result<Vec<Value>, KeyError> {
    let (path, text) = contents(ROWS, name)?;
    let file: std::sync::Arc<str> = path.display().to_string().into();
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).trim(csv::Trim::All);
    let (mut line, mut counted) = (1, 0);
    let mut header: Vec<(String, Origin)> = Vec::new();
    let mut rows = Vec::new();
    for record in reader.from_reader(text.as_bytes()).records() {
        let record = record.map_err(|error| name.origin.fail(format!("{file}: {error}")))?;
        // A record begins behind the blank lines that the reader counts as its start.
        let start = record.position().map_or(0, |position| position.byte()) as usize;
        let start = text.len() - text[start..].trim_start_matches(['\r', '\n']).len();
        line += text[counted..start].matches('\n').count();
        counted = start;
        let place = |column| Origin::File { file: file.clone(), line, column };
        let cells = record.iter().map(str::to_owned).zip((1..).map(place));
        if header.is_empty() {
            header = cells.collect();
            for (at, (column, origin)) in header.iter().enumerate() {
                if header[..at].iter().any(|(other, _)| other == column) {
                    return Err(origin.fail(format!("two columns have the name '{column}'")));
                }
            }
            continue;
        }
        if record.len() != header.len() {
            let (expected, found) = (header.len(), record.len());
            let message = format!("expected {expected} cells, as in the first line; found {found}");
            return Err(place(1).fail(message));
        }
        let cell = |((key, column), (text, origin)): (&(String, Origin), (String, Origin))| {
            let kind = match allowed::kind(&text, &origin)? {
                // A number such as 007 is a name.
                Kind::Integer(number) if number.to_string() != text => Kind::Text(text),
                kind => kind,
            };
            let value = Value { origin, kind };
            Ok(Entry { key: key.clone(), origin: column.clone(), value })
        };
        let entries = all(header.iter().zip(cells).map(cell))?;
        rows.push(Value { origin: place(1), kind: Kind::Table(entries) });
    }
    Ok(rows)
}
