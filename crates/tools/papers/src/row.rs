//! A published figure and the simulated one.

use schemars::JsonSchema;
use serde::Serialize;

/// A published figure and the simulated one.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Figure {
    /// Name of the figure.
    pub figure: String,
    /// Unit of the figure, such as `ns` or `us`.
    pub unit: &'static str,
    /// The figure as it was printed, in `unit`.
    pub published: f64,
    /// The simulated figure, in `unit`: nanoseconds are whole; others have one or two decimals.
    pub simulated: f64,
    /// Simulated against published, in per cent to two decimals; may be negative.
    pub error_percent: f64,
    /// Whether a parameter was chosen by this figure, or the figure follows from one that was.
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

    /// The row of this figure.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn find<'a>(rows: &'a [Self], figure: &str) -> &'a Self {
        rows.iter().find(|row| row.figure == figure).expect("a figure of the table")
    }
}

/// Of what was published, with two decimals.
pub fn error_percent(published: f64, simulated: f64) -> f64 {
    ((simulated / published - 1.0) * 10_000.0).round() / 100.0
}

/// With a sign, one decimal.
pub fn percent(error: f64) -> String {
    // Not "-0.0".
    let rounded = (error * 10.0).round() / 10.0 + 0.0;
    if rounded == 0.0 { "0.0 %".to_owned() } else { format!("{rounded:+.1} %") }
}
