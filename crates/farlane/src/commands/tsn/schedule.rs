//! `farlane tsn schedule`: gate control lists that meet deadlines.

use crate::commands::{Ended, Failure, json};
use crate::output::{assign_stdout, note, wrong_usage};
use crate::plan_args::{PlanArgs, built};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use planning::schedule::{Deadlines, Request};
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
    /// Time of the search; the simulations come after it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = positive)]
    time: Duration,
    /// Simulations that verify the result, each with other starts
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    trials: u64,
    /// The times of lists are multiples of this
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = positive)]
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

fn positive(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err(format!("invalid time '{text}': it must be more than 0")),
        time => Ok(time),
    }
}

fn deadlines(words: &[String]) -> Deadlines {
    let mut deadlines = Deadlines::default();
    for word in words {
        let (kind, time) = word.split_once('=').unwrap_or((word, ""));
        let wrong = |why| wrong_usage(format!("invalid value '{word}' for --deadline: {why}"));
        deadlines.set(kind, time).unwrap_or_else(wrong);
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
    let most = std::time::Duration::from_nanos(args.time.as_ns());
    let begin = Instant::now();
    let used = || match stop.is_set() {
        true => f64::INFINITY,
        false => begin.elapsed().as_secs_f64() / most.as_secs_f64(),
    };
    let request = Request {
        deadlines,
        used: &used,
        grain: args.grain,
        entries: args.entries.into(),
        clock_error: args.clock_error,
        trials: args.trials,
        with_plan: args.output.is_some(),
    };
    let mut progress = Progress::new();
    progress.show("searching, then simulating");
    let scheduled = request.run(name.clone(), &plan, &planned);
    progress.done();
    let (report, scheduled) = scheduled.map_err(|why| Failure(format!("{name}: {why}")))?;
    for (kind, deadline) in [("read", deadlines.read), ("write", deadlines.write)] {
        if deadline.is_some() && report.commands.iter().all(|command| command.kind != kind) {
            note(format_args!("no host of the plan has commands of the kind {kind}"));
        }
    }
    if let (Some(target), Some(scheduled)) = (&args.output, scheduled) {
        target.write(&scheduled.dump())?;
    }
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(if report.feasible { Ended::Done } else { Ended::Missed })
}
