//! `farlane compare`: the same plan live and simulated, side by side.

use super::calibrate::spin_name;
use super::{Ended, Failure, json};
use crate::node::waiting;
use crate::output::{assign_stdout, note, warning};
use crate::plan_args::{PlanArgs, TableArgs, refused};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use plan::run::sweep::{self, Sweep};
use report::span;
use report::target::Target;
use rig::{Case, CompareDocument, Comparison, LiveOptions};
use wire::Duration;

/// Run a plan live and simulated in turns, and report the error of the simulation
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane calibrate machine.toml\n  \
    farlane compare plans/live.toml --set calibration=machine.toml --html compare.html\n  \
    farlane compare plans/live.toml --set calibration=machine.toml --sweep workload.iodepth=1,8,32\n\n\
    Needs root and an idle machine. Every round measures raw TCP, then each case live and\n\
    simulated. docs/guide/compare.md explains the result.")]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Compare with several values of a key; repeatable, for every combination. Keys joined by +
    /// have the same value
    #[arg(long, value_name = "KEY[+KEY…]=VALUE,…")]
    sweep: Vec<Sweep>,
    /// Rounds, 1 to 1000. A confidence interval needs eight
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Also record one run of both worlds per case, and compare the parts of a command
    #[arg(long)]
    stages: bool,
    /// Poll for input this long before sleeping: lower latency, higher CPU load. A number alone is
    /// in microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    spin: Duration,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tables: TableArgs,
    /// Write an HTML page. FILE - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    assign_stdout(args.json, &[("--html", args.html.as_ref())]);
    let plan = args.plan.read()?;
    let name = args.plan.name();
    let all = sweep::plans(&plan, &args.sweep).map_err(refused)?;
    let cases: Vec<Case> = all.into_iter().map(|(set, plan)| Case { set, plan }).collect();
    for case in &cases {
        if let Some(why) = rig::refusal(&case.plan) {
            return Err(Failure(format!("{name}: the plan cannot run live: {why}")));
        }
    }
    for difference in rig::differences(&cases[0].plan) {
        note(format_args!("{name}: only simulated: {difference}"));
    }
    let options = LiveOptions::new(waiting(args.spin));
    let stop = stop_on_signals()?;
    let text = args.plan.text(&plan);
    let mut tables = args.tables.folders().begin(&text)?;
    let (rounds, stages) = (args.rounds, args.stages);
    let mut comparison = Comparison { options, rounds, stages, tables: tables.as_mut() };
    let rounds = comparison.run(&cases, (&mut Progress::new(), &stop))?;
    let here = rig::this_machine(&spin_name(args.spin));
    let calibrated = cases[0].plan.calibration.as_ref();
    let machines = (calibrated, &here);
    let document = CompareDocument::new((&name, text.clone()), &cases, &rounds, machines);
    let failure = rounds.failure.map(|failure| failure.to_string());
    for text in document.warnings.iter().filter(|text| Some(*text) != failure.as_ref()) {
        warning(format_args!("{name}: {text}"));
    }
    match args.json {
        true => println!("{}", json(&document)),
        false => print!("{}", document.text()),
    }
    let paged = args.html.as_ref().map_or(Ok(()), |target| target.write(&document.page()));
    tables.map_or(Ok(()), |tables| tables.finish(&text)).and(paged)?;
    match failure {
        Some(why) => Err(Failure(format!("{name}: {why}"))),
        None => Ok(Ended::unless(document.interrupted)),
    }
}
