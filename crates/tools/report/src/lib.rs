//! Reports as one self-contained HTML page. A page loads nothing from the network, can be read on a
//! telephone and on paper, and has no scripts but those that are added to it. A [`Page`] contains [`Table`], [`Plot`], [`Dots`]
//! and [`Stack`] elements. Pictures are inline SVG.
//!
//! # Modules
//!
//! - `page`: the skeleton of a page
//! - `table`: tables
//! - `plot`: plots, distributions, histograms
//! - `dots`: values of cases on one axis
//! - `bars`: stacked bars
//! - [`lanes`]: lanes along a time axis
//! - [`latency`]: latency figures
//! - [`span`]: text form of times and sizes
//! - [`document`]: documents of `--json`, the end of a command and of a page
//! - [`target`]: files and `-` as targets of documents
//! - `failure`: the reason of a failed command

mod bars;
pub mod document;
mod dots;
mod failure;
pub mod lanes;
pub mod latency;
mod page;
mod plot;
pub mod span;
mod table;
pub mod target;
#[cfg(test)]
mod tests;

pub use bars::{Bar, Stack, shares};
pub use dots::{DotRow, Dots};
pub use failure::{Failure, Outcome, last_line};
pub use page::{Page, Tile};
pub use plot::{Axis, Plot, Scale, Series, distribution, histogram};
pub use table::{Align, Column, FAIL, Table};

/// Colours of series and segments that colour-blind readers can distinguish (M. Okabe and K. Ito,
/// "Color Universal Design", 2008); further colours are from P. Tol, "Colour Schemes", 2021, muted.
const COLOURS: [&str; 15] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#882255",
    "#999933", "#332288", "#44aa99", "#aa4499", "#117733", "#b5651d", "#88a0b0",
];

/// Returns the colour of the series or segment with this number.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// Returns the text colour for a background: dark or white, whichever has the greater contrast
/// (WCAG 2.2, "relative luminance" and "contrast ratio").
fn ink(colour: &str) -> &'static str {
    let part = |at: usize| {
        let value =
            u8::from_str_radix(&colour[at..at + 2], 16).map_or(0.0, |v| f64::from(v) / 255.0);
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
    // The dark colour #1c2733 has a luminance of 0.02.
    if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.07 { "#fff" } else { "#1c2733" }
}

/// Escapes text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the opening tag of a picture of this size.
fn svg(width: f64, height: f64, title: &str) -> String {
    let title = escape(title);
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">"
    )
}

/// Formats a time in a suitable unit, with three significant digits and no trailing zeroes.
pub fn time(ns: f64) -> String {
    to_digits(ns, 3)
}

/// Formats a time with up to twelve digits, for labels of an axis far from 0 that differ only in
/// later digits.
pub fn round_time(ns: f64) -> String {
    to_digits(ns, 12)
}

fn to_digits(ns: f64, digits: usize) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let before = [10.0, 100.0, 1000.0, 1e4, 1e5].into_iter().filter(|power| value >= *power);
    let decimals = digits.saturating_sub(1 + before.count());
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}
