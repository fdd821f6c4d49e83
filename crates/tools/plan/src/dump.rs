//! Plans as TOML.

use super::tables::ROOT;
use keys::allowed::find;
use keys::{Allowed, Entry, Kind, Value};
use std::path::PathBuf;

/// Returns a plan as TOML. Paths of files become absolute. Comments are lost.
pub fn toml(plan: &Value) -> String {
    let mut out = String::new();
    table(&mut out, "", Some(Allowed::Table(ROOT)), plan.entries().unwrap_or_default());
    out
}

/// Writes the keys of a table, then the tables in it.
fn table(out: &mut String, path: &str, allowed: Option<Allowed>, entries: &[Entry]) {
    let is_table = |entry: &&Entry| matches!(entry.value.kind, Kind::Table(_));
    let (tables, values): (Vec<_>, Vec<_>) = entries.iter().partition(is_table);
    if !path.is_empty() && (tables.is_empty() || !values.is_empty()) {
        let line = if out.is_empty() { "" } else { "\n" };
        *out += &format!("{line}[{path}]\n");
    }
    for entry in values {
        *out += &format!("{} = {}\n", key(&entry.key), value(inner(allowed, entry), &entry.value));
    }
    for entry in tables {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", key(&entry.key));
        table(out, &path, inner(allowed, entry), entry.value.entries().unwrap_or_default());
    }
}

/// Returns the files that a plan reads. The files of `[record]` are written, not read.
pub fn files(plan: &Value) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let entries = plan.entries().unwrap_or_default().iter();
    for entry in entries.filter(|entry| entry.key != "record") {
        collect(&mut all, inner(Some(Allowed::Table(ROOT)), entry), &entry.value);
    }
    all
}

fn collect(all: &mut Vec<PathBuf>, allowed: Option<Allowed>, value: &Value) {
    match (&value.kind, allowed) {
        (Kind::Text(file), Some(Allowed::File | Allowed::Files)) => {
            all.push(value.origin.path(file));
        }
        (Kind::List(items), _) => items.iter().for_each(|item| collect(all, allowed, item)),
        (Kind::Table(entries), _) => {
            entries.iter().for_each(|entry| collect(all, inner(allowed, entry), &entry.value));
        }
        _ => {}
    }
}

fn inner(allowed: Option<Allowed>, entry: &Entry) -> Option<Allowed> {
    match allowed? {
        Allowed::Table(table) => find(table, &entry.key).map(|key| key.allowed),
        Allowed::Named(table) => Some(Allowed::Table(table)),
        _ => None,
    }
}

fn value(allowed: Option<Allowed>, of: &Value) -> String {
    match (&of.kind, allowed) {
        (Kind::Text(file), Some(Allowed::File | Allowed::Files)) => {
            let path = of.origin.path(file);
            quoted(&std::path::absolute(&path).unwrap_or(path).display().to_string())
        }
        (Kind::Text(text), _) => quoted(text),
        (Kind::Integer(number), _) => number.to_string(),
        (Kind::Boolean(flag), _) => flag.to_string(),
        (Kind::List(items), _) => {
            let items: Vec<_> = items.iter().map(|item| value(allowed, item)).collect();
            format!("[{}]", items.join(", "))
        }
        (Kind::Table(entries), _) => {
            let entry =
                |entry: &Entry| format!("{} = {}", key(&entry.key), value(None, &entry.value));
            let entries: Vec<_> = entries.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        (Kind::Other(name), _) => quoted(name),
    }
}

pub fn key(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// Returns a text in quotes, with the escapes that JSON and TOML share.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(value: &Value) -> Kind {
        let own = |value: &Value| Value {
            kind: kinds(value),
            origin: keys::Origin::Option(String::new()),
        };
        match &value.kind {
            Kind::List(items) => Kind::List(items.iter().map(own).collect()),
            Kind::Table(entries) => Kind::Table(
                entries
                    .iter()
                    .map(|entry| Entry {
                        value: own(&entry.value),
                        origin: own(&entry.value).origin,
                        ..entry.clone()
                    })
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    proptest! {
        /// Any name and any text is read as it was written.
        #[test]
        fn dumps_are_read_as_they_were_written(names in prop::collection::btree_set(any::<String>(), 1..5), text in any::<String>(), number: i64) {
            let mut plan = keys::parse("p.toml", "").unwrap();
            let origin = plan.origin.clone();
            for name in &names {
                for (key, kind) in [("from", Kind::Text(text.clone())), ("burst", Kind::Integer(number)), ("rows", Kind::List(vec![Value { origin: origin.clone(), kind: Kind::Text(text.clone()) }; 2]))] {
                    let table = plan.member("traffic", &origin).and_then(|table| table.member(name, &origin));
                    table.and_then(|table| table.member(key, &origin)).unwrap().kind = kind;
                }
            }
            let read = keys::parse("p.toml", &toml(&plan)).unwrap();
            prop_assert_eq!(kinds(&read), kinds(&plan));
        }
    }
}
