//! Values of a JSON document with their places.

use super::FormatError;
use serde_json::Value;
use std::fmt::Display;

/// A value and its place.
pub(super) struct Node<'a> {
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// The value of a key, unless it is missing or null.
    pub(super) fn find(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(Self { path: format!("{}{dot}{key}", self.path), value })
    }

    /// The value of a required key.
    pub(super) fn get(&self, key: &str) -> Result<Self, FormatError> {
        self.find(key).ok_or_else(|| self.error(format_args!("'{key}' is missing")))
    }

    /// The elements of an array.
    pub(super) fn items(&self) -> Result<Vec<Self>, FormatError> {
        let Value::Array(items) = self.value else { return Err(self.expected("an array")) };
        let item = |(index, value)| Self { path: format!("{}[{index}]", self.path), value };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, FormatError> {
        self.value.as_str().ok_or_else(|| self.expected("a text"))
    }

    pub(super) fn flag(&self) -> Result<bool, FormatError> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    fn expected(&self, what: &str) -> FormatError {
        let mut value = self.value.to_string();
        if value.len() > 40 {
            value = value.chars().take(40).chain("...".chars()).collect();
        }
        self.error(format_args!("invalid value {value}: expected {what}"))
    }

    /// A mistake in this value.
    pub(super) fn error(&self, reason: impl Display) -> FormatError {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        FormatError { path: path.to_owned(), reason: reason.to_string() }
    }
}
