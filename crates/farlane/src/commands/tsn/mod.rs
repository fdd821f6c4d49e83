//! `farlane tsn`: guarantees and configuration of a network.

mod admit;
mod bound;
mod export;
mod import;
pub(super) mod network;
mod report;
mod schedule;

use super::{Ended, Failure};
use clap::Subcommand;

/// Guaranteed latencies and configuration of a network
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Admit(admit::Args),
    Bound(bound::Args),
    Export(export::Args),
    Import(import::Args),
    Report(report::Args),
    Schedule(schedule::Args),
}

/// Runs the subcommand. Returns whether deadlines are met.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    match &args.command {
        Command::Admit(args) => admit::run(args),
        Command::Bound(args) => bound::run(args).map(|()| Ended::Done),
        Command::Export(args) => export::run(args).map(|()| Ended::Done),
        Command::Import(args) => import::run(args).map(|()| Ended::Done),
        Command::Report(args) => report::run(args).map(|()| Ended::Done),
        Command::Schedule(args) => schedule::run(args),
    }
}
