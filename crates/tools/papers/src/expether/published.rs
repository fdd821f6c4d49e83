//! The published figures: `data/expether.json`, with their places in the paper.

use serde::Deserialize;
use std::collections::BTreeMap;

const DATA: &str = include_str!("../../data/expether.json");

/// The contents of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Title of the publication.
    pub title: String,
    /// Authors of the publication.
    pub authors: String,
    /// Conference and year.
    pub venue: String,
    /// Figures by name.
    pub figures: BTreeMap<String, Figure>,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
pub struct Figure {
    /// Unit, such as `us`.
    pub unit: String,
    /// The figure as printed.
    pub value: f64,
    /// The evaluation, and the words of the paper.
    pub source: String,
}

impl Published {
    /// Returns the whole citation.
    pub fn citation(&self) -> String {
        format!("{}, \"{}\", {}", self.authors, self.title, self.venue)
    }

    /// Returns the figure with this name.
    ///
    /// # Panics
    /// If there is no such figure.
    pub fn figure(&self, name: &str) -> &Figure {
        self.figures.get(name).expect("a figure of the paper")
    }
}

/// Reads the file.
///
/// # Panics
/// If the file, which is part of the program, is invalid.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/expether.json is part of the program")
}
