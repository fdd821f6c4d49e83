//! `docs/json.md` describes every key of the documents.

use serde_json::Value;
use std::collections::BTreeSet;

const DESCRIPTION: &str = include_str!("../../../../docs/json.md");

/// Every key of the document, those of all elements of lists included: what is
/// empty in the first one may be filled in another.
///
/// `troubles`, `notes` and `set` have names, not keys.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            match (key.as_str(), value) {
                ("troubles" | "notes" | "set", Value::Object(named)) => {
                    named.values().for_each(|value| keys(value, found));
                }
                _ => keys(value, found),
            }
        }),
        Value::Array(elements) => elements.iter().for_each(|element| keys(element, found)),
        _ => {}
    }
}

/// Keys that have a row in a table of the page.
fn described() -> BTreeSet<&'static str> {
    DESCRIPTION
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split_once('`'))
        .map(|(key, _)| key)
        .collect()
}

#[track_caller]
pub fn every_key_is_described(document: &Value) {
    let mut found = BTreeSet::new();
    keys(document, &mut found);
    let described = described();
    let missing: Vec<_> = found.iter().filter(|key| !described.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/json.md has no row for {missing:?}");
}

#[test]
fn the_schema_is_the_one_described() {
    let rows = DESCRIPTION.lines().filter(|line| line.starts_with("| `schema` | count | 1 |"));
    assert_eq!(rows.count(), 17, "a new schema needs a new description");
}

#[test]
fn every_command_with_a_document_is_in_the_list_of_commands() {
    let (list, rest) = DESCRIPTION.split_once("\n## ").unwrap();
    let headings =
        rest.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix("--json`"));
    let mut count = 0;
    for heading in headings {
        // `farlane latency` stands in the list with its subcommands behind it.
        let words: Vec<&str> = heading.split(' ').filter(|word| !word.starts_with("--")).collect();
        let known = |words: &[&str]| list.contains(&format!("`{}`", words.join(" ").trim_end()));
        assert!(known(&words) || known(&words[..2]), "docs/json.md does not name {heading}");
        count += 1;
    }
    assert!(count > 10, "{count} headings");
}
