//! The expected figures: `data/tsn-ports.json`, each with its source or its arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DATA: &str = include_str!("../../data/tsn-ports.json");

/// The contents of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Title of all cases.
    pub title: String,
    /// Cases in the order of the output.
    pub cases: Vec<CaseData>,
}

/// A case.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseData {
    /// Name of the case in the code.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Source of the parameters and the published figures.
    pub source: String,
    /// Description of the simulation.
    pub setup: String,
    /// Differences between farlane's model and the source's.
    #[serde(default)]
    pub differs: Option<String>,
    /// The compared figures.
    pub figures: Vec<Figure>,
}

/// An expected figure.
#[derive(Clone, Debug, Deserialize)]
pub struct Figure {
    /// Name of the figure.
    pub name: String,
    /// Unit, such as `us` or `Mb/s`.
    pub unit: String,
    /// Source of the figure.
    pub basis: Basis,
    /// Value of the figure.
    pub value: f64,
    /// How the simulated figure must compare.
    pub rule: Rule,
    /// Permitted difference in per cent of the value; 0 by default.
    #[serde(default)]
    pub percent: f64,
    /// Place in the source, or the arithmetic; and the reason for a permitted difference.
    pub how: String,
}

/// The source of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The source prints the figure.
    Published,
    /// The figure is computed by hand.
    Hand,
}

/// How a simulated figure must compare with the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Equal, except for the permitted percentage.
    Equal,
    /// The expected figure is an upper bound.
    AtMost,
    /// The expected figure is a lower bound.
    AtLeast,
}

impl Basis {
    /// Returns the name of the source in tables: `published` or `by hand`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Hand => "by hand",
        }
    }
}

/// Half of the smallest compared digit. Figures are picoseconds in microseconds, or counts.
const EXACT: f64 = 5e-7;

impl Figure {
    /// Returns whether `simulated` compares as required.
    pub fn holds(&self, simulated: f64) -> bool {
        let off = self.value.abs() * self.percent / 100.0 + EXACT;
        let (above, below) = (simulated - self.value, self.value - simulated);
        match self.rule {
            Rule::Equal => above <= off && below <= off,
            Rule::AtMost => above <= off,
            Rule::AtLeast => below <= off,
        }
    }
}

impl Published {
    /// Returns title and source of the case of a figure, such as `strict_priority.longest`.
    pub(crate) fn section(&self, figure: &str) -> String {
        let case = figure.split('.').next().unwrap_or_default();
        let data = self.cases.iter().find(|data| data.name == case);
        data.map_or_else(String::new, |data| format!("{}: {}", data.title, data.source))
    }
}

/// Reads the file.
///
/// # Panics
/// If the file, which is part of the program, is invalid.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/tsn-ports.json is part of the program")
}
