//! Documents of `--json`, how a command ends, and how a page ends.

use crate::Page;
use serde::Serialize;

/// How a command came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything is done, and every requirement met.
    Done,
    /// Everything is done; a requirement is missed.
    Missed,
    /// A signal ended it: what was finished is printed.
    Interrupted,
}

impl Ended {
    /// The end of a command without requirements.
    pub fn unless(interrupted: bool) -> Self {
        if interrupted { Self::Interrupted } else { Self::Done }
    }
}

/// What the text of an interrupted command says.
pub const INTERRUPTED: &str = "Interrupted: this is what was finished.";

/// The last line of every page.
pub const WRITTEN_BY: &str = concat!("Written by farlane ", env!("CARGO_PKG_VERSION"), ".");

/// A document of `--json` as it is printed.
pub fn json<D: Serialize + ?Sized>(document: &D) -> String {
    serde_json::to_string_pretty(document).expect("plain keys")
}

/// The whole of a page that ends with the document of `--json`.
pub fn finish_with_data<D: Serialize + ?Sized>(
    mut page: Page,
    summary: &str,
    document: &D,
) -> String {
    page.section("Data");
    page.details(summary, &json(document));
    page.finish(WRITTEN_BY)
}

/// A number for a document, with at most `decimals` decimals.
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let one = 10_f64.powi(decimals);
    (value * one).round() / one
}
