//! Plans in few lines: parameters, patterns of names, included files and rows of CSV files become
//! plain tables, before any key is checked.

mod csv_rows;
mod expression;
mod files;
mod foreign;
mod graphml;
mod template;
mod tsnkit;

pub use files::read;

use super::tables::ROOT;
use expression::Scope;
use keys::allowed::find;
use keys::{Allowed, Entry, KeyError, Kind, Mistakes, Table, Value, all};
use std::collections::BTreeMap;
use template::Piece;

/// The key that names further files of a plan.
pub const INCLUDE: &str = "include";
/// The table of the parameters.
pub const PARAMETERS: &str = "parameters";
/// The key of a table that becomes one table per row.
const ROWS: &str = "rows";
/// Maximum number of tables that patterns and rows make.
const MOST_TABLES: usize = 100_000;
/// Maximum number of ranges in a name.
const MOST_RANGES: usize = 8;

/// Returns the plan without parameters, patterns and rows.
///
/// # Errors
/// Each mistake in a pattern, expression or row, at its place.
pub fn expand(plan: &Value) -> Result<Value, KeyError> {
    let (parameters, tables): (Vec<_>, Vec<_>) =
        plan.entries()?.iter().partition(|entry| entry.key == PARAMETERS);
    let mut expander = Expander { scope: Scope::default(), tables: 0 };
    for Entry { value, .. } in parameters {
        value.entries()?.iter().try_for_each(|parameter| expander.parameter(parameter))?;
    }
    let entries = expander.entries(Some(Allowed::Table(ROOT)), tables)?;
    Ok(Value { origin: plan.origin.clone(), kind: Kind::Table(entries) })
}

struct Expander {
    scope: Scope,
    /// Number of tables that patterns and rows made.
    tables: usize,
}

/// A table whose name has patterns, or that has rows.
struct Pattern<'a> {
    keys: Table,
    /// The name and its place.
    entry: &'a Entry,
    own: Vec<&'a Entry>,
    /// The row, if the table has rows.
    row: Option<&'a Value>,
}

impl Expander {
    /// Defines a parameter, which may contain the parameters before it.
    fn parameter(&mut self, entry: &Entry) -> Result<(), KeyError> {
        let value = self.value(None, &entry.value)?;
        if !matches!(value.kind, Kind::Integer(_) | Kind::Text(_)) {
            let message = format!("{}: expected a whole number or a text", entry.key);
            return Err(value.origin.fail(message));
        }
        self.scope.define(&entry.key, value.kind).map_err(|message| entry.origin.fail(message))
    }

    fn value(&mut self, allowed: Option<Allowed>, value: &Value) -> Result<Value, KeyError> {
        let kind = match &value.kind {
            Kind::Text(text) if text.contains('{') => {
                let kind = template::filled(text, &mut self.scope);
                fitting(kind.map_err(|message| value.origin.fail(message))?, allowed)
            }
            Kind::List(items) => {
                let item = match allowed {
                    Some(Allowed::List(item)) => Some(*item),
                    _ => None,
                };
                Kind::List(all(items.iter().map(|one| self.value(item, one)))?)
            }
            Kind::Table(entries) => Kind::Table(self.entries(allowed, entries)?),
            other => other.clone(),
        };
        Ok(Value { origin: value.origin.clone(), kind })
    }

    /// Expands the entries of a table.
    fn entries<'a>(
        &mut self,
        allowed: Option<Allowed>,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<Vec<Entry>, KeyError> {
        let entries = entries.into_iter();
        let table = match allowed {
            Some(Allowed::Named(keys)) => return self.named(keys, entries),
            Some(Allowed::Table(table)) => table,
            _ => &[],
        };
        all(entries.map(|Entry { key, origin, value }| {
            let value = self.value(find(table, key).map(|key| key.allowed), value)?;
            Ok(Entry { key: key.clone(), origin: origin.clone(), value })
        }))
    }

    /// Expands tables whose names the plan chooses.
    fn named<'a>(
        &mut self,
        keys: Table,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<Vec<Entry>, KeyError> {
        let (mut out, mut mistakes) = (Vec::new(), Mistakes::default());
        for entry in entries {
            let outer = self.scope.len();
            mistakes.keep(self.tables_of(keys, entry, &mut out));
            self.scope.truncate(outer);
        }
        let mut names = BTreeMap::new();
        for Entry { key, origin, .. } in &out {
            if let Some(first) = names.insert(key, origin) {
                let message = format!("'{key}' is already the name of the table at {first}");
                mistakes.note(origin.fail(message));
            }
        }
        mistakes.or(out)
    }

    /// Adds the tables that one table becomes.
    fn tables_of(
        &mut self,
        keys: Table,
        entry: &Entry,
        out: &mut Vec<Entry>,
    ) -> Result<(), KeyError> {
        let entries = entry.value.entries().unwrap_or_default();
        let (rows, own): (Vec<_>, Vec<_>) = entries.iter().partition(|one| one.key == ROWS);
        if rows.is_empty() && !entry.key.contains('{') {
            let value = self.value(Some(Allowed::Table(keys)), &entry.value)?;
            out.push(Entry { key: entry.key.clone(), origin: entry.origin.clone(), value });
            return Ok(());
        }
        entry.value.entries()?;
        let fail = |message| entry.origin.fail(message);
        let pieces = template::pieces(&entry.key).map_err(fail)?;
        let ranges = pieces.iter().filter(|piece| matches!(piece, Piece::Range { .. }));
        if ranges.count() > MOST_RANGES {
            return Err(fail(format!("a name has {MOST_RANGES} ranges at most")));
        }
        let mut pattern = Pattern { keys, entry, own, row: None };
        let [rows] = rows[..] else { return self.each(&pattern, &pieces, String::new(), out) };
        let Kind::List(rows) = &rows.value.kind else {
            return Err(rows.value.origin.fail("rows: expected a CSV file or an array of tables"));
        };
        let outer = self.scope.len();
        for row in rows {
            self.scope.truncate(outer);
            row.entries()?
                .iter()
                .for_each(|cell| self.scope.push(&cell.key, cell.value.kind.clone()));
            pattern.row = Some(row);
            self.each(&pattern, &pieces, String::new(), out)?;
        }
        Ok(())
    }

    /// Adds a table for each value of the ranges in `pieces`. The name begins with `name`.
    fn each(
        &mut self,
        pattern: &Pattern<'_>,
        pieces: &[Piece<'_>],
        mut name: String,
        out: &mut Vec<Entry>,
    ) -> Result<(), KeyError> {
        let fail = |message: String| pattern.entry.origin.fail(message);
        for (piece, rest) in pieces.iter().zip(1..) {
            match piece {
                Piece::Plain(text) => name += text,
                Piece::Expression(expression) => {
                    let value = template::value(expression, &mut self.scope).map_err(fail)?;
                    name += &template::words(value);
                }
                Piece::Range { name: variable, from, to } => {
                    let wrong =
                        |why: String| fail(format!("'{{{variable} ={from}..{to}}}': {why}"));
                    let first = self.scope.number(from).map_err(wrong)?;
                    let last = self.scope.number(to).map_err(wrong)?;
                    if first > last {
                        return Err(wrong(format!("the range is empty: {first}..{last}")));
                    }
                    let outer = self.scope.len();
                    for number in first..=last {
                        self.scope.define(variable, Kind::Integer(number)).map_err(wrong)?;
                        self.each(pattern, &pieces[rest..], format!("{name}{number}"), out)?;
                        self.scope.truncate(outer);
                    }
                    return Ok(());
                }
            }
        }
        self.tables += 1;
        if self.tables > MOST_TABLES {
            return Err(fail(format!("patterns make more than {MOST_TABLES} tables")));
        }
        out.push(self.table(pattern, name)?);
        Ok(())
    }

    fn table(&mut self, pattern: &Pattern<'_>, key: String) -> Result<Entry, KeyError> {
        let Pattern { keys, entry, own, row } = pattern;
        let mut entries = self.entries(Some(Allowed::Table(keys)), own.iter().copied())?;
        let mut origin = &entry.origin;
        if let Some(row) = row {
            origin = &row.origin;
            for cell in row.entries()? {
                entries.extend(self.cell(pattern, cell)?);
            }
        }
        let value = Value { origin: origin.clone(), kind: Kind::Table(entries) };
        Ok(Entry { key, origin: origin.clone(), value })
    }

    /// Returns the key that a cell of a row sets. A column that is neither a key nor used stays a
    /// key, which the check of all keys refuses.
    fn cell(&self, pattern: &Pattern<'_>, cell: &Entry) -> Result<Option<Entry>, KeyError> {
        let is_used = self.scope.is_used(&cell.key);
        let key = find(pattern.keys, &cell.key);
        if let Some(own) = pattern.own.iter().find(|own| own.key == cell.key) {
            let message =
                format!("column '{}' has no effect: the key is set at {}", cell.key, own.origin);
            return if is_used { Ok(None) } else { Err(cell.origin.fail(message)) };
        }
        let is_empty = matches!(&cell.value.kind, Kind::Text(text) if text.is_empty());
        if is_empty || (is_used && key.is_none()) {
            return Ok(None);
        }
        let Entry { key: name, origin, value } = cell.clone();
        let kind = fitting(value.kind, key.map(|key| key.allowed));
        Ok(Some(Entry { key: name, origin, value: Value { kind, ..value } }))
    }
}

/// Returns a value for a key. A whole number is a text where only texts are allowed: a name.
fn fitting(kind: Kind, allowed: Option<Allowed>) -> Kind {
    match (kind, allowed) {
        (Kind::Integer(number), Some(Allowed::Text | Allowed::Names)) => {
            Kind::Text(number.to_string())
        }
        (kind, _) => kind,
    }
}
