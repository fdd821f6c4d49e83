//! The parts of the experiment, and their results.

use super::{Depth, NvmeTsnParameter, PushedTunnel, Requests, Speed, Tables, TsnRead, published};
use crate::document::{self, Rows};
use crate::{Figure, Lab, Section};
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Published and simulated figures, and the parameters.
    Table,
    /// Possible causes of the published read latency over TSN.
    TsnRead,
    /// Latencies at 10, 25, 50 and 100 Gb/s.
    Speeds,
    /// Effect of push compared with a directly attached drive, at 1 to 100 Gb/s.
    Push,
    /// Time per command by queue depth.
    Depth,
    /// Sweep of MPS, MRRS and reads in flight.
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

impl Rows for NvmeTsnResults {
    type Row = Figure;

    fn rows(&self) -> &[Figure] {
        self.rows.as_deref().unwrap_or_default()
    }
}

impl document::Part for Part {
    type Results = NvmeTsnResults;

    const PUBLICATION: &'static str = "nvme-tsn";
    const PARTS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Table, "table", "Published and simulated figures, and the parameters"),
        (Self::TsnRead, "tsn-read", "Possible causes of the published read latency over TSN"),
        (Self::Speeds, "speeds", "Latencies at 10, 25, 50 and 100 Gb/s"),
        (
            Self::Push,
            "push",
            "Effect of push compared with a directly attached drive, at 1 to 100 Gb/s",
        ),
        (Self::Depth, "depth", "Time per command by queue depth"),
        (Self::Mrrs, "mrrs", "Sweep of MPS, MRRS and reads in flight"),
    ];
    const PUBLISHED: &'static [Self] = &[Self::Table];

    fn citation() -> String {
        published().citation()
    }

    fn section(figure: &str) -> String {
        published().source(figure).to_owned()
    }

    fn simulate(self, results: &mut Self::Results, lab: Lab<'_>) -> Result<Vec<Section>, Failure> {
        let published = published();
        Ok(match self {
            Self::Table => {
                let tables: Tables = super::tables(&published, lab)?;
                let sections = vec![tables.section(&published), super::parameter_section()];
                results.rows = Some(tables.rows);
                results.parameters = Some(super::parameters());
                sections
            }
            Self::TsnRead => {
                let result = super::tsn_read::simulate(&published)?;
                vec![super::tsn_read::section(results.tsn_read.insert(result))]
            }
            Self::Speeds => {
                let result = super::speeds::simulate()?;
                vec![super::speeds::section(results.speeds.insert(result))]
            }
            Self::Push => {
                let result = super::push::simulate()?;
                vec![super::push::section(results.push.insert(result))]
            }
            Self::Depth => {
                let result = super::depth::simulate()?;
                vec![super::depth::section(results.depth.insert(result))]
            }
            Self::Mrrs => {
                let result = super::requests::simulate()?;
                vec![super::requests::section(results.requests.insert(result))]
            }
        })
    }
}
