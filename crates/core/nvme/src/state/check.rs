//! Encoding, decoding and checking of records.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;

/// An invalid record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {record}: {problem}")]
pub struct RecordError {
    /// Key of the record.
    pub record: String,
    /// The field, its value and the allowed values.
    pub problem: String,
}

impl RecordError {
    pub(crate) fn new(record: &str, problem: impl Into<String>) -> Self {
        Self { record: record.to_owned(), problem: problem.into() }
    }
}

/// A text about a field outside of its range, with the allowed values.
pub(crate) type Problem = String;

/// Checks the ranges of all fields.
pub(crate) trait Check {
    fn check(&self) -> Result<(), Problem>;
}

impl<T: Check> Check for Vec<T> {
    fn check(&self) -> Result<(), Problem> {
        self.iter().try_for_each(Check::check)
    }
}

/// Fails unless a field is in its range.
pub(crate) fn range<T: PartialOrd + Display>(
    field: &str,
    value: T,
    least: T,
    most: T,
) -> Result<(), Problem> {
    if value < least || value > most {
        return Err(format!("{field}: '{value}' is outside {least} to {most}"));
    }
    Ok(())
}

/// Fails unless a field has 1 to `most` characters, all of which are `allowed`.
pub(crate) fn text(
    field: &str,
    value: &str,
    most: usize,
    allowed: (fn(u8) -> bool, &str),
) -> Result<(), Problem> {
    let (is_allowed, characters) = allowed;
    if !(1..=most).contains(&value.len()) || !value.bytes().all(is_allowed) {
        return Err(format!("{field}: invalid value {value:?}: expected 1 to {most} {characters}"));
    }
    Ok(())
}

/// The bytes of a record.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have only text keys and no cycles")
}

/// Decodes a record.
pub(crate) fn decode<T: DeserializeOwned + Check>(
    key: &str,
    bytes: &[u8],
) -> Result<T, RecordError> {
    let value: T =
        serde_json::from_slice(bytes).map_err(|error| RecordError::new(key, error.to_string()))?;
    value.check().map_err(|problem| RecordError::new(key, problem))?;
    Ok(value)
}
