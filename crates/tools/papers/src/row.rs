//! A published figure and its simulated value.

use schemars::JsonSchema;
use serde::Serialize;

/// A published figure and its simulated value.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Figure {
    /// Name of the figure.
    pub figure: String,
    /// Unit of the figure, such as `ns` or `us`.
    pub unit: &'static str,
    /// The figure as it was printed, in `unit`.
    pub published: f64,
    /// The simulated figure, in `unit`. Nanoseconds are whole; other units have one or two
    /// decimals.
    pub simulated: f64,
    /// Difference of the simulated from the published figure, in per cent to two decimals; may be
    /// negative.
    pub error_percent: f64,
    /// Whether the figure was used to choose a parameter, or follows from such a figure.
    pub calibrated: bool,
    /// A remark.
    pub note: &'static str,
}

impl Figure {
    /// Compares `simulated` with what was `published`.
    pub(crate) fn new(
        (figure, unit): (String, &'static str),
        (published, simulated): (f64, f64),
        (calibrated, note): (bool, &'static str),
    ) -> Self {
        let error_percent = error_percent(published, simulated);
        Self { figure, unit, published, simulated, error_percent, calibrated, note }
    }

    /// Returns the row of this figure.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn find<'a>(rows: &'a [Self], figure: &str) -> &'a Self {
        rows.iter().find(|row| row.figure == figure).expect("a figure of the table")
    }
}

/// Returns the error in per cent of the published figure, with two decimals.
pub fn error_percent(published: f64, simulated: f64) -> f64 {
    ((simulated / published - 1.0) * 10_000.0).round() / 100.0
}

/// Formats an error in per cent with a sign and one decimal.
pub fn percent(error: f64) -> String {
    // The addition turns -0.0 into 0.0.
    let rounded = (error * 10.0).round() / 10.0 + 0.0;
    if rounded == 0.0 { "0.0 %".to_owned() } else { format!("{rounded:+.1} %") }
}
