//! The parts of the experiment, and their results.

use super::{
    Ablation, Assumed, CurvePoint, ExpetherParameter, Latencies, Statement, Sweep, Table, published,
};
use crate::document::{self, Rows};
use crate::{Figure, Lab, Section};
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Published and simulated figures with the curves of the paper, and the parameters.
    Table,
    /// Comparison of the policies per-tlp, wait=1us, hop and adaptive.
    Ablation,
    /// Sensitivity to parameters that the paper omits.
    Assumed,
}

/// Results of the parts that ran.
#[derive(Default, JsonSchema, Serialize)]
pub struct ExpetherResults {
    /// Part `table`: the published figures, in this order: `saturation_read` in MB/s,
    /// `gain_read_ssds` and `gain_write_ssds` in %, `onset_ssds` in SSDs, `gain_read_rate` and
    /// `gain_write_rate` in %, `fio_4k_read_on`, `_off`, `fio_4k_write_on`, `_off`,
    /// `fio_64m_read_on`, `_off`, `fio_64m_write_on`, `_off` in us.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Figure>>,
    /// Part `table`: statements of the aggregation paper without a figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    statements: Option<Vec<Statement>>,
    /// Part `table`: points on the curves of evaluation 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    ssds: Option<Vec<CurvePoint>>,
    /// Part `table`: points on the curves of evaluation 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<CurvePoint>>,
    /// Part `table`: the parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ExpetherParameter>>,
    /// Part `ablation`: one element per policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    ablation: Option<Vec<Ablation>>,
    /// Part `assumed`: one element per changed assumption.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<Vec<Assumed>>,
}

impl Rows for ExpetherResults {
    type Row = Figure;

    fn rows(&self) -> &[Figure] {
        self.rows.as_deref().unwrap_or_default()
    }
}

impl document::Part for Part {
    type Results = ExpetherResults;

    const PUBLICATION: &'static str = "expether";
    const PARTS: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Table,
            "table",
            "Published and simulated figures with the curves of the paper, and the parameters",
        ),
        (
            Self::Ablation,
            "ablation",
            "Comparison of the policies per-tlp, wait=1us, hop and adaptive",
        ),
        (Self::Assumed, "assumed", "Sensitivity to parameters that the paper omits"),
    ];
    const PUBLISHED: &'static [Self] = &[Self::Table];

    fn citation() -> String {
        published().citation()
    }

    fn section(figure: &str) -> String {
        published().figure(figure).source.clone()
    }

    fn simulate(self, results: &mut Self::Results, lab: Lab<'_>) -> Result<Vec<Section>, Failure> {
        let published = published();
        Ok(match self {
            Self::Table => {
                let times = Latencies::simulate(lab)?;
                let ssds = Sweep::Ssds.simulate(lab)?;
                let limits = Sweep::Limits.simulate(lab)?;
                let table = Table::new(&published, &ssds, &limits, &times);
                let sections = vec![
                    table.section(&published),
                    Sweep::Ssds.section(&ssds),
                    Sweep::Limits.section(&limits),
                    super::parameter_section(),
                ];
                results.rows = Some(table.rows);
                results.statements = Some(table.statements);
                (results.ssds, results.limits) = (Some(ssds), Some(limits));
                results.parameters = Some(super::parameters());
                sections
            }
            Self::Ablation => {
                let result = super::ablation::simulate()?;
                vec![super::ablation::section(results.ablation.insert(result))]
            }
            Self::Assumed => {
                let result = super::assumed::simulate()?;
                vec![super::assumed::section(results.assumed.insert(result))]
            }
        })
    }
}
