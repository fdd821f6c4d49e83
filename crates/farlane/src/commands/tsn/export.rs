//! `farlane tsn export`.

use crate::commands::Outcome;
use crate::output::note;
use crate::plan_args::{PlanArgs, built};
use devices::script::Options;
use report::Failure;
use std::fs;
use std::path::PathBuf;

/// Write the configuration of every station and bridge of a plan: shell scripts, YANG data
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane tsn export plans/tsn-network.toml --output devices\n  \
    farlane tsn export plans/zonal-vehicle.toml --output devices --offload\n\n\
    NODE.sh sets up the interfaces of a Linux node, NODE.sh undo removes the settings. NODE.json is\n\
    YANG instance data. With [clocks], NODE.ptp4l.conf and NODE.phc2sys.conf are for linuxptp.\n\
    What the files lack is a line on standard error. docs/tsn-planning.md describes them.")]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Folder for the files, made if necessary. Files with the same names are replaced
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Let the network controllers execute gates, credit-based shapers and preemption
    #[arg(long)]
    offload: bool,
    /// Let periodic streams that pass gates leave at their times (etf). Their classes then drop the
    /// frames of sockets without launch times
    #[arg(long)]
    launch_times: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let planned = built(&args.plan.read()?)?;
    if planned.stations.is_empty() {
        return Err(Failure(format!(
            "{}: with transport direct there is no network",
            args.plan.name()
        )));
    }
    let options = Options { offload: args.offload, launch_times: args.launch_times };
    let exported = devices::export(&planned, &args.plan.name(), &options);
    let folder = &args.output;
    let failed = |error| Failure(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    for (name, text) in exported.files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    }
    exported.notes.iter().for_each(|text| note(format_args!("{text}")));
    Ok(())
}
