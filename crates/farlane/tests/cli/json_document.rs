//! Real documents fit the schemas in `docs/schemas`, from which `docs/json.md` is made.

use crate::support::schema::errors;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns name and schema of every document.
fn schemas() -> &'static [(PathBuf, Value)] {
    static SCHEMAS: OnceLock<Vec<(PathBuf, Value)>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let entries = std::fs::read_dir(folder).expect("docs/schemas");
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a schema");
            (path, serde_json::from_str(&text).expect("JSON"))
        };
        entries.map(read).collect()
    })
}

/// Fails unless the document fits a schema. The message has the errors for the schema that fits
/// best.
#[track_caller]
pub fn has_its_schema(document: &Value) {
    let all = schemas().iter().map(|(path, schema)| (errors(schema, document), path));
    let (errors, path) = all.min_by_key(|(errors, _)| errors.len()).expect("schemas");
    assert!(errors.is_empty(), "not as {}: {errors:#?}", path.display());
}

#[test]
fn an_unknown_document_has_no_schema() {
    let mistakes = |document: &Value| {
        schemas().iter().map(|(_, schema)| errors(schema, document).len()).min().unwrap()
    };
    assert!(mistakes(&serde_json::json!({ "schema": 1 })) > 0);
    assert!(mistakes(&serde_json::json!({ "schema": 2, "link": {}, "config_read": null })) > 1);
}
