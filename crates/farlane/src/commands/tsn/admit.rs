//! `farlane tsn admit`: whether one more stream fits.

use crate::commands::{Ended, Failure, json};
use crate::output::{assign_stdout, wrong_usage};
use crate::plan_args::{PlanArgs, built};
use plan::Plan;
use planning::admit::{admit, with_stream};

/// Answer whether one more stream fits without a change of the others
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// The stream, with the keys of [traffic.NAME], and `to` for each listener:
    /// name=brake2,from=pedal,to=brake,interval=1ms,length=100B,priority=6,deadline=300us
    #[arg(long, value_name = "STREAM")]
    add: String,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command. Returns whether all deadlines are met.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    assign_stdout(args.json, &[]);
    let plan = args.plan.read()?;
    let before = built(&plan)?;
    let (text, name) = match with_stream(&plan, &args.add) {
        Ok(both) => both,
        Err(why) => wrong_usage(why),
    };
    let file = args.plan.name();
    let with = Plan::parse(&format!("{file} with --add"), &text);
    let after = with.and_then(|plan| plan.build()).map_err(|error| Failure(error.to_string()))?;
    let report = admit(file, &before, &after, &name);
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(if report.admitted { Ended::Done } else { Ended::Missed })
}
