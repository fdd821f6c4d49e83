//! `farlane tsn bound`: guaranteed latencies.

use crate::commands::{Failure, json};
use crate::output::assign_stdout;
use crate::plan_args::{PlanArgs, built};
use planning::bound::{bound, document::BoundReport};

/// Guarantee the latency of every stream and NVMe command of a plan
///
/// The bounds hold for every start of hosts and streams and every offset of the clocks of gates.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    assign_stdout(args.json, &[]);
    let planned = built(&args.plan.read()?)?;
    let report = BoundReport::new(args.plan.name(), &planned, &bound(&planned));
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(())
}
