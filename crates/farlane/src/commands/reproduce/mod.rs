//! `farlane reproduce`: published experiments, simulated.

mod nvme_tsn;

use super::Outcome;
use clap::ValueEnum;
use std::path::PathBuf;

/// Simulate a published experiment and print both side by side
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane reproduce nvme-tsn\n  \
    farlane reproduce nvme-tsn --only table --json\n  \
    farlane reproduce nvme-tsn --html nvme-tsn.html\n\n\
    Virtual time: the same figures on any machine.")]
pub struct Args {
    /// The publication
    #[arg(value_name = "NAME")]
    name: Name,
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<nvme_tsn::Part>,
    /// One JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// A publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Missing Link Electronics, "Latency Analysis for NVMe/TSN"
    NvmeTsn,
}

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    match args.name {
        Name::NvmeTsn => nvme_tsn::run(&args.only, args.json, args.html.as_deref()),
    }
}
