//! `farlane check`: mistakes in files of nodes.

use super::{Outcome, device, host, switch};
use crate::output::wrong_usage;
use crate::{Command, node_file};
use std::path::{Path, PathBuf};

/// Report all mistakes in files of nodes, without starting a node
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane check /etc/farlane/*.toml\n\n\
    Also reads what a file names: key, peers, gate control list, drive, namespaces. The\n\
    exit status is 2 if there is a mistake.")]
pub struct Args {
    /// Files of nodes
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let mistakes: Vec<_> = args.files.iter().flat_map(|file| mistakes(file)).collect();
    match mistakes.is_empty() {
        true => Ok(()),
        false => wrong_usage(mistakes.join("\n")),
    }
}

/// The mistakes of a file, each with its name.
fn mistakes(file: &Path) -> Vec<String> {
    let checks = match node_file::read(file) {
        Err(mistakes) => return vec![mistakes.to_string()],
        Ok(Command::Device(args)) => device::checks(&args),
        Ok(Command::Switch(args)) => switch::checks(&args),
        Ok(Command::Host(args)) => host::checks(&args),
        Ok(_) => unreachable!("a file has the role of a node"),
    };
    let failures = checks.into_iter().filter_map(Result::err);
    failures.map(|failure| format!("{}: {failure}", file.display())).collect()
}
