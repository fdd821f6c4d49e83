//! `farlane tsn schedule`: gate control lists that meet deadlines.

use crate::commands::{Ended, Failure, json};
use crate::output::{assign_stdout, wrong_usage};
use crate::plan_args::{PlanArgs, built};
use crate::signals::stop_on_signals;
use plan::{Plan, Planned};
use planning::schedule::document::ScheduleReport;
use planning::schedule::help::{self, Help};
use planning::schedule::{Deadlines, Limits, Search, periodic, verify, windows};
use report::target::Target;
use std::time::Instant;
use wire::Duration;

/// Find gate control lists with which commands and streams meet their deadlines
///
/// The lists replace those of the plan. Bounds and simulations verify the result. Deadlines of
/// streams are those of the plan. Without --deadline, each frame of a periodic stream with a
/// deadline has a window, and all other traffic is sent between the windows.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Deadlines of commands: read=300us,write=300us
    #[arg(long, value_name = "KIND=TIME,…", value_delimiter = ',')]
    deadline: Vec<String>,
    /// Time of the search
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    time: Duration,
    /// Simulations that verify the result, each with other starts
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    trials: u64,
    /// The times of lists are multiples of this
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = time)]
    grain: Duration,
    /// Maximum entries of a list
    #[arg(long, value_name = "COUNT", default_value_t = 4096, value_parser = clap::value_parser!(u16).range(1..=4096))]
    entries: u16,
    /// Largest difference of two clocks, by which windows are longer at both ends; only without
    /// --deadline
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = time, conflicts_with = "deadline")]
    clock_error: Duration,
    /// Write the plan with the lists and the starts of streams
    #[arg(long, value_name = "FILE")]
    output: Option<Target>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|_| format!("invalid time '{text}': expected a time such as 300us"))
}

fn deadlines(words: &[String]) -> Deadlines {
    let mut deadlines = Deadlines::default();
    for word in words {
        let wrong = || -> ! {
            wrong_usage(format!(
                "invalid value '{word}' for --deadline: expected read=TIME or write=TIME, such as \
                 read=300us"
            ))
        };
        let Some((kind, value)) = word.split_once('=') else { wrong() };
        let Ok(value) = value.parse() else { wrong() };
        match kind {
            "read" => deadlines.read = Some(value),
            "write" => deadlines.write = Some(value),
            _ => wrong(),
        }
    }
    deadlines
}

/// Runs the command. Returns whether all deadlines are met.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    assign_stdout(args.json, &[("--output", args.output.as_ref())]);
    let deadlines = deadlines(&args.deadline);
    let plan = args.plan.read()?;
    let planned = built(&plan)?;
    let name = args.plan.name();
    let stop = stop_on_signals()?;
    let begin = Instant::now();
    let most = std::time::Duration::from_nanos(args.time.as_ns());
    let is_over = || stop.is_set() || begin.elapsed() > most;
    let limits = Limits { is_over: &is_over, grain: args.grain, entries: args.entries.into() };
    let scheduled = match args.deadline.is_empty() {
        true => {
            let options = periodic::Options { limits, margin: args.clock_error, seed: 1 };
            periodic::schedule(name.clone(), &plan, &planned, &options)
        }
        false => of_commands(args, deadlines, (&plan, &planned), &limits, &|| {
            let begin = Instant::now();
            let is_over = || stop.is_set() || begin.elapsed() > most / 4;
            help::help(&plan, deadlines, &Limits { is_over: &is_over, ..limits })
        }),
    };
    let (report, scheduled) = scheduled.map_err(|why| Failure(format!("{name}: {why}")))?;
    if let (Some(target), Some(scheduled)) = (&args.output, scheduled) {
        target.write(&scheduled.dump())?;
    }
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(if report.feasible { Ended::Done } else { Ended::Missed })
}

/// Finds lists for commands. Returns the report, and with `--output` the plan with the lists.
fn of_commands(
    args: &Args,
    deadlines: Deadlines,
    (plan, planned): (&Plan, &Planned),
    limits: &Limits<'_>,
    help: &dyn Fn() -> Vec<Help>,
) -> Result<(ScheduleReport, Option<Plan>), String> {
    if planned.hosts.is_empty() {
        return Err("the plan has no host, so no command has a deadline".to_owned());
    }
    let search = Search::new(planned, deadlines)?;
    let before = search.before();
    let found = search.run(limits);
    let after = windows::apply(planned, &found.lists);
    let scheduled = args.output.as_ref().map(|_| plan.with_schedule(planned, &after, &[]));
    let scheduled = scheduled.transpose().map_err(|error| error.to_string())?;
    let [simulated, after] = [planned, &after].map(|planned| verify::longest(planned, args.trials));
    let help = if found.missed.is_empty() { Vec::new() } else { help() };
    let (before, after) = ((&before, &simulated?), (&found, &after?));
    let report = ScheduleReport::new(args.plan.name(), planned, before, after, &help);
    Ok((report, scheduled.map(|(plan, _)| plan)))
}
