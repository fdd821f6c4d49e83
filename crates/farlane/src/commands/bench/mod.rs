//! `farlane bench`: direct and tunnelled beside the raw floor, in one run.

pub(super) mod ablation;
pub(super) mod congestion;
mod html;
mod options;
pub(super) mod print;
pub(super) mod sim;

use super::{Ended, Failure, json};
use crate::node::waiting;
use crate::output::{assign_stdout, warning, wrong_usage};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use ::node::push::Mode;
use live::Waiting;
use load::Console;
use load::case::{CASES, Case, Path};
use load::recording;
use load::testbed::{Floor, Series, Testbed};
use options::{PathOption, TransportOption, parse_depth};
use report::span;
use report::target::Target;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use wire::Duration;

/// Measure throughput and latency, direct and tunnelled, beside raw TCP
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  farlane bench --quick\n  \
    farlane bench --spin 0 --json\n  farlane bench --html bench.html\n  \
    farlane bench --rw randread --iodepth 1 --path tunnelled --mps 4096\n  \
    farlane bench --aggregation per-tlp,wait=1us,adaptive\n\n\
    Rounds are interleaved: floor, then every case on every path, and again.\n\
    Figures are medians over the rounds. Ctrl-C ends it with those that are finished.")]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Fewer and shorter rounds: ends within 50 s
    #[arg(long)]
    quick: bool,
    /// Rounds
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// One JSON document instead of a table; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with the distributions; with - to
    /// standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
    /// Look for input this long before sleeping, such as 50us; a number alone
    /// is microseconds, 0 sleeps at once
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = span::microseconds)]
    spin: Duration,
    /// Payload sizes to measure at: 256 and 4096 unless told otherwise; one,
    /// with --aggregation, and 128
    #[arg(long, value_name = "BYTES", value_delimiter = ',',
          value_parser = crate::node::parse_mps)]
    mps: Vec<u16>,
    /// Only these workloads
    #[arg(long, value_delimiter = ',',
          value_parser = ["randread", "randwrite", "read", "write"])]
    rw: Vec<String>,
    /// Only workloads with so many commands in flight: 1, 8 or 32
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_depth)]
    iodepth: Vec<usize>,
    /// Also measure in so many pairs of rounds what recording a trace costs
    #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    recording: Option<u32>,
    /// What the tunnelled runs push in front of doorbells
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_values_t = [Mode::Off, Mode::All])]
    push: Vec<Mode>,
    /// Only this way to the drive
    #[arg(long)]
    path: Option<PathOption>,
    /// Compare these policies of aggregation instead, over loopback and over a
    /// link with a rate in network namespaces (which needs root)
    #[arg(long, value_name = "POLICY", value_delimiter = ',',
          conflicts_with_all = ["path", "recording"])]
    aggregation: Vec<Policy>,
    /// With --aggregation: only this transport
    #[arg(long, value_delimiter = ',', requires = "aggregation")]
    transport: Vec<TransportOption>,
    /// With --aggregation: bits of wire a second of the limited link, such as 100M
    #[arg(long, value_name = "RATE", default_value_t = load::ablation::RATE)]
    link_rate: Rate,
}

/// Other things to measure.
#[derive(clap::Subcommand, Debug)]
enum Other {
    Sim(sim::Args),
    Congestion(congestion::Args),
}

impl Args {
    fn selects(&self, path: Path, case: &Case) -> bool {
        self.path.is_none_or(|only| Path::from(only) == path)
            && (self.rw.is_empty() || self.rw.iter().any(|rw| rw == case.rw))
            && (self.iodepth.is_empty() || self.iodepth.contains(&case.iodepth))
    }
}

/// Everything measured.
pub(crate) struct Results {
    waiting: Waiting,
    floor: Floor,
    series: Vec<Series>,
    recording: Vec<recording::Cost>,
    interrupted: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    match &args.other {
        Some(Other::Sim(args)) => return sim::run(args),
        Some(Other::Congestion(args)) => return congestion::run(args),
        None => {}
    }
    assign_stdout(args.json, &[("--html", args.html.as_ref())]);
    let waiting = waiting(args.spin);
    let stop = stop_on_signals()?;
    if !args.aggregation.is_empty() {
        return ablation::run(args, waiting, &stop);
    }
    let sizes = if args.mps.is_empty() { &[256, 4096][..] } else { &args.mps };
    let rounds = args.rounds.unwrap_or(if args.quick { 3 } else { 7 });
    let span = Duration::from_ms(if args.quick { 150 } else { 500 });
    let mut progress = Progress::new();
    let mut results = Results {
        waiting,
        floor: Floor::default(),
        series: series(args, sizes),
        recording: Vec::new(),
        interrupted: false,
    };
    if results.series.is_empty() {
        wrong_usage("no workload fits --rw, --iodepth and --path together")
    }
    let mut bench = Testbed::new(waiting, sizes, &args.push)?;
    'rounds: for round in 1..=rounds {
        progress.show(&format!("round {round} of {rounds}: raw TCP"));
        results.floor.measure(bench.clock, waiting, span)?;
        for series in &mut results.series {
            if stop.is_set() {
                break 'rounds;
            }
            progress.show(&format!("round {round} of {rounds}: {}", series.name()));
            bench.round(series, span)?;
        }
    }
    drop(bench);
    if let Some(pairs) = args.recording {
        let lines: (&mut dyn Console, fn(&str)) = (&mut progress, |text| warning(text));
        results.recording = recording::measure(waiting, sizes[0], pairs, lines, &stop)?;
    }
    results.series.retain(|series| !series.rounds.is_empty());
    results.interrupted = stop.is_set();
    progress.done();
    let document = print::document(&results);
    if args.json {
        println!("{}", json(&document));
    } else {
        print::table(&document);
    }
    if let Some(target) = &args.html {
        target.write(&html::page(&results, &document))?;
    }
    Ok(Ended::unless(results.interrupted))
}

fn series(args: &Args, sizes: &[u16]) -> Vec<Series> {
    let mut all = Vec::new();
    for (mps, case) in sizes.iter().flat_map(|mps| CASES.map(|case| (*mps, case))) {
        let direct = [(Path::Direct, Mode::Off)].into_iter();
        let paths = direct.chain(args.push.iter().map(|push| (Path::Tunnelled, *push)));
        for (path, push) in paths.filter(|(path, _)| args.selects(*path, &case)) {
            all.push(Series::new(path, mps, push, case));
        }
    }
    all
}
