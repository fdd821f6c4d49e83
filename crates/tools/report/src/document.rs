//! JSON documents of `--json`, the outcome of a command, and the end of a page.

use crate::Page;
use serde::Serialize;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command finished, and every requirement is met.
    Done,
    /// The command finished, but a requirement is missed.
    Missed,
    /// A signal ended the command; the finished results are printed.
    Interrupted,
}

impl Ended {
    /// Returns the outcome of a command without requirements.
    pub fn unless(interrupted: bool) -> Self {
        if interrupted { Self::Interrupted } else { Self::Done }
    }
}

/// Sentence in the text of an interrupted command.
pub const INTERRUPTED: &str = "Interrupted: this is what was finished.";

/// The last line of every page.
pub const WRITTEN_BY: &str = concat!("Written by farlane ", env!("CARGO_PKG_VERSION"), ".");

/// Formats a JSON document for printing.
pub fn json<D: Serialize + ?Sized>(document: &D) -> String {
    serde_json::to_string_pretty(document).expect("plain keys")
}

/// Finishes a page with the JSON document of `--json` at its end.
pub fn finish_with_data<D: Serialize + ?Sized>(
    mut page: Page,
    summary: &str,
    document: &D,
) -> String {
    page.section("Data");
    page.details(summary, &json(document));
    page.finish(WRITTEN_BY)
}

/// Rounds a number for a JSON document to at most `decimals` decimals.
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let one = 10_f64.powi(decimals);
    (value * one).round() / one
}
