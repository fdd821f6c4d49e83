//! The published figures: `data/expether.json`, with their places in the paper.

use serde::Deserialize;
use std::collections::BTreeMap;

const DATA: &str = include_str!("../../data/expether.json");

/// The file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Of the publication.
    pub title: String,
    /// Whose it is.
    pub authors: String,
    /// Where and when.
    pub venue: String,
    /// By name.
    pub figures: BTreeMap<String, Figure>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
pub struct Figure {
    /// Such as `us`.
    pub unit: String,
    /// As printed.
    pub value: f64,
    /// The evaluation, and its words.
    pub source: String,
}

impl Published {
    /// The whole title.
    pub fn citation(&self) -> String {
        format!("{}, \"{}\", {}", self.authors, self.title, self.venue)
    }

    /// The figure of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn figure(&self, name: &str) -> &Figure {
        self.figures.get(name).expect("a figure of the paper")
    }
}

/// Reads the file.
///
/// # Panics
/// If it does not fit: it is part of the program.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/expether.json is part of the program")
}
