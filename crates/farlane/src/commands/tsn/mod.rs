//! `farlane tsn`: guarantees and configuration of a network.

mod admit;
mod bound;
mod schedule;

use super::Failure;
use clap::Subcommand;

/// Guaranteed latencies of the network of a plan
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Admit(admit::Args),
    Bound(bound::Args),
    Schedule(schedule::Args),
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Admit(args) => admit::run(args),
        Command::Bound(args) => bound::run(args),
        Command::Schedule(args) => schedule::run(args),
    }
}
