//! `farlane bench congestion`: congestion control at a bottleneck, in virtual time.

mod scenarios;

use crate::commands::{Ended, INTERRUPTED, json};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use report::Align::{Left, Right};
use report::{Column, Failure, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// Simulate congestion control at a bottleneck
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Senders of raw Ethernet frames and one receiver behind a bridge at 10 Gb/s; then drives \
    that\nanswer one host. The simulation runs in virtual time: figures are the same on any machine.\n\n\
    Examples:\n  farlane bench congestion\n  farlane bench congestion --json"
)]
pub struct Args {
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// Version of the document.
const SCHEMA: u32 = 1;

/// Congestion control at a bottleneck. All results are simulated and equal on any machine.
/// docs/experiments/congestion.md explains the scenarios.
#[derive(JsonSchema, Serialize)]
pub struct CongestionDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// `true`, only after Ctrl-C: the document contains the finished results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// One element per simulation, in the order of the table.
    runs: Vec<CongestionRun>,
}

/// One simulation.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(super) struct CongestionRun {
    /// `step`, `fairness`, `loss`, `rate` or `nvme`.
    scenario: &'static str,
    /// The simulation in words.
    what: String,
    /// The control, as `congestion` in docs/plan.md.
    congestion: String,
    /// Number of senders.
    flows: usize,
    /// Bits per second on the line of the bottleneck, preamble and gap counted: after the last
    /// step, in the second half with `fairness`, else after the first millisecond.
    bits_per_s: u64,
    /// `bits_per_s` in per cent of the line's rate.
    utilisation_percent: Option<f64>,
    /// Jain's index of the flows' throughput: 1 if all are equal; null except for `fairness`.
    jain: Option<f64>,
    /// Time from the last step to the end of the first 50 us in which 90 % of the line were used;
    /// null except for `step`.
    back_us: Option<f64>,
    /// 99th percentile of the frames' waits in the bridge's queue, from the start on.
    wait_p99_us: f64,
    /// The longest wait in the bridge's queue; with `fairness` only in the second half of the run.
    wait_max_us: f64,
    /// Frames dropped because the bridge's queue was full.
    dropped: u64,
    /// Retransmitted data frames.
    retransmitted: u64,
    /// Median latency of NVMe commands; null except for `nvme`.
    command_p50_us: Option<f64>,
    /// 99th percentile of the latency of NVMe commands; null except for `nvme`.
    command_p99_us: Option<f64>,
    /// Digest of everything that happened.
    digest: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    let stop = stop_on_signals()?;
    let mut progress = Progress::new();
    let all = scenarios::all();
    let mut runs = Vec::new();
    for (number, scenario) in all.iter().enumerate() {
        if stop.is_set() {
            break;
        }
        progress.show(&format!("{} of {}: {}", number + 1, all.len(), scenario.name()));
        runs.push(scenario.run()?);
    }
    progress.done();
    let interrupted = runs.len() < all.len();
    if args.json {
        let document = CongestionDocument { schema: SCHEMA, interrupted, runs };
        println!("{}", json(&document));
    } else {
        // Markdown, so that pages contain the output unchanged.
        print!("{}", Table::from_rows(&COLUMNS, &runs).markdown());
        if interrupted {
            println!("\n{INTERRUPTED}");
        }
    }
    Ok(Ended::unless(interrupted))
}

const COLUMNS: [Column<CongestionRun>; 12] = [
    ("scenario", Left, |run| run.what.clone()),
    ("control", Left, |run| run.congestion.clone()),
    ("flows", Right, |run| run.flows.to_string()),
    ("Gb/s", Right, |run| format!("{:.2}", run.bits_per_s as f64 / 1e9)),
    ("of line", Right, |run| some(run.utilisation_percent, " %")),
    ("Jain", Right, |run| some(run.jain, "")),
    ("back after", Right, |run| some(run.back_us, " us")),
    ("wait p99", Right, |run| format!("{:.1} us", run.wait_p99_us)),
    ("longest", Right, |run| format!("{:.1} us", run.wait_max_us)),
    ("dropped", Right, |run| run.dropped.to_string()),
    ("again", Right, |run| run.retransmitted.to_string()),
    ("command p50/p99", Right, |run| match (run.command_p50_us, run.command_p99_us) {
        (Some(p50), Some(p99)) => format!("{p50}/{p99} us"),
        _ => String::new(),
    }),
];

fn some(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(String::new, |value| format!("{value}{unit}"))
}
