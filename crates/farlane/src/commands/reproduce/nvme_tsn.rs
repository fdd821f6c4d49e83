//! `farlane reproduce nvme-tsn`.

use super::{Options, Rows, Source};
use clap::ValueEnum;
use papers::nvme_tsn::{
    self, Depth, NvmeTsnParameter, PushedTunnel, Requests, Speed, Tables, TsnRead, published,
};
use papers::{Figure, Lab, Section};
use report::{Failure, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated figures, and the parameters
    Table,
    /// Possible causes of the published read latency over TSN
    TsnRead,
    /// Latencies at 10, 25, 50 and 100 Gb/s
    Speeds,
    /// Effect of push compared with a directly attached drive, at 1 to 100 Gb/s
    Push,
    /// Time per command by queue depth
    Depth,
    /// Sweep of MPS, MRRS and reads in flight
    Mrrs,
}

/// Results of the parts that ran.
#[derive(Default, JsonSchema, Serialize)]
pub struct NvmeTsnResults {
    /// Part `table`: the published figures, in this order: `config_read_direct`, `_tcp`, `_tsn`,
    /// `t_tunnel_tcp`, `_tsn` in ns, `read_4k_direct`, `_tcp`, `_tsn`, `write_4k_direct`, `_tcp`,
    /// `_tsn` in us.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Figure>>,
    /// Part `table`: the parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<NvmeTsnParameter>>,
    /// Part `tsn-read`: possible causes of the published read over TSN.
    #[serde(skip_serializing_if = "Option::is_none")]
    tsn_read: Option<TsnRead>,
    /// Part `speeds`: one element per topology and rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    speeds: Option<Vec<Speed>>,
    /// Part `push`: one element per topology and rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<Vec<PushedTunnel>>,
    /// Part `depth`: one element per workload, rate and depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<Vec<Depth>>,
    /// Part `mrrs`: a sweep of payload and request sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
}

/// Runs the requested parts.
pub(super) fn run(options: &Options<Part>) -> Outcome {
    let published = published();
    let source = Source {
        name: "nvme-tsn",
        citation: published.citation(),
        published: &[Part::Table],
        section: &|row| published.source(row).to_owned(),
    };
    options.run(&source, simulate).map(drop)
}

impl Rows for NvmeTsnResults {
    type Row = Figure;

    fn rows(&self) -> &[Figure] {
        self.rows.as_deref().unwrap_or_default()
    }
}

fn simulate(part: &Part, results: &mut NvmeTsnResults, lab: Lab) -> Result<Vec<Section>, Failure> {
    let published = published();
    Ok(match part {
        Part::Table => {
            let tables: Tables = nvme_tsn::tables(&published, lab)?;
            let sections = vec![tables.section(&published), nvme_tsn::parameter_section()];
            results.rows = Some(tables.rows);
            results.parameters = Some(nvme_tsn::parameters());
            sections
        }
        Part::TsnRead => {
            let result = nvme_tsn::tsn_read::simulate(&published)?;
            vec![nvme_tsn::tsn_read::section(results.tsn_read.insert(result))]
        }
        Part::Speeds => {
            let result = nvme_tsn::speeds::simulate()?;
            vec![nvme_tsn::speeds::section(results.speeds.insert(result))]
        }
        Part::Push => {
            let result = nvme_tsn::push::simulate()?;
            vec![nvme_tsn::push::section(results.push.insert(result))]
        }
        Part::Depth => {
            let result = nvme_tsn::depth::simulate()?;
            vec![nvme_tsn::depth::section(results.depth.insert(result))]
        }
        Part::Mrrs => {
            let result = nvme_tsn::requests::simulate()?;
            vec![nvme_tsn::requests::section(results.requests.insert(result))]
        }
    })
}
