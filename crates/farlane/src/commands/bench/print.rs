//! Prints the results as text or JSON.

use super::BenchResults;
use crate::commands::{INTERRUPTED, rounded};
use live::Waiting;
use load::case::Case;
use load::recording::Cost;
use load::testbed::{Floor, Round, Series};
use report::Align::{Left, Right};
use report::{Column, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Version of the document.
const SCHEMA: u32 = 1;

/// Throughput and latency of live nodes. With `--rw`, `--iodepth`, `--push` and `--path` the
/// document has only the runs that match.
#[derive(JsonSchema, Serialize)]
pub struct BenchDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// `true`, only after Ctrl-C: the document contains the finished results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Raw TCP on loopback in the same run, medians over the rounds.
    pub floor: FloorEntry,
    /// One element per path, payload size and workload.
    pub runs: Vec<BenchRun>,
    /// One element per workload, only with `--recording`: the cost of recording a trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recording: Vec<RecordingCost>,
}

/// The cost of recording: one command of 4 KiB at a time, in pairs of rounds without and with a
/// trace on both nodes. The two rounds of a pair are consecutive, in alternating order.
#[derive(JsonSchema, Serialize)]
pub struct RecordingCost {
    /// Max_Payload_Size in bytes.
    pub mps: u16,
    /// fio's word: `randread` or `randwrite`.
    pub rw: &'static str,
    /// Pairs of rounds.
    pub pairs: usize,
    /// Median over the medians of rounds without a trace.
    pub p50_without_ns: u64,
    /// Median over the medians of rounds with a trace.
    pub p50_with_ns: u64,
    /// Median over the medians of a second machine without a trace.
    pub p50_control_ns: u64,
    /// Increase of p50 by recording, in per cent: median over the pairs.
    pub cost_percent: f64,
    /// First quartile of `cost_percent` over the pairs.
    pub cost_percent_q1: f64,
    /// Third quartile of `cost_percent` over the pairs.
    pub cost_percent_q3: f64,
    /// Increase of p50 on the second machine without a trace, in per cent: the noise; median over
    /// the pairs.
    pub control_percent: f64,
}

/// Raw TCP on loopback in the same run, medians over the rounds.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Floor")]
pub struct FloorEntry {
    /// How the floor and the data path wait: `block` or `spin` (`--spin` above 0).
    pub wait: &'static str,
    /// Round trip of 64 bytes.
    pub tcp_pingpong_64b_p50_ns: u64,
    /// Bytes per second in one direction, in writes of 128 KiB.
    pub tcp_stream_bytes_per_s: u64,
    /// Bytes per second if each side also copies the payload once, from and to 64 MiB of memory.
    pub tcp_stream_copied_bytes_per_s: u64,
}

impl fmt::Display for FloorEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "floor ({}): 64-byte TCP round trip p50 {:.2} us; one-way TCP stream {:.0} MB/s, \
             with one copy of the payload on each side {:.0} MB/s",
            self.wait,
            self.tcp_pingpong_64b_p50_ns as f64 / 1e3,
            self.tcp_stream_bytes_per_s as f64 / 1e6,
            self.tcp_stream_copied_bytes_per_s as f64 / 1e6,
        )
    }
}

impl FloorEntry {
    /// Formats the figures as a sentence of a page.
    pub fn sentence(&self) -> String {
        format!(
            "Raw floor of the same run ({}): 64-byte TCP round trip, median {:.2} us; one-way TCP \
             stream {:.0} MB/s, with one copy of the payload on each side {:.0} MB/s.",
            self.wait,
            self.tcp_pingpong_64b_p50_ns as f64 / 1e3,
            self.tcp_stream_bytes_per_s as f64 / 1e6,
            self.tcp_stream_copied_bytes_per_s as f64 / 1e6,
        )
    }
}

/// One workload on one path at one payload size. Each figure is a median over the rounds.
#[derive(JsonSchema, Serialize)]
pub struct BenchRun {
    /// `direct` (the same root complex and controller without a tunnel), `tunnelled` over TCP on
    /// loopback, or `tls-` and a cipher: tunnelled under TLS 1.3 with this cipher.
    pub path: &'static str,
    /// Max_Payload_Size in bytes.
    pub mps: u16,
    /// Data pushed in front of doorbells (docs/push.md): `off`, `entries` or `all`; `off` on the
    /// path `direct`.
    pub push: &'static str,
    #[serde(flatten)]
    pub case: Case,
    /// Number of rounds.
    pub rounds: usize,
    /// Commands per second.
    pub iops: f64,
    /// Commands per second in the slowest round.
    pub iops_min: f64,
    /// Commands per second in the fastest round.
    pub iops_max: f64,
    /// Payload per second, in bytes.
    pub bytes_per_s: f64,
    /// Median of the time from submission to completion, measured in the driver.
    pub p50_ns: u64,
    /// 99th percentile of the same time.
    pub p99_ns: u64,
    /// CPU time per command on both sides, spinning included.
    pub cpu_ns_per_io: f64,
    /// CPU time of the host node per command.
    pub host_cpu_ns_per_io: f64,
    /// CPU time of the device node per command.
    pub device_cpu_ns_per_io: f64,
    /// `p50_ns` in round trips of the floor, to two decimals.
    pub floor_round_trips: f64,
    /// `bytes_per_s` divided by the stream of the floor, to two decimals.
    pub floor_stream_share: f64,
    /// `bytes_per_s` divided by the stream with copies, to two decimals.
    pub floor_copied_stream_share: f64,
}

/// Returns median, minimum and maximum.
pub fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(low), Some(high)) => (values[values.len() / 2], *low, *high),
        _ => (0.0, 0.0, 0.0),
    }
}

/// Returns the median, the upper one for an even number of values; 0 without values.
pub fn median(values: &[u64]) -> u64 {
    spread(values.iter().map(|value| *value as f64)).0 as u64
}

/// Returns the medians of the floor.
pub fn floor(waiting: Waiting, floor: &Floor) -> FloorEntry {
    FloorEntry {
        wait: match waiting {
            Waiting::Block => "block",
            Waiting::Spin(_) => "spin",
        },
        tcp_pingpong_64b_p50_ns: median(&floor.ping_pong_p50),
        tcp_stream_bytes_per_s: median(&floor.stream),
        tcp_stream_copied_bytes_per_s: median(&floor.copied_stream),
    }
}

/// Returns the throughput of the median round, in bytes per second.
pub fn median_throughput(series: &Series) -> f64 {
    spread(series.rounds.iter().map(|round| round.bytes_per_s)).0
}

/// Returns the increase from the first to the second value of a pair, in per cent: quartiles over
/// the pairs.
pub fn percent_of_pairs(pairs: &[(u64, u64)]) -> [f64; 3] {
    let each = |(without, with): &(u64, u64)| *with as f64 / (*without).max(1) as f64 - 1.0;
    let mut costs: Vec<f64> = pairs.iter().map(|pair| 100.0 * each(pair)).collect();
    costs.sort_by(f64::total_cmp);
    [1, 2, 3].map(|n| rounded(costs[(costs.len() - 1) * n / 4], 2))
}

/// Computes medians and ratios of the results.
pub fn document(results: &BenchResults) -> BenchDocument {
    let floor = floor(results.waiting, &results.floor);
    let runs = results.series.iter().map(|series| run(series, &floor)).collect();
    let recording = results.recording.iter().map(recording).collect();
    BenchDocument { schema: SCHEMA, interrupted: results.interrupted, floor, runs, recording }
}

/// Computes medians over the pairs, and quartiles of the costs.
fn recording(cost: &Cost) -> RecordingCost {
    let percents = |column: usize| {
        let pairs = cost.samples.iter().map(|sample| (sample[0], sample[column]));
        percent_of_pairs(&pairs.collect::<Vec<_>>())
    };
    let p50 = |column: usize| {
        median(&cost.samples.iter().map(|sample| sample[column]).collect::<Vec<_>>())
    };
    let ([q1, cost_percent, q3], [_, control_percent, _]) = (percents(1), percents(2));
    RecordingCost {
        mps: cost.mps,
        rw: cost.case.rw,
        pairs: cost.samples.len(),
        p50_without_ns: p50(0),
        p50_with_ns: p50(1),
        p50_control_ns: p50(2),
        cost_percent,
        cost_percent_q1: q1,
        cost_percent_q3: q3,
        control_percent,
    }
}

fn share(bytes_per_s: f64, floor: u64) -> f64 {
    rounded(bytes_per_s / floor.max(1) as f64, 2)
}

pub fn run(series: &Series, floor: &FloorEntry) -> BenchRun {
    let over_rounds = |field: fn(&Round) -> f64| spread(series.rounds.iter().map(field));
    let (iops, iops_min, iops_max) = over_rounds(|round| round.iops);
    let (bytes_per_s, ..) = over_rounds(|round| round.bytes_per_s);
    let (p50, ..) = over_rounds(|round| round.p50_ns as f64);
    let (p99, ..) = over_rounds(|round| round.p99_ns as f64);
    let (host, ..) = over_rounds(|round| round.host_cpu_ns);
    let (device, ..) = over_rounds(|round| round.device_cpu_ns);
    BenchRun {
        path: series.path.name(),
        mps: series.mps,
        push: series.push.name(),
        case: series.case,
        rounds: series.rounds.len(),
        iops: iops.round(),
        iops_min: iops_min.round(),
        iops_max: iops_max.round(),
        bytes_per_s: bytes_per_s.round(),
        p50_ns: p50 as u64,
        p99_ns: p99 as u64,
        cpu_ns_per_io: (host + device).round(),
        host_cpu_ns_per_io: host.round(),
        device_cpu_ns_per_io: device.round(),
        floor_round_trips: rounded(p50 / floor.tcp_pingpong_64b_p50_ns.max(1) as f64, 2),
        floor_stream_share: share(bytes_per_s, floor.tcp_stream_bytes_per_s),
        floor_copied_stream_share: share(bytes_per_s, floor.tcp_stream_copied_bytes_per_s),
    }
}

const COLUMNS: [Column<BenchRun>; 14] = [
    ("path", Left, |run| run.path.to_owned()),
    ("MPS", Right, |run| run.mps.to_string()),
    ("push", Left, |run| run.push.to_owned()),
    ("workload", Left, |run| run.case.name()),
    ("IOPS", Right, |run| format!("{:.0}", run.iops)),
    ("min-max", Right, |run| format!("{:.0}-{:.0}", run.iops_min, run.iops_max)),
    ("MB/s", Right, |run| format!("{:.0}", run.bytes_per_s / 1e6)),
    ("p50 us", Right, |run| us(run.p50_ns)),
    ("p99 us", Right, |run| us(run.p99_ns)),
    ("RTTs", Right, |run| format!("{:.2}", run.floor_round_trips)),
    ("stream", Right, |run| format!("{:.0}%", run.floor_stream_share * 100.0)),
    ("copied", Right, |run| format!("{:.0}%", run.floor_copied_stream_share * 100.0)),
    ("host ns", Right, |run| format!("{:.0}", run.host_cpu_ns_per_io)),
    ("device ns", Right, |run| format!("{:.0}", run.device_cpu_ns_per_io)),
];
const WIDTHS: [usize; 14] = [9, 4, 7, 22, 9, 19, 8, 9, 9, 6, 7, 7, 9, 9];

/// Formats microseconds with two decimals.
pub fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

/// Prints a table on stdout.
pub fn table(document: &BenchDocument) {
    println!("{}", document.floor);
    print!("{}", Table::from_rows(&COLUMNS, &document.runs).fixed(&WIDTHS));
    println!(
        "RTTs: p50 in floor round trips; stream, copied: share of the raw streams; \
         host and device ns: CPU time per command on each side"
    );
    for cost in &document.recording {
        println!(
            "recording a trace, MPS {}, {} 4 KiB QD1: p50 {:.2} us without, {:.2} us with: \
             {:+.1} % (median of {} pairs, quartiles {:+.1} to {:+.1} %; a second machine \
             without a trace: {:+.1} %)",
            cost.mps,
            cost.rw,
            cost.p50_without_ns as f64 / 1e3,
            cost.p50_with_ns as f64 / 1e3,
            cost.cost_percent,
            cost.pairs,
            cost.cost_percent_q1,
            cost.cost_percent_q3,
            cost.control_percent,
        );
    }
    if document.interrupted {
        println!("{INTERRUPTED}");
    }
}
