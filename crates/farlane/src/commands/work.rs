//! `farlane work`: runs points of a sweep that another process has begun.

use super::{Ended, Failure};
use crate::output::wrong_usage;
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use plan::run::Watch;
use plan::run::points::{Folder, numbers};
use report::span;
use std::cell::RefCell;
use std::path::PathBuf;
use wire::Duration;

/// Run points of a sweep that `farlane sim --points DIR` has begun, on this machine
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane work /shared/sweep --only 0-499\n  \
    farlane work /shared/sweep --only 500-999\n\n\
    Points that have results are left out. The command that began the sweep prints the results\n\
    when it runs again.")]
pub struct Args {
    /// Folder of the sweep
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Points to run, numbered from 0; by default all
    #[arg(long, value_name = "NUMBERS")]
    only: Option<String>,
    /// Number of points at once [default: the number of processors]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Maximum time for a point
    #[arg(long, value_name = "TIME", value_parser = span::time)]
    point_timeout: Option<Duration>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    let folder = Folder::open(&args.folder, &engines::machine())?;
    let only = match &args.only {
        Some(text) => numbers(text)
            .unwrap_or_else(|why| wrong_usage(format!("invalid value {why} for --only"))),
        None => (0..folder.count()).collect(),
    };
    let stop = stop_on_signals()?;
    let progress = RefCell::new(Progress::new());
    let watch = Watch {
        is_stopped: &|| stop.is_set(),
        progress: &|state| progress.borrow_mut().state(state),
    };
    let failed = engines::work(&folder, &only, args.threads, args.point_timeout, &watch)?;
    match failed.first_key_value() {
        Some((number, why)) => Err(Failure(format!("point {number}: {why}"))),
        None => Ok(Ended::unless(stop.is_set())),
    }
}
