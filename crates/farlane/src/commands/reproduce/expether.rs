//! `farlane reproduce expether`.

use super::Options;
use clap::ValueEnum;
use papers::expether::{
    self, Ablation, Assumed, Latencies, Parameter, Point, Statement, Sweep, Table, published,
};
use papers::{Row, Section};
use report::{Failure, Outcome};
use serde::Serialize;

/// A part of what is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated with the curves of the paper, and the parameters
    Table,
    /// per-tlp, wait=1us, hop and adaptive side by side
    Ablation,
    /// How much hangs on what the paper does not say
    Assumed,
}

/// What came of the parts that ran.
#[derive(Default, Serialize)]
struct Results {
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statements: Option<Vec<Statement>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssds: Option<Vec<Point>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Vec<Point>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<Parameter>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ablation: Option<Vec<Ablation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<Vec<Assumed>>,
}

/// Runs the requested parts.
pub fn run(options: &Options<Part>) -> Outcome {
    options.run("expether", published().citation(), simulate)
}

fn simulate(part: &Part, results: &mut Results) -> Result<Vec<Section>, Failure> {
    let published = published();
    Ok(match part {
        Part::Table => {
            let times = Latencies::simulate()?;
            let ssds = Sweep::Ssds.simulate()?;
            let limits = Sweep::Limits.simulate()?;
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
