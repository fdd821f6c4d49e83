//! `farlane reproduce expether`.

use super::{Options, Rows, Source};
use clap::ValueEnum;
use papers::expether::{
    self, Ablation, Assumed, CurvePoint, ExpetherParameter, Latencies, Statement, Sweep, Table,
    published,
};
use papers::{Figure, Lab, Section};
use report::{Failure, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated figures with the curves of the paper, and the parameters
    Table,
    /// Comparison of the policies per-tlp, wait=1us, hop and adaptive
    Ablation,
    /// Sensitivity to parameters that the paper omits
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

/// Runs the requested parts.
pub(super) fn run(options: &Options<Part>) -> Outcome {
    let published = published();
    let source = Source {
        name: "expether",
        citation: published.citation(),
        published: &[Part::Table],
        section: &|row| published.figure(row).source.clone(),
    };
    options.run(&source, simulate).map(drop)
}

impl Rows for ExpetherResults {
    type Row = Figure;

    fn rows(&self) -> &[Figure] {
        self.rows.as_deref().unwrap_or_default()
    }
}

fn simulate(part: &Part, results: &mut ExpetherResults, lab: Lab) -> Result<Vec<Section>, Failure> {
    let published = published();
    Ok(match part {
        Part::Table => {
            let times = Latencies::simulate(lab)?;
            let ssds = Sweep::Ssds.simulate(lab)?;
            let limits = Sweep::Limits.simulate(lab)?;
            let table = Table::new(&published, &ssds, &limits, &times);
            let sections = vec![
                table.section(&published),
                Sweep::Ssds.section(&ssds),
                Sweep::Limits.section(&limits),
                expether::parameter_section(),
            ];
            results.rows = Some(table.rows);
            results.statements = Some(table.statements);
            (results.ssds, results.limits) = (Some(ssds), Some(limits));
            results.parameters = Some(expether::parameters());
            sections
        }
        Part::Ablation => {
            let result = expether::ablation::simulate()?;
            vec![expether::ablation::section(results.ablation.insert(result))]
        }
        Part::Assumed => {
            let result = expether::assumed::simulate()?;
            vec![expether::assumed::section(results.assumed.insert(result))]
        }
    })
}
