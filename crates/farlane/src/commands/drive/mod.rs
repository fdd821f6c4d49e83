//! `farlane drive`: drives in folders.

mod create;
mod namespace;
mod scrub;
pub(super) mod show;

use super::Outcome;
use clap::Subcommand;

/// Create a drive in a folder, show one, or verify its checksums
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(create::Args),
    Show(show::Args),
    Scrub(scrub::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Create(args) => create::run(args),
        Command::Show(args) => show::run(args),
        Command::Scrub(args) => scrub::run(args),
    }
}
