//! The `farlane` program: see `farlane --help`.
//!
//! # Modules
//!
//! - `commands`: the subcommands, one file or folder each
//! - `node`, `namespace`, `gate_args`, `key_args`, `observe_args`, `push_args`, `sandbox_args`,
//!   `trace_args`: options that several commands share
//! - `link_end`: a link end without a device, for `ping` and `move`
//! - `log`: the log of device, switch and host nodes
//! - `node_file`: the options of a node from a file
//! - `output`: standard output and standard error, which may be closed or full
//! - `progress`: the progress on one line of a terminal
//! - `reload`: what a running node reads again on SIGHUP
//! - `service`: messages to the service manager
//! - `signals`: signals that end a node, print its counters or stop its trace

// The first module: the macros are in scope below.
#[macro_use]
mod output;

mod commands;
mod fault_args;
mod gate_args;
mod key_args;
mod link_end;
mod log;
mod namespace;
mod node;
mod node_file;
mod observe_args;
mod plan_args;
mod progress;
mod push_args;
mod reload;
mod sandbox_args;
mod service;
mod signals;
mod trace_args;

use clap::error::{ContextKind, ErrorKind};
use clap::{Parser, Subcommand};
use commands::{
    Ended, bench, calibrate, campaign, check, compare, demo, device, drive, generate, host, io,
    key, latency, live, move_to, ping, reproduce, run, sim, status, switch, trace, tsn, work,
};
use std::process::ExitCode;

/// Distributed PCIe switch: NVMe drives and other endpoints over an Ethernet network.
#[derive(Parser)]
#[command(
    name = "farlane",
    version,
    color = clap::ColorChoice::Never,
    after_help = "Exit status: 0 success, 1 failure (one line on stderr gives the reason), 2 wrong usage, \
        3 a run missed a requirement of its plan, 130 a signal ended `sim`, `live`, `compare` or\n\
        `bench`.\n\
        docs/command-line.md describes the grammar of sizes, times and rates.\n\n\
        Examples:\n  \
        farlane demo\n  \
        farlane device --namespace ram=256M\n  \
        farlane host --connect localhost --vfio-user /tmp/farlane\n  \
        farlane ping localhost"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Bench(bench::Args),
    Device(device::Args),
    Drive(drive::Args),
    Host(host::Args),
    Io(Box<io::Args>),
    Key(key::Args),
    Latency(latency::Args),
    Status(status::Args),
    Switch(switch::Args),
    Top(status::TopArgs),
    Run(run::Args),
    Check(check::Args),
    Generate(generate::Args),
    Move(move_to::Args),
    Ping(ping::Args),
    Sim(sim::Args),
    Work(work::Args),
    Live(live::Args),
    Compare(compare::Args),
    Calibrate(calibrate::Args),
    Campaign(campaign::Args),
    Trace(trace::Args),
    Tsn(tsn::Args),
    Reproduce(reproduce::Args),
}

/// Exit status of a finished simulation that missed a requirement of its plan.
const REQUIREMENT_MISSED: u8 = 3;

/// Parses the command line. Ends the process after help and errors.
fn parsed() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        // clap suggests `-- --csv` for a misplaced option, which would be a file.
        if error.kind() == ErrorKind::UnknownArgument {
            error.remove(ContextKind::Suggested);
        }
        error.exit()
    })
}

fn main() -> ExitCode {
    output::with_usage(program)
}

fn program() -> ExitCode {
    let mut done = ExitCode::SUCCESS;
    let ended = |ended| {
        done = match ended {
            Ended::Done => ExitCode::SUCCESS,
            Ended::Missed => ExitCode::from(REQUIREMENT_MISSED),
            Ended::Interrupted => ExitCode::from(signals::INTERRUPTED),
        }
    };
    let command = match parsed().command {
        Command::Run(args) => args.command(),
        command => command,
    };
    let result = match command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args).map(ended),
        Command::Device(args) => device::run(&args),
        Command::Drive(args) => drive::run(&args),
        Command::Host(args) => host::run(&args),
        Command::Io(args) => io::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => status::top(&args),
        Command::Switch(args) => switch::run(&args),
        Command::Run(_) => unreachable!("a file has the role of a node"),
        Command::Check(args) => check::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Move(args) => move_to::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Sim(args) => sim::run(&args).map(ended),
        Command::Work(args) => work::run(&args).map(ended),
        Command::Live(args) => live::run(&args).map(ended),
        Command::Compare(args) => compare::run(&args).map(ended),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Campaign(args) => campaign::run(&args).map(ended),
        Command::Tsn(args) => tsn::run(&args).map(ended),
        Command::Trace(args) => trace::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
    };
    let printed = output::finish();
    match result.map_err(|failure| failure.to_string()).and(printed) {
        Ok(()) => done,
        Err(why) => {
            output::error(format_args!("farlane: {why}\n"));
            ExitCode::FAILURE
        }
    }
}
