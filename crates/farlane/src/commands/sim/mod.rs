//! `farlane sim`: a plan run in virtual time.

mod document;
mod pool;
mod print;
mod sweep;
mod watch;

use super::{Failure, Outcome};
use crate::plan::{Plan, Planned};
use document::Document;
use std::path::PathBuf;
pub use watch::{Pace, simulate};

/// Run a plan in virtual time: latencies, links, where the time goes
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane sim plans/tcp.toml\n  \
    farlane sim plans/tsn.toml --json\n  \
    farlane sim plans/tcp.toml --sweep link.rate=1G,10G,25G --sweep drive.mps=128,256,512\n\n\
    docs/plan.md describes every key of a plan.")]
pub struct Args {
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// One JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Seed of all randomness, instead of the plan's
    #[arg(long)]
    seed: Option<u64>,
    /// Simulations, each with the next seed, instead of the plan's number
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: Option<u64>,
    /// Set a key of the plan, by its dotted path
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Try several values of a key; with several of these every combination
    #[arg(long, value_name = "KEY=VALUE,…")]
    sweep: Vec<String>,
    /// Also write a self-contained page with the sweep's table and plot
    #[arg(long, value_name = "FILE", requires = "sweep")]
    html: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    let mut plan = Plan::read(&args.plan)?;
    for text in &args.set {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Failure(format!("--set {text}: expected KEY=VALUE")))?;
        plan = plan.with(key, value, "--set").map_err(|error| Failure(error.to_string()))?;
    }
    if !args.sweep.is_empty() {
        return sweep::run(args, &plan);
    }
    let planned = built(args, &plan)?;
    let name = args.plan.display().to_string();
    let mut documents = pool::run_all(&name, &seeds(args, &planned))?;
    let mut document = documents.remove(0);
    document.runs = documents.iter().map(Document::as_run).collect();
    if args.json {
        print(&document)
    } else {
        print!("{}", print::text(&document));
        Ok(())
    }
}

/// The configuration, with the seed of the command line.
fn built(args: &Args, plan: &Plan) -> Result<Planned, Failure> {
    let planned = plan.build().map_err(|error| Failure(error.to_string()))?;
    Ok(match args.seed {
        Some(seed) => planned.with_seed(seed),
        None => planned,
    })
}

fn seeds(args: &Args, planned: &Planned) -> Vec<Planned> {
    let run = |number| planned.clone().with_seed(planned.config.seed.wrapping_add(number));
    (0..args.runs.unwrap_or(planned.runs)).map(run).collect()
}

fn print(value: &impl serde::Serialize) -> Outcome {
    println!("{}", serde_json::to_string_pretty(value).expect("plain keys"));
    Ok(())
}
