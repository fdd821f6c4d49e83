//! `farlane bench congestion`: congestion control at a bottleneck,
//! in virtual time.

mod print;
mod scenarios;

use crate::progress::Progress;
use report::Outcome;
use serde::Serialize;

/// What congestion control makes of a bottleneck, simulated
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Senders of raw Ethernet frames and one receiver behind a bridge, 10 Gb/s; then \
    drives that\nanswer one host. The figures are of virtual time: the same on any machine.\n\n\
    Examples:\n  farlane bench congestion\n  farlane bench congestion --json"
)]
pub struct Args {
    /// One JSON document instead of a table; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// Version of the document.
const SCHEMA: u32 = 1;

/// The document of `--json`.
#[derive(Serialize)]
struct Document {
    schema: u32,
    runs: Vec<Run>,
}

/// One simulation.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Run {
    scenario: &'static str,
    what: String,
    congestion: String,
    flows: usize,
    bits_per_s: u64,
    utilisation_percent: Option<f64>,
    jain: Option<f64>,
    back_us: Option<f64>,
    wait_p99_us: f64,
    wait_max_us: f64,
    dropped: u64,
    retransmitted: u64,
    command_p50_us: Option<f64>,
    command_p99_us: Option<f64>,
    digest: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let mut progress = Progress::new();
    let all = scenarios::all();
    let mut runs = Vec::new();
    for (number, scenario) in all.iter().enumerate() {
        progress.show(&format!("{} of {}: {}", number + 1, all.len(), scenario.name()));
        runs.push(scenario.run()?);
    }
    progress.done();
    if args.json {
        let document = Document { schema: SCHEMA, runs };
        println!("{}", crate::commands::json(&document));
    } else {
        print!("{}", print::table(&runs));
    }
    Ok(())
}
