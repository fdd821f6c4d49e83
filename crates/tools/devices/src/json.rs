//! JSON from programs: the path of a mistake, and members that are not read.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses a text. Of members with equal names, which `tc -j` prints, the last counts.
///
/// # Errors
/// The place where the text is not JSON.
pub fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// Parses a list.
///
/// # Errors
/// The place where the text is not JSON, or that it is no list.
pub fn elements(text: &str) -> Result<Vec<Value>, String> {
    match parse(text)? {
        Value::Array(all) => Ok(all),
        _ => Err("expected a list".to_owned()),
    }
}

/// Reads a value at a path of its document. Adds a sentence to `unread` for each member that
/// `T` lacks, except members with a name in `unneeded`.
///
/// # Errors
/// The path of the mistake, and the mistake.
pub fn read<T: DeserializeOwned>(
    value: Value,
    path: &str,
    unneeded: &[&str],
    unread: &mut Vec<String>,
) -> Result<T, String> {
    let mut track = serde_path_to_error::Track::new();
    let below = |inner: String| match (inner.as_str(), path) {
        (".", _) => path.to_owned(),
        (inner, "") => inner.to_owned(),
        (inner, path) => format!("{path}.{inner}"),
    };
    let source = serde_path_to_error::Deserializer::new(value, &mut track);
    let ignored = |own: serde_ignored::Path<'_>| {
        let own = own.to_string().replace(".?", "");
        let name = own.rsplit('.').next().unwrap_or_default();
        if !unneeded.contains(&name) {
            unread.push(format!("{}: not read", below(own)));
        }
    };
    let found = serde_ignored::deserialize(source, ignored);
    found.map_err(|error| format!("{}: {error}", below(track.path().to_string())))
}
