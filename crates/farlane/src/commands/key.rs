//! `farlane key`: makes keys and prints their fingerprints.

use super::{Failure, Outcome};
use clap::Subcommand;
use credentials::{KeyError, NodeKey};
use std::path::PathBuf;

/// Make the private key of a node, or print a key's fingerprint
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    farlane key new host.key\n  \
    echo \"host-a $(farlane key show host.key) use,probe\" >> device.peers\n  \
    farlane device --listen 0.0.0.0 --key device.key --peers device.peers --namespace ram=1G\n\n\
    The fingerprint is the SHA-256 of the public key, in base64. It stands for the key in\n\
    files of peers. docs/security.md describes keys and files of peers.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a file with a new Ed25519 key that only its owner can read, and print the fingerprint
    New {
        /// File to make; an existing file is an error
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the fingerprint of the key in a file
    Show {
        /// File with a private key in PEM form
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let key = match &args.command {
        Command::New { file } => NodeKey::create(file),
        Command::Show { file } => NodeKey::load(file),
    };
    let key = key.map_err(|error: KeyError| Failure(error.to_string()))?;
    println!("{}", key.fingerprint());
    Ok(())
}
