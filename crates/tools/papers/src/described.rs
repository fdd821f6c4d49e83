//! Checks that keys of JSON documents are described (tests only).

use serde_json::Value;
use std::collections::BTreeSet;

const KEYS: &str = include_str!("../../../../docs/json.md");

/// Fails unless docs/json.md has a row for every key in `document`.
pub fn every_key_is_described(document: &Value) {
    let mut found = BTreeSet::new();
    keys(document, &mut found);
    for key in found {
        assert!(KEYS.contains(&format!("| `{key}` |")), "docs/json.md has no row for {key}");
    }
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(elements) => elements.iter().for_each(|element| keys(element, found)),
        _ => {}
    }
}
