//! The expected figures: `data/tsn-ports.json`, each with its source or its arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DATA: &str = include_str!("../../data/tsn-ports.json");

/// The file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// What the cases are.
    pub title: String,
    /// In the order in which they are shown.
    pub cases: Vec<CaseData>,
}

/// A case.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseData {
    /// Its name in the code.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Where parameters and published figures are from.
    pub source: String,
    /// What is simulated.
    pub setup: String,
    /// Where farlane's model is another than the source's.
    #[serde(default)]
    pub differs: Option<String>,
    /// What is compared.
    pub figures: Vec<Figure>,
}

/// A figure.
#[derive(Clone, Debug, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Such as `us` or `Mb/s`.
    pub unit: String,
    /// Who says so.
    pub basis: Basis,
    /// The figure.
    pub value: f64,
    /// How the simulated figure has to compare.
    pub rule: Rule,
    /// How far it may be off, per cent of the value; without it, it is exact.
    #[serde(default)]
    pub percent: f64,
    /// Where it is said, or the arithmetic; and why it may be off.
    pub how: String,
}

/// Where a figure is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The source prints it.
    Published,
    /// It is computed by hand.
    Hand,
}

/// How a simulated figure has to compare with the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// No more and no less, but for the percentage.
    Equal,
    /// It is a bound.
    AtMost,
    /// It is reached.
    AtLeast,
}

impl Basis {
    /// In tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Hand => "by hand",
        }
    }
}

/// Half of the least digit that is compared: figures are picoseconds in microseconds, or counts.
const EXACT: f64 = 5e-7;

impl Figure {
    /// Whether `simulated` compares as it has to.
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

/// Reads the file.
///
/// # Panics
/// If it does not fit: it is part of the program.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/tsn-ports.json is part of the program")
}
