//! `farlane tsn schedule`: gate control lists that meet deadlines.

use crate::commands::{Ended, Failure, json};
use crate::output::{assign_stdout, wrong_usage};
use crate::plan_args::{PlanArgs, built};
use crate::signals::stop_on_signals;
use planning::schedule::document::ScheduleReport;
use planning::schedule::{Deadlines, Limits, Search, help, verify, windows};
use report::target::Target;
use std::time::Instant;
use wire::Duration;

/// Find gate control lists with which commands and streams meet their deadlines
///
/// The lists replace those of the plan. Bounds and simulations verify the result. Deadlines of
/// streams are those of the plan.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Deadlines of commands: read=300us,write=300us
    #[arg(long, value_name = "KIND=TIME,…", required = true, value_delimiter = ',')]
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
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    entries: u16,
    /// Write the plan with the lists
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
    if planned.hosts.is_empty() {
        return Err(Failure(format!("{name}: the plan has no host, so no command has a deadline")));
    }
    let stop = stop_on_signals()?;
    let begin = Instant::now();
    let most = std::time::Duration::from_nanos(args.time.as_ns());
    let is_over = || stop.is_set() || begin.elapsed() > most;
    let grain = args.grain;
    let limits = Limits { is_over: &is_over, grain, entries: args.entries.into() };
    let failed = |why: String| Failure(format!("{name}: {why}"));
    let search = Search::new(&planned, deadlines).map_err(failed)?;
    let before = search.before();
    let found = search.run(&limits);
    let simulated = verify::longest(&planned, args.trials).map_err(failed)?;
    let scheduled = windows::apply(&planned, &found.lists);
    let after = verify::longest(&scheduled, args.trials).map_err(failed)?;
    let help = match found.missed.is_empty() {
        true => Vec::new(),
        false => {
            let begin = Instant::now();
            let is_over = || stop.is_set() || begin.elapsed() > most / 4;
            help::help(&plan, deadlines, &Limits { is_over: &is_over, ..limits })
        }
    };
    let report =
        ScheduleReport::new(name.clone(), &planned, (&before, &simulated), (&found, &after), &help);
    if let Some(target) = &args.output {
        target.write(&report.tables())?;
    }
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(if report.feasible { Ended::Done } else { Ended::Missed })
}
