//! A published figure and its simulated value.

use crate::Section;
use report::Align::{Left, Right};
use report::Column;
use schemars::JsonSchema;
use serde::Serialize;

/// A row of a comparison with published figures.
pub trait Row {
    /// Name, unique in the publication.
    fn name(&self) -> String;

    /// Unit of the figures.
    fn unit(&self) -> &str;

    /// The published or expected figure, and the simulated one.
    fn values(&self) -> [f64; 2];
}

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

impl Row for Figure {
    fn name(&self) -> String {
        self.figure.clone()
    }

    fn unit(&self) -> &str {
        self.unit
    }

    fn values(&self) -> [f64; 2] {
        [self.published, self.simulated]
    }
}

/// A simulated figure with other settings than the publication's.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Changed{R}")]
pub struct Changed<R> {
    /// The figure with the publication's settings.
    #[serde(flatten)]
    pub row: R,
    /// The simulated figure with the settings of `set`.
    pub changed: f64,
    /// Difference of `changed` from `simulated`, in per cent to two decimals; null if one of them
    /// is 0 or was not measured.
    pub change_percent: Option<f64>,
}

impl<R: Row + Clone> Changed<R> {
    /// Compares the rows with the publication's settings and with others.
    pub fn all(before: &[R], after: &[R]) -> Vec<Self> {
        let figure = |(row, after): (&R, &R)| {
            let ([_, simulated], [_, changed]) = (row.values(), after.values());
            let change_percent =
                Some(error_percent(simulated, changed)).filter(|change| change.is_finite());
            Self { row: row.clone(), changed, change_percent }
        };
        before.iter().zip(after).map(figure).collect()
    }

    /// Returns the figures as a table. `set` are the settings.
    pub fn section(all: &[Self], set: &[String]) -> Section {
        let columns: [Column<Self>; 6] = [
            ("figure", Left, |one| one.row.name()),
            ("unit", Left, |one| one.row.unit().to_owned()),
            ("published", Right, |one| one.row.values()[0].to_string()),
            ("simulated", Right, |one| one.row.values()[1].to_string()),
            ("with the settings", Right, |one| one.changed.to_string()),
            ("change", Right, |one| one.change_percent.map_or_else(String::new, percent)),
        ];
        let title = format!("Other settings than the publication's: {}", set.join(", "));
        Section::from_rows(&title, &columns, all, &[])
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
