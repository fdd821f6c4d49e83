//! Prints the results as text or JSON.

use super::super::print::{BenchRun, FloorEntry, floor, median, percent_of_pairs, run, us};
use crate::commands::{INTERRUPTED, rounded};
use load::ablation::{Ablation, Cost, Link, LinkCheck, Pairs, Setup};
use nvme::initiator::Op;
use report::Align::{Left, Right};
use report::{Column, Table};
use schemars::JsonSchema;
use serde::Serialize;
use switch::aggregate::Policy;

/// Version of the document.
const SCHEMA: u32 = 1;

/// Policies of aggregation compared on live nodes. Runs that need missing privileges are left out,
/// and stderr states why.
#[derive(JsonSchema, Serialize)]
pub struct AggregationDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// `true`, only after Ctrl-C: the document contains the finished results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Raw TCP on loopback in the same run, medians over the rounds.
    pub floor: FloorEntry,
    /// One element per link, transport, policy and workload.
    pub runs: Vec<AggregationRun>,
    /// Gain in throughput of a policy over `per-tlp`: one element per link, transport, policy and
    /// direction.
    pub gains: Vec<AggregationGain>,
    /// One command of 4 KiB at a time, `per-tlp` and `adaptive` in pairs of rounds.
    pub latencies: Vec<AggregationLatency>,
    /// Measured rates of the limited link in the same run, by frame size; empty if there is none.
    pub link_check: Vec<LinkCheck>,
}

/// One workload on one link, transport and policy. `path` is `tunnelled`; `floor_round_trips` and
/// `floor_stream_share` refer to TCP on loopback.
#[derive(JsonSchema, Serialize)]
pub struct AggregationRun {
    /// The policy: `per-tlp`, `wait=TIME` or `adaptive`.
    pub aggregation: String,
    /// `tcp` or `raw` (raw Ethernet).
    pub transport: String,
    /// `loopback`, or `veth N Mb/s`: a pair of interfaces in namespaces of their own with a token
    /// bucket of that rate in each direction.
    pub link: String,
    #[serde(flatten)]
    pub run: BenchRun,
    /// TLPs per frame of the tunnel in the direction of the data, over all rounds.
    pub tlps_per_frame: f64,
}

/// The gain of a policy over `per-tlp`.
#[derive(JsonSchema, Serialize)]
pub struct AggregationGain {
    /// The policy: `per-tlp`, `wait=TIME` or `adaptive`.
    pub aggregation: String,
    /// `tcp` or `raw` (raw Ethernet).
    pub transport: String,
    /// `loopback` or `veth N Mb/s`.
    pub link: String,
    /// fio's word: `randread`, `randwrite`, `read` or `write`.
    pub rw: &'static str,
    /// Throughput above that of `per-tlp`, in per cent, by the medians.
    pub gain_percent: f64,
    /// Bytes on the wire of one TLP of data in a frame or TCP segment of its own, with preamble,
    /// FCS and gap; null where no link is the bottleneck.
    pub wire_bytes_alone: Option<f64>,
    /// Bytes on the wire of one TLP of data in a full frame, or its share of full TCP segments;
    /// null where no link is the bottleneck.
    pub wire_bytes_together: Option<f64>,
    /// The gain that `wire_bytes_alone` and `wire_bytes_together` allow, in per cent; null where no
    /// link is the bottleneck.
    pub most_percent: Option<f64>,
    /// `gain_percent` in per cent of `most_percent`; null where no link is the bottleneck.
    pub reached_percent: Option<f64>,
    /// Share of the link that the data TLPs fill with `per-tlp`, in per cent of its rate; null
    /// where no link is the bottleneck.
    pub link_share_per_tlp: Option<f64>,
    /// Share of the link that the data TLPs would fill with this policy if every frame were full,
    /// in per cent of its rate; null where no link is the bottleneck.
    pub link_share: Option<f64>,
}

/// One command of 4 KiB at a time, `per-tlp` and `adaptive` in pairs of rounds. The rounds of a
/// pair follow each other in changing order.
#[derive(Clone, JsonSchema, Serialize)]
pub struct AggregationLatency {
    /// `tcp` or `raw` (raw Ethernet).
    pub transport: String,
    /// `loopback` or `veth N Mb/s`.
    pub link: String,
    /// fio's word: `randread`, `randwrite`, `read` or `write`.
    pub rw: &'static str,
    /// Pairs of rounds.
    pub pairs: usize,
    /// Median with `per-tlp` over the medians of the rounds.
    pub p50_per_tlp_ns: u64,
    /// Median with `adaptive` over the medians of the rounds.
    pub p50_adaptive_ns: u64,
    /// Increase of p50 with `adaptive`, in per cent: median over the pairs.
    pub change_percent: f64,
    /// First quartile of `change_percent` over the pairs.
    pub change_percent_q1: f64,
    /// Third quartile of `change_percent` over the pairs.
    pub change_percent_q3: f64,
}

/// Computes medians and ratios of the results.
pub fn document(all: &Ablation) -> AggregationDocument {
    let floor = floor(all.waiting, &all.floor);
    let runs = all.setups.iter().flat_map(|setup| setup_runs(setup, &floor)).collect();
    AggregationDocument {
        schema: SCHEMA,
        interrupted: all.interrupted,
        runs,
        gains: gains(all),
        latencies: all.latencies.iter().map(latency).collect(),
        link_check: all.check.clone(),
        floor,
    }
}

fn setup_runs(setup: &Setup, floor: &FloorEntry) -> Vec<AggregationRun> {
    let each = setup.series.iter().zip(&setup.carried);
    let measured = each.filter(|(series, _)| !series.rounds.is_empty());
    measured
        .map(|(series, (tlps, frames))| AggregationRun {
            aggregation: setup.policy.to_string(),
            transport: setup.transport.to_string(),
            link: setup.link.to_string(),
            run: run(series, floor),
            tlps_per_frame: rounded(*tlps as f64 / (*frames).max(1) as f64, 1),
        })
        .collect()
}

/// Returns the median throughput in bytes per second of the workload `rw`, which fills the link.
/// `None` if the workload has no rounds.
fn throughput(setup: &Setup, rw: &str) -> Option<f64> {
    let series =
        setup.series.iter().find(|series| series.case.rw == rw && !series.rounds.is_empty())?;
    Some(super::super::print::median_throughput(series))
}

fn gains(all: &Ablation) -> Vec<AggregationGain> {
    let mut gains = Vec::new();
    for base in all.setups.iter().filter(|setup| setup.policy == Policy::PerTlp) {
        let same = |setup: &&Setup| (setup.link, setup.transport) == (base.link, base.transport);
        for setup in all.setups.iter().filter(same).filter(|setup| setup.policy != Policy::PerTlp) {
            for rw in ["read", "write"] {
                gains.extend(gain(base, setup, rw, usize::from(all.mps)));
            }
        }
    }
    gains
}

fn gain(base: &Setup, setup: &Setup, rw: &'static str, mps: usize) -> Option<AggregationGain> {
    let (alone, together) = (throughput(base, rw)?, throughput(setup, rw)?);
    let op = if rw == "read" { Op::Read } else { Op::Write };
    let gain = together / alone.max(1.0) - 1.0;
    let cost = Cost::new(setup.transport, op, mps);
    let share = |bytes_per_s: f64, wire: f64| match setup.link {
        Link::Veth(rate) => {
            Some(rounded(bytes_per_s / mps as f64 * wire * 800.0 / rate.bits_per_second as f64, 1))
        }
        Link::Loopback => None,
    };
    let counted = setup.link != Link::Loopback;
    let most = cost.gain();
    Some(AggregationGain {
        aggregation: setup.policy.to_string(),
        transport: setup.transport.to_string(),
        link: setup.link.to_string(),
        rw,
        gain_percent: rounded(100.0 * gain, 1),
        wire_bytes_alone: counted.then_some(cost.alone),
        wire_bytes_together: counted.then_some(rounded(cost.together, 1)),
        most_percent: counted.then_some(rounded(100.0 * most, 1)),
        reached_percent: counted.then_some(rounded(100.0 * gain / most, 1)),
        link_share_per_tlp: share(alone, cost.alone),
        link_share: share(together, cost.together),
    })
}

/// Computes medians and quartiles over pairs of rounds.
fn latency(compared: &Pairs) -> AggregationLatency {
    let pairs = &compared.p50;
    let [change_percent_q1, change_percent, change_percent_q3] = percent_of_pairs(pairs);
    let p50 = |field: fn(&(u64, u64)) -> u64| median(&pairs.iter().map(field).collect::<Vec<_>>());
    AggregationLatency {
        transport: compared.transport.to_string(),
        link: compared.link.to_string(),
        rw: compared.rw,
        pairs: pairs.len(),
        p50_per_tlp_ns: p50(|pair| pair.0),
        p50_adaptive_ns: p50(|pair| pair.1),
        change_percent,
        change_percent_q1,
        change_percent_q3,
    }
}

/// Prints tables on stdout.
pub fn table(document: &AggregationDocument) {
    println!("{}", document.floor);
    let runs = Table::from_rows(&[&RUN[..], &RUN_FIGURES].concat(), &document.runs);
    print!("{}", runs.fixed(&[14, 9, 11, 21, 8, 15, 10, 10, 10]));
    if !document.gains.is_empty() {
        println!("\ngain over per-tlp, and the gain that bytes on the wire allow:");
        let gains = Table::from_rows(&[&GAIN[..], &GAIN_SHARES].concat(), &document.gains);
        print!("{}", gains.fixed(&[14, 9, 11, 6, 8, 9, 9, 13, 12]));
    }
    print_latencies(document);
    for check in &document.link_check {
        println!(
            "the link lets frames of {} bytes pass at {:.1} Mb/s of wire",
            check.frame_payload,
            check.wire_bits_per_s / 1e6,
        );
    }
    if document.interrupted {
        println!("\n{INTERRUPTED}");
    }
}

/// The first columns of runs, in text and page.
pub const RUN: [Column<AggregationRun>; 5] = [
    ("link", Left, |setup| setup.link.clone()),
    ("transport", Left, |setup| setup.transport.clone()),
    ("aggregation", Left, |setup| setup.aggregation.clone()),
    ("workload", Left, |setup| setup.run.case.name()),
    ("MB/s", Right, |setup| format!("{:.2}", setup.run.bytes_per_s / 1e6)),
];

const RUN_FIGURES: [Column<AggregationRun>; 4] = [
    ("min-max", Right, |setup| {
        let mb = |iops: f64| iops * f64::from(setup.run.case.bs) / 1e6;
        format!("{:.2}-{:.2}", mb(setup.run.iops_min), mb(setup.run.iops_max))
    }),
    ("TLPs/frame", Right, |setup| format!("{:.1}", setup.tlps_per_frame)),
    ("p50 us", Right, |setup| us(setup.run.p50_ns)),
    ("p99 us", Right, |setup| us(setup.run.p99_ns)),
];

/// The first columns of gains, in text and page.
pub const GAIN: [Column<AggregationGain>; 5] = [
    ("link", Left, |gain| gain.link.clone()),
    ("transport", Left, |gain| gain.transport.clone()),
    ("aggregation", Left, |gain| gain.aggregation.clone()),
    ("rw", Left, |gain| gain.rw.to_owned()),
    ("gain %", Right, |gain| format!("{:+.1}", gain.gain_percent)),
];

const GAIN_SHARES: [Column<AggregationGain>; 4] = [
    ("allowed %", Right, |gain| or(gain.most_percent, "-")),
    ("reached %", Right, |gain| or(gain.reached_percent, "-")),
    ("link filled %", Right, |gain| or(gain.link_share, "-")),
    ("per-tlp %", Right, |gain| or(gain.link_share_per_tlp, "-")),
];

/// Formats the value with one decimal, or `none`.
pub fn or(value: Option<f64>, none: &str) -> String {
    value.map_or(none.to_owned(), |value| format!("{value:.1}"))
}

fn print_latencies(document: &AggregationDocument) {
    if !document.latencies.is_empty() {
        println!("\none command at a time, per-tlp and adaptive in turn:");
    }
    for pair in &document.latencies {
        println!(
            "{:<14} {:<9} {:<9} 4 KiB QD1: p50 {:.2} us per-tlp, {:.2} us adaptive: {:+.1} % \
             (median of {} pairs, quartiles {:+.1} to {:+.1} %)",
            pair.link,
            pair.transport,
            pair.rw,
            pair.p50_per_tlp_ns as f64 / 1e3,
            pair.p50_adaptive_ns as f64 / 1e3,
            pair.change_percent,
            pair.pairs,
            pair.change_percent_q1,
            pair.change_percent_q3,
        );
    }
}
