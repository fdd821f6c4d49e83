//! `farlane tsn bound`: guaranteed latencies.

use super::network;
use crate::commands::{Failure, json};
use crate::output::assign_stdout;
use crate::plan_args::{PlanArgs, built};
use planning::bound::{bound, document::BoundReport};

/// Guarantee the latency of every stream and NVMe command of a plan
///
/// The bounds hold for every start of hosts and streams and every offset of the clocks of gates. A
/// file that ends in .json is a network of servers; docs/tsn-planning.md describes it.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    network: network::Options,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    assign_stdout(args.json, &[]);
    if args.plan.name().ends_with(".json") {
        return network::run(&args.plan.name(), &args.network, args.json);
    }
    let method = args.network.for_plan();
    let planned = built(&args.plan.read()?)?;
    let report = BoundReport::new(args.plan.name(), method, &bound(&planned, method));
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(())
}
