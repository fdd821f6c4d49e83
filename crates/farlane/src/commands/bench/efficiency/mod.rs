//! `farlane bench efficiency`: processor time and consistency of direct and tunnelled commands.

mod html;
pub(in crate::commands) mod print;

use super::super::{Ended, Failure, json};
use super::options::{RoundArgs, usual_span};
use crate::node::waiting;
use crate::output::{assign_stdout, one_of};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use ::node::push::Mode;
use load::case::{Path, efficiency_cases};
use load::testbed::{Series, Testbed};
use report::span;
use wire::Duration;

/// Compare IOPS, processor time, latency and consistency, direct and tunnelled
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Reads, 70/30 mixes and writes of 4 KiB, random and sequential. Every round measures each workload\n\
    direct (the controller below the root port) and tunnelled (the same controller behind switch,\n\
    tunnel and TCP on loopback), in alternating order. Figures are medians over the rounds. Ratios\n\
    are medians over pairs of runs that follow each other.\n\n\
    Examples:\n  farlane bench efficiency\n  farlane bench efficiency --iodepth 1 --json\n  \
    farlane bench efficiency --spin 0 --html efficiency.html"
)]
pub struct Args {
    /// Run fewer and shorter rounds, for about 10 s
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    round: RoundArgs,
    /// Time of a workload on one path in a round [default: 500ms; with --quick 150ms]. A number
    /// alone is in seconds
    #[arg(long, value_name = "TIME", value_parser = span::seconds)]
    runtime: Option<Duration>,
    /// Commands in flight, 1 to 32
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=32))]
    iodepth: u8,
    /// Largest payload of a TLP (Max_Payload_Size), a power of two from 128 to 4096
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = crate::node::parse_mps)]
    mps: u16,
    /// What tunnelled runs push before a doorbell. off: nothing; entries: submission queue entries;
    /// all: also PRP and SGL lists and the data of writes
    #[arg(long, value_name = "MODE", default_value_t = Mode::All, value_parser = one_of(Mode::ALL, Mode::name))]
    push: Mode,
}

/// The rounds of one workload on both paths. Equally many rounds are finished on each path, and the
/// rounds with the same number follow each other.
pub(crate) type PathPair = [Series; 2];

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    let RoundArgs { json: as_json, html, spin, .. } = &args.round;
    assign_stdout(*as_json, &[("--html", html.as_ref())]);
    let stop = stop_on_signals()?;
    let rounds = args.round.rounds(args.quick);
    let span = args.runtime.unwrap_or(usual_span(args.quick));
    let cases = efficiency_cases(args.iodepth.into());
    let paths = [(Path::Direct, Mode::Off), (Path::Tunnelled, args.push)];
    let pair = |case| paths.map(|(path, push)| Series::new(path, args.mps, push, case));
    let mut pairs: Vec<PathPair> = cases.map(pair).into();
    let mut progress = Progress::new();
    let mut bench = Testbed::new(waiting(*spin), &pairs[0])?;
    'rounds: for round in 1..=rounds {
        for pair in &mut pairs {
            if stop.is_set() {
                break 'rounds;
            }
            // The order alternates, so that neither path has an advantage.
            for at in if round % 2 == 1 { [0, 1] } else { [1, 0] } {
                progress.show(&format!("round {round} of {rounds}: {}", pair[at].name()));
                bench.round(&mut pair[at], span)?;
            }
        }
    }
    drop(bench);
    progress.done();
    pairs.retain(|[direct, _]| !direct.rounds.is_empty());
    let document = print::document(args, &pairs, stop.is_set());
    if *as_json {
        println!("{}", json(&document));
    } else {
        print::table(&document);
    }
    if let Some(target) = html {
        target.write(&html::page(&pairs, &document))?;
    }
    Ok(Ended::unless(document.interrupted))
}
