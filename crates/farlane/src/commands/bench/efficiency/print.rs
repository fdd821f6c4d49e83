//! Prints the results as text or JSON.

use super::super::print::spread;
use super::{Args, PathPair};
use crate::commands::{INTERRUPTED, rounded};
use load::case::Case;
use load::testbed::{Round, Series};
use report::Align::{Left, Right};
use report::{Align, Table, time};
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the document.
const SCHEMA: u32 = 1;

/// IOPS, processor time, latency and consistency of 4 KiB commands on live nodes, direct and
/// tunnelled in the same run.
#[derive(JsonSchema, Serialize)]
pub struct EfficiencyDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// `true`, only after Ctrl-C: the document contains the finished results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Max_Payload_Size in bytes.
    pub mps: u16,
    /// Data pushed in front of doorbells on the tunnelled path (docs/push.md): `off`, `entries` or
    /// `all`.
    pub push: &'static str,
    /// Time for which nodes poll before they sleep (`--spin`).
    pub spin_ns: u64,
    /// One element per workload.
    pub runs: Vec<EfficiencyRun>,
}

/// One workload on both paths.
#[derive(JsonSchema, Serialize)]
pub struct EfficiencyRun {
    #[serde(flatten)]
    pub case: Case,
    /// Percentage of reads.
    pub rwmixread: u8,
    /// Number of rounds.
    pub rounds: usize,
    /// The same root complex and controller without a tunnel. One thread runs host and controller.
    pub direct: EfficiencyFigures,
    /// Through switch, tunnel and TCP on loopback.
    pub tunnelled: EfficiencyFigures,
    /// `tunnelled` divided by `direct`.
    pub ratio: EfficiencyRatio,
}

/// One workload on one path.
#[derive(JsonSchema, Serialize)]
pub struct EfficiencyFigures {
    /// Commands per second.
    pub iops: RoundSpread,
    /// CPU time of the host node per command, initiator and spinning included.
    pub host_cpu_ns_per_io: RoundSpread,
    /// CPU time of the device node per command, spinning included.
    pub device_cpu_ns_per_io: RoundSpread,
    /// CPU time per command on both sides.
    pub cpu_ns_per_io: RoundSpread,
    /// Mean of the time from submission to completion, measured in the driver.
    pub mean_ns: RoundSpread,
    /// 99th percentile of the same time.
    pub p99_ns: RoundSpread,
    /// 99.9th percentile of the same time, divided by its median.
    pub consistency: RoundSpread,
}

/// The tunnelled figure divided by the direct figure, for each pair of runs that follow each other.
#[derive(JsonSchema, Serialize)]
pub struct EfficiencyRatio {
    /// Ratio of `iops`.
    pub iops: RoundSpread,
    /// Ratio of `cpu_ns_per_io`.
    pub cpu_ns_per_io: RoundSpread,
    /// Ratio of `mean_ns`.
    pub mean_ns: RoundSpread,
    /// Ratio of `p99_ns`.
    pub p99_ns: RoundSpread,
    /// Ratio of `consistency`.
    pub consistency: RoundSpread,
}

/// A figure over the rounds.
#[derive(JsonSchema, Serialize)]
pub struct RoundSpread {
    /// Median, the upper one for an even number of rounds.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// Returns the CPU time of both sides per command.
pub fn cpu_ns(round: &Round) -> f64 {
    round.host_cpu_ns + round.device_cpu_ns
}

/// Returns p99.9 divided by p50.
pub fn consistency(round: &Round) -> f64 {
    round.p99_9_ns as f64 / round.p50_ns.max(1) as f64
}

fn round_spread(values: impl Iterator<Item = f64>, decimals: i32) -> RoundSpread {
    let (median, min, max) = spread(values);
    let [median, min, max] = [median, min, max].map(|value| rounded(value, decimals));
    RoundSpread { median, min, max }
}

fn figures(series: &Series) -> EfficiencyFigures {
    let whole = |figure: fn(&Round) -> f64| round_spread(series.rounds.iter().map(figure), 0);
    EfficiencyFigures {
        iops: whole(|round| round.iops),
        host_cpu_ns_per_io: whole(|round| round.host_cpu_ns),
        device_cpu_ns_per_io: whole(|round| round.device_cpu_ns),
        cpu_ns_per_io: whole(cpu_ns),
        mean_ns: whole(|round| round.mean_ns as f64),
        p99_ns: whole(|round| round.p99_ns as f64),
        consistency: round_spread(series.rounds.iter().map(consistency), 2),
    }
}

/// Returns the spread of the ratios of one figure.
pub fn ratio([direct, tunnelled]: &PathPair, figure: fn(&Round) -> f64) -> RoundSpread {
    let rounds = direct.rounds.iter().zip(&tunnelled.rounds);
    // A run too short for the clock has no CPU time.
    let ratios = rounds.map(|(direct, tunnelled)| figure(tunnelled) / figure(direct).max(1e-3));
    round_spread(ratios, 3)
}

fn run(pair: &PathPair) -> EfficiencyRun {
    let [direct, tunnelled] = pair;
    EfficiencyRun {
        case: direct.case,
        rwmixread: direct.case.rwmixread,
        rounds: direct.rounds.len(),
        direct: figures(direct),
        tunnelled: figures(tunnelled),
        ratio: EfficiencyRatio {
            iops: ratio(pair, |round| round.iops),
            cpu_ns_per_io: ratio(pair, cpu_ns),
            mean_ns: ratio(pair, |round| round.mean_ns as f64),
            p99_ns: ratio(pair, |round| round.p99_ns as f64),
            consistency: ratio(pair, consistency),
        },
    }
}

/// Computes medians, spreads and ratios of the results.
pub fn document(args: &Args, pairs: &[PathPair], interrupted: bool) -> EfficiencyDocument {
    EfficiencyDocument {
        schema: SCHEMA,
        interrupted,
        mps: args.mps,
        push: args.push.name(),
        spin_ns: args.round.spin.as_ns(),
        runs: pairs.iter().map(run).collect(),
    }
}

/// Formats the settings and the meaning of the figures.
pub fn heading(document: &EfficiencyDocument) -> String {
    format!(
        "MPS {}, push {}, spin {}; medians of {} rounds, ratios of runs that follow each other",
        document.mps,
        document.push,
        time(document.spin_ns as f64),
        document.runs.first().map_or(0, |run| run.rounds),
    )
}

const HEAD: [(&str, Align); 10] = [
    ("workload", Left),
    ("path", Left),
    ("IOPS", Right),
    ("min-max", Right),
    ("host us", Right),
    ("device us", Right),
    ("CPU us", Right),
    ("mean us", Right),
    ("p99 us", Right),
    ("p99.9/p50", Right),
];

/// Returns three rows per workload: direct, tunnelled and their ratio.
pub fn rows(document: &EfficiencyDocument) -> Table {
    let mut table = Table::new(&HEAD);
    let us = |ns: &RoundSpread| format!("{:.2}", ns.median / 1e3);
    let times = |ratio: &RoundSpread| format!("{:.2}", ratio.median);
    for run in &document.runs {
        let name = run.case.name();
        for (path, figures) in [("direct", &run.direct), ("tunnelled", &run.tunnelled)] {
            let EfficiencyFigures { iops, .. } = figures;
            table.row(vec![
                name.clone(),
                path.to_owned(),
                format!("{:.0}", iops.median),
                format!("{:.0}-{:.0}", iops.min, iops.max),
                us(&figures.host_cpu_ns_per_io),
                us(&figures.device_cpu_ns_per_io),
                us(&figures.cpu_ns_per_io),
                us(&figures.mean_ns),
                us(&figures.p99_ns),
                times(&figures.consistency),
            ]);
        }
        let EfficiencyRatio { iops, cpu_ns_per_io, mean_ns, p99_ns, consistency } = &run.ratio;
        let range = format!("{:.2}-{:.2}", iops.min, iops.max);
        let none = || "-".to_owned();
        let mut cells = vec![name, "ratio".to_owned(), times(iops), range, none(), none()];
        cells.extend([cpu_ns_per_io, mean_ns, p99_ns, consistency].map(times));
        table.row(cells);
    }
    table
}

/// Prints the table on stdout.
pub fn table(document: &EfficiencyDocument) {
    println!("{}", heading(document));
    print!("{}", rows(document).text());
    println!(
        "host, device, CPU: CPU time per command of each side and of both; \
         ratio: tunnelled / direct"
    );
    if document.interrupted {
        println!("{INTERRUPTED}");
    }
}
