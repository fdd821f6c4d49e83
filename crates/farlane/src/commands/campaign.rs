//! `farlane campaign`: random plans with faults, and the laws that they keep.

use super::{Ended, Failure, json};
use crate::output::{assign_stdout, note};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use plan::campaign;
use plan::run::Watch;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Simulate random networks with random faults, and check that no data and no command is lost
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane campaign --seeds 1..10000\n  \
    farlane campaign --seeds 1..1000000 --minutes 10 --json\n\n\
    The exit status is 3 if a seed breaks a law, or if 1000 seeds or more never reach a\n\
    condition. `farlane sim DIR/seed-N.toml` replays a failure. docs/reliability.md lists the laws.")]
pub struct Args {
    /// Seeds to run, on all processors
    #[arg(long, value_name = "FIRST..LAST", default_value = "1..1000", value_parser = seeds)]
    seeds: RangeInclusive<u64>,
    /// Begin no further seed after this time
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: Option<u64>,
    /// Folder for the minimised plans of seeds that fail, seed-N.toml
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Print the plan of the first seed, and do not simulate
    #[arg(long, conflicts_with = "json")]
    plan: bool,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let ends = text.split_once("..").and_then(|(first, last)| {
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        // Plans have signed seeds.
        (first <= last && last <= i64::MAX as u64).then_some(first..=last)
    });
    ends.ok_or_else(|| "expected FIRST..LAST, such as 1..10000".into())
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    assign_stdout(args.json, &[]);
    if args.plan {
        print!("{}", campaign::plan(*args.seeds.start()));
        return Ok(Ended::Done);
    }
    let stop = stop_on_signals()?;
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    let progress = RefCell::new(Progress::new());
    let show = |state: Option<&str>| progress.borrow_mut().state(state);
    let watch = Watch { is_stopped: &|| stop.is_set() || is_over(), progress: &show };
    let mut report = campaign::run(args.seeds.clone(), &watch);
    // The time that the user gave is an ordinary end.
    report.interrupted &= stop.is_set();
    for failed in &report.failures {
        let path = args.out.join(format!("seed-{}.toml", failed.seed));
        std::fs::write(&path, &failed.plan)
            .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
        note(format_args!("seed {} is in {}", failed.seed, path.display()));
    }
    match args.json {
        true => println!("{}", json(&report)),
        false => print!("{}", report.text()),
    }
    Ok(report.ended())
}
