//! `farlane run`: starts the node of a file.

use crate::node_file;
use crate::output::wrong_usage;
use std::path::PathBuf;

/// Start the device, switch or host node of a file
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane run /etc/farlane/store.toml\n\n\
    docs/node-file.md describes the file.")]
pub struct Args {
    /// File with a role and the options of the node
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Args {
    /// The command of the file. Mistakes in the file end the process.
    pub fn command(&self) -> crate::Command {
        node_file::read(&self.file).unwrap_or_else(wrong_usage)
    }
}
