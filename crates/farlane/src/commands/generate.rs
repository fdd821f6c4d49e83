//! `farlane generate`: manual pages and completions, for packages.

use super::{Failure, Outcome};
use crate::Cli;
use clap::{CommandFactory, ValueEnum};
use clap_complete::{Shell, generate_to};
use std::path::PathBuf;

/// Write manual pages or completions of shells into a folder
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub struct Args {
    /// Files to write
    #[arg(value_enum)]
    files: Files,
    /// An existing folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// The files that can be generated.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Files {
    /// One manual page per command
    Man,
    /// One file per shell: bash, zsh, fish
    Completions,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let mut program = Cli::command();
    let written = match args.files {
        Files::Man => clap_mangen::generate_to(program, &args.folder),
        Files::Completions => {
            [Shell::Bash, Shell::Zsh, Shell::Fish].into_iter().try_for_each(|shell| {
                generate_to(shell, &mut program, "farlane", &args.folder).map(drop)
            })
        }
    };
    written.map_err(|error| Failure(format!("{}: {error}", args.folder.display())))
}
