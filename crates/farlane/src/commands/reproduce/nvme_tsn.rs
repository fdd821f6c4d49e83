//! `farlane reproduce nvme-tsn`.

use crate::commands::{Failure, Outcome};
use crate::experiments::nvme_tsn::{
    self, Depth, Parameter, Requests, Row, Speed, Tables, TsnRead, published,
};
use crate::experiments::{Failed, Section};
use crate::progress::Progress;
use crate::report::Page;
use clap::ValueEnum;
use serde::Serialize;
use std::path::Path;

/// Version of the document.
const SCHEMA: u32 = 1;

/// A part of what is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated, and the parameters
    Table,
    /// What would explain the read over TSN
    TsnRead,
    /// 10, 25, 50 and 100 Gb/s
    Speeds,
    /// Time per command against queue depth
    Depth,
    /// MPS, MRRS and reads in flight
    Mrrs,
}

impl Part {
    const ALL: [Self; 5] = [Self::Table, Self::TsnRead, Self::Speeds, Self::Depth, Self::Mrrs];
}

/// The document of `--json`.
#[derive(Default, Serialize)]
struct Document {
    schema: u32,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<Parameter>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tsn_read: Option<TsnRead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speeds: Option<Vec<Speed>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<Vec<Depth>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        Self(failed.to_string())
    }
}

/// Runs the parts, all if none is named.
pub fn run(only: &[Part], json: bool, html: Option<&Path>) -> Outcome {
    let published = published();
    let mut document =
        Document { schema: SCHEMA, source: published.citation(), ..Document::default() };
    let mut page = Page::new("farlane reproduce nvme-tsn");
    page.text(&format!("{}: published and simulated.", document.source));
    if !json {
        println!("{}\n", document.source);
    }
    let mut progress = Progress::new();
    for part in Part::ALL.into_iter().filter(|part| only.is_empty() || only.contains(part)) {
        progress.show(&format!("simulating: {part:?}").to_lowercase());
        let sections = simulate(part, &mut document)?;
        progress.done();
        for section in sections {
            section.write(&mut page);
            if !json {
                println!("{}", section.text());
            }
        }
    }
    if json {
        let text = serde_json::to_string_pretty(&document).expect("plain keys");
        println!("{text}");
    }
    if let Some(path) = html {
        let text = serde_json::to_string_pretty(&document).expect("plain keys");
        page.details("JSON", &text);
        let page = page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")));
        std::fs::write(path, page)
            .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn simulate(part: Part, document: &mut Document) -> Result<Vec<Section>, Failed> {
    let published = published();
    Ok(match part {
        Part::Table => {
            let tables: Tables = nvme_tsn::tables(&published)?;
            let sections = vec![tables.section(&published), nvme_tsn::parameter_section()];
            document.rows = Some(tables.rows);
            document.parameters = Some(nvme_tsn::parameters());
            sections
        }
        Part::TsnRead => {
            let result = nvme_tsn::tsn_read::simulate(&published)?;
            vec![nvme_tsn::tsn_read::section(document.tsn_read.insert(result))]
        }
        Part::Speeds => {
            let result = nvme_tsn::speeds::simulate()?;
            vec![nvme_tsn::speeds::section(document.speeds.insert(result))]
        }
        Part::Depth => {
            let result = nvme_tsn::depth::simulate()?;
            vec![nvme_tsn::depth::section(document.depth.insert(result))]
        }
        Part::Mrrs => {
            let result = nvme_tsn::requests::simulate()?;
            vec![nvme_tsn::requests::section(document.requests.insert(result))]
        }
    })
}
