//! `farlane reproduce expether`.

use super::{Options, Reproduction};
use clap::ValueEnum;
use papers::expether::{
    self, Ablation, Assumed, Latencies, Parameter, Point, Statement, Sweep, Table, published,
};
use papers::{Row, Section};
use report::{Failure, Outcome};
use serde::Serialize;

/// Version of the document.
const SCHEMA: u32 = 1;

/// A part of what is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated with the curves of the slides, and the parameters
    Table,
    /// per-tlp, wait=1us, hop and adaptive side by side
    Ablation,
    /// How much hangs on what the slides do not say
    Assumed,
}

/// The document of `--json`.
#[derive(Default, Serialize)]
struct Document {
    schema: u32,
    source: String,
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

/// Runs the parts, all if none is named.
pub fn run(options: &Options<Part>) -> Outcome {
    let citation = published().citation();
    let document = Document { schema: SCHEMA, source: citation.clone(), ..Document::default() };
    let told = Reproduction { name: "expether", citation: &citation, document };
    told.run(options, |part, document| simulate(*part, document))
}

fn simulate(part: Part, document: &mut Document) -> Result<Vec<Section>, Failure> {
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
            document.rows = Some(table.rows);
            document.statements = Some(table.statements);
            (document.ssds, document.limits) = (Some(ssds), Some(limits));
            document.parameters = Some(expether::parameters());
            sections
        }
        Part::Ablation => {
            let result = expether::ablation::simulate()?;
            vec![expether::ablation::section(document.ablation.insert(result))]
        }
        Part::Assumed => {
            let result = expether::assumed::simulate()?;
            vec![expether::assumed::section(document.assumed.insert(result))]
        }
    })
}
