//! The subcommands, one file each.

pub mod bench;
pub mod demo;
pub mod device;
pub mod drive;
pub mod host;
pub mod io;
pub mod latency;
pub mod move_to;
pub mod ping;
pub mod reproduce;
pub mod sim;
pub mod switch;
pub mod trace;

use report::{Failure, Outcome, Page};
use serde::Serialize;

/// The last line of every page.
const WRITTEN_BY: &str = concat!("Written by farlane ", env!("CARGO_PKG_VERSION"), ".");

/// A document of `--json` as it is printed.
fn json<D: Serialize + ?Sized>(document: &D) -> String {
    serde_json::to_string_pretty(document).expect("plain keys")
}

/// The whole of a page that ends with the document of `--json`.
fn finish<D: Serialize + ?Sized>(mut page: Page, summary: &str, document: &D) -> String {
    page.section("Data");
    page.details(summary, &json(document));
    page.finish(WRITTEN_BY)
}

/// A number as documents have it, with so many decimals at most.
fn rounded(value: f64, decimals: i32) -> f64 {
    let one = 10_f64.powi(decimals);
    (value * one).round() / one
}
