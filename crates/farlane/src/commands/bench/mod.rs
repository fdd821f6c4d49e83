//! `farlane bench`: direct and tunnelled commands compared with raw TCP, in one run.

pub(super) mod ablation;
pub(super) mod congestion;
pub(super) mod efficiency;
mod html;
mod options;
pub(super) mod print;
pub(super) mod sim;

use super::{Ended, Failure, json};
use crate::node::waiting;
use crate::output::{assign_stdout, one_of, warning, wrong_usage};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use ::node::push::Mode;
use live::Waiting;
use load::Console;
use load::case::{CASES, Case, Path};
use load::recording;
use load::testbed::{Floor, Series, Testbed};
use options::{RoundArgs, TransportOption, parse_depth, usual_span};
use switch::aggregate::Policy;
use switch::congestion::Rate;

/// Measure throughput and latency, direct and tunnelled, compared with raw TCP
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  farlane bench --quick\n  \
    farlane bench --spin 0 --json\n  farlane bench --html bench.html\n  \
    farlane bench --rw randread --iodepth 1 --path tunnelled --mps 4096\n  \
    farlane bench --aggregation per-tlp,wait=1us,adaptive\n\n\
    Every round measures raw TCP, then every workload on every path. Figures are\n\
    medians over the rounds. Ctrl-C ends the benchmark and prints the finished rounds.")]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Run fewer and shorter rounds, for at most 50 s
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    round: RoundArgs,
    /// Payload sizes of TLPs (Max_Payload_Size), comma-separated, powers of two from 128 to 4096
    /// [default: 256,4096; with --aggregation only 128]
    #[arg(long, value_name = "BYTES", value_delimiter = ',',
          value_parser = crate::node::parse_mps)]
    mps: Vec<u16>,
    /// Run only these kinds of workloads, comma-separated
    #[arg(long, value_name = "KIND", value_delimiter = ',',
          value_parser = ["randread", "randwrite", "read", "write"])]
    rw: Vec<String>,
    /// Run only workloads with these numbers of commands in flight, comma-separated: 1, 8, 32
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = parse_depth)]
    iodepth: Vec<usize>,
    /// Also measure the cost of a trace in this many pairs of rounds, 1 to 1000
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    recording: Option<u32>,
    /// What tunnelled runs push before a doorbell, comma-separated. off: nothing; entries:
    /// submission queue entries; all: also PRP and SGL lists and the data of writes
    #[arg(long, value_name = "MODE", value_delimiter = ',', default_values_t = [Mode::Off, Mode::All],
          value_parser = one_of(Mode::ALL, Mode::name))]
    push: Vec<Mode>,
    /// Paths to the drive, comma-separated. direct: the controller below the root port; tunnelled:
    /// behind switch, tunnel and TCP on loopback; tls-...: the same under TLS with this cipher
    #[arg(long, value_name = "PATH", value_delimiter = ',',
          default_values_t = [Path::Direct, Path::Tunnelled], value_parser = one_of(Path::ALL, Path::name))]
    path: Vec<Path>,
    /// Compare these aggregation policies, comma-separated, instead of the workloads: over loopback
    /// and, as root, over a link of --line-rate between network namespaces
    #[arg(long, value_name = "POLICY", value_delimiter = ',',
          conflicts_with_all = ["path", "recording"])]
    aggregation: Vec<Policy>,
    /// Compare policies only on these transports
    #[arg(long, value_name = "TRANSPORT", value_delimiter = ',', requires = "aggregation")]
    transport: Vec<TransportOption>,
    /// Rate of the limited link of --aggregation in bits per second of wire
    #[arg(long, value_name = "RATE", default_value_t = load::ablation::RATE)]
    line_rate: Rate,
}

/// The subcommands.
#[derive(clap::Subcommand, Debug)]
enum Other {
    Sim(sim::Args),
    Congestion(congestion::Args),
    Efficiency(efficiency::Args),
}

impl Args {
    fn selects(&self, path: Path, case: &Case) -> bool {
        self.path.contains(&path)
            && (self.rw.is_empty() || self.rw.iter().any(|rw| rw == case.rw))
            && (self.iodepth.is_empty() || self.iodepth.contains(&case.iodepth))
    }
}

/// The results of all rounds.
pub(crate) struct BenchResults {
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
        Some(Other::Efficiency(args)) => return efficiency::run(args),
        None => {}
    }
    let RoundArgs { json: as_json, html, spin, .. } = &args.round;
    assign_stdout(*as_json, &[("--html", html.as_ref())]);
    let waiting = waiting(*spin);
    let stop = stop_on_signals()?;
    if !args.aggregation.is_empty() {
        return ablation::run(args, waiting, &stop);
    }
    let sizes = if args.mps.is_empty() { &[256, 4096][..] } else { &args.mps };
    let (rounds, span) = (args.round.rounds(args.quick), usual_span(args.quick));
    let mut progress = Progress::new();
    let mut results = BenchResults {
        waiting,
        floor: Floor::default(),
        series: series(args, sizes),
        recording: Vec::new(),
        interrupted: false,
    };
    if results.series.is_empty() {
        wrong_usage("no workload matches --rw, --iodepth and --path together")
    }
    let mut bench = Testbed::new(waiting, &results.series)?;
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
    if *as_json {
        println!("{}", json(&document));
    } else {
        print::table(&document);
    }
    if let Some(target) = html {
        target.write(&html::page(&results, &document))?;
    }
    Ok(Ended::unless(results.interrupted))
}

fn series(args: &Args, sizes: &[u16]) -> Vec<Series> {
    let mut all = Vec::new();
    for (mps, case) in sizes.iter().flat_map(|mps| CASES.map(|case| (*mps, case))) {
        let modes = |path| if path == Path::Direct { &[Mode::Off][..] } else { &args.push };
        let paths = Path::ALL
            .into_iter()
            .flat_map(|path| modes(path).iter().map(move |push| (path, *push)));
        for (path, push) in paths.filter(|(path, _)| args.selects(*path, &case)) {
            all.push(Series::new(path, mps, push, case));
        }
    }
    all
}
