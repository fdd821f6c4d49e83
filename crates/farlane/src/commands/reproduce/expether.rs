//! `farlane reproduce expether`.

use super::{Options, Told};
use crate::commands::Outcome;
use crate::experiments::expether::{Latencies, Point, Statement, Sweep, Table, published};
use crate::experiments::{Failed, Row, Section};
use clap::ValueEnum;
use serde::Serialize;

/// Version of the document.
const SCHEMA: u32 = 1;

/// A part of what is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated, the parameters, and evaluations 1 and 2
    Table,
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
}

/// Runs the parts, all if none is named.
pub fn run(options: &Options<Part>) -> Outcome {
    let citation = published().citation();
    let document = Document { schema: SCHEMA, source: citation.clone(), ..Document::default() };
    let told = Told { name: "expether", citation: &citation, document };
    told.run(options, |part, document| simulate(*part, document))
}

fn simulate(part: Part, document: &mut Document) -> Result<Vec<Section>, Failed> {
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
            ];
            document.rows = Some(table.rows);
            document.statements = Some(table.statements);
            document.ssds = Some(ssds);
            document.limits = Some(limits);
            sections
        }
    })
}
