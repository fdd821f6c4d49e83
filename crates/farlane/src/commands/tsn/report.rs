//! `farlane tsn report`: bounds, simulation and measurements on one page.

use crate::commands::Failure;
use crate::output::assign_stdout;
use crate::plan_args::{PlanArgs, built};
use crate::progress::Progress;
use planning::bound::{Method, bound};
use planning::scenario::{Scenario, measured, simulated};
use report::target::Target;
use std::path::Path;

/// Write a page with the guaranteed, simulated and measured latencies of a plan
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// The page. FILE - is standard output
    #[arg(long, value_name = "FILE")]
    html: Target,
    /// A document of `live --json`, or of `latency listen --json` and `latency lab --json` for a
    /// stream of the plan; repeatable
    #[arg(long, value_name = "[STREAM=]FILE")]
    measured: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    assign_stdout(false, &[("--html", Some(&args.html))]);
    let planned = built(&args.plan.read()?)?;
    let file = args.plan.name();
    let mut all = Vec::new();
    for word in &args.measured {
        let (name, path) = match word.split_once('=') {
            Some((name, path)) => (Some(name), path),
            None => (None, word.as_str()),
        };
        let failed = |why: String| Failure(format!("{path}: {why}"));
        let text =
            std::fs::read_to_string(Path::new(path)).map_err(|error| failed(error.to_string()))?;
        all.extend(measured::read(&text, name).map_err(failed)?);
    }
    let mut progress = Progress::new();
    progress.show("simulating");
    let simulated =
        simulated::simulate(&planned).map_err(|why| Failure(format!("{file}: {why}")))?;
    progress.show("computing bounds");
    let bounds = bound(&planned, Method::Best);
    progress.done();
    let scenario = Scenario { file, planned: &planned, bounds, simulated, measured: all };
    args.html.write(&scenario.page())?;
    Ok(())
}
