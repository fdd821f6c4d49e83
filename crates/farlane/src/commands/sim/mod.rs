//! `farlane sim`: simulates a plan in virtual time.

use super::{Ended, Failure, json};
use crate::output::{
    assign_stdout, failures_in_red, file_only, note, one_of, red, warning, wrong_usage,
};
use crate::plan_args::{PlanArgs, TableArgs, built, refused};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use engines::{Engine, Launch};
use plan::run::document::{SimReport, SweepDocument};
use plan::run::phases;
use plan::run::points::{Folder, Job};
use plan::run::sweep::{Combinations, Grid, Sweep, SweepOptions};
use plan::run::tables::TableFolders;
use plan::run::{RunError, RunOptions, RunTables, Seeds, Shifts, Watch};
use plan::simulate::OutputFiles;
use plan::simulate::limits::{self, Assumptions, CompletionTimeout};
use plan::simulate::timeline::Chosen;
use plan::{Plan, Planned};
use planning::bound::latency_bounds;
use report::span;
use report::target::Target;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use wire::{Duration, Instant};

/// Simulate a plan in virtual time: latencies, links, stages, requirements
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("folders").args(["csv", "parquet"]).multiple(true))]
#[command(after_help = "Examples:\n  farlane sim plans/tcp.toml\n  \
    farlane sim plans/tsn.toml --json\n  \
    farlane sim plans/tcp.toml --sweep link.rate=1G,10G,25G --sweep drive.mps=128,256,512\n\n\
    docs/plan.md describes every key of a plan. Ctrl-C ends the simulation and prints\n\
    the finished runs.")]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Record TLPs and frames of every node for `farlane trace`, into FILE, FILE.device0,
    /// FILE.host1 and so on. --trace, --pcapng and --html override the plan's [record]
    #[arg(long, value_name = "FILE", conflicts_with = "sweep", value_parser = file_only)]
    trace: Option<PathBuf>,
    /// Capture the frames of all wires for Wireshark. FILE - is standard output, instead of the
    /// text
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pcapng: Option<Target>,
    /// Port to show first in the timelines: BRIDGE:PEER or STATION. Shows two gate cycles from
    /// FROM, such as 1.5ms; without FROM, the two cycles around the longest wait
    #[arg(long, value_name = "PORT[@FROM]", conflicts_with = "sweep")]
    timeline: Option<String>,
    /// Completion timeout of drives, as a range of the PCIe register Device Control 2
    #[arg(long, value_name = "RANGE", default_value = "50us-50ms", value_parser = one_of(CompletionTimeout::ALL, |range| range.name))]
    completion_timeout: CompletionTimeout,
    /// Seed of all random numbers, instead of the plan's
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Number of simulations, 1 to 10000; each uses the next seed. Overrides `runs` of the plan.
    /// With --sweep, of each combination
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: Option<u64>,
    /// Number of trials, 2 to 10000. Trial 0 is the plan; others shift starts and gate clocks.
    /// Prints the worst of all trials. With --sweep, trials run for each combination
    #[arg(long, value_name = "COUNT", conflicts_with = "runs",
          value_parser = clap::value_parser!(u64).range(2..=10_000))]
    phases: Option<u64>,
    /// Keys that trials shift, comma-separated. Without clock_offset, gate clocks stay as planned
    #[arg(long, value_name = "KEYS", requires = "phases", value_delimiter = ',',
          default_values = Plan::SHIFTED, value_parser = Plan::SHIFTED)]
    shift: Vec<String>,
    /// Search the worst phases: after a third of the trials, move starts and clocks towards the
    /// worst of each host and stream. Compares with the guaranteed latencies
    #[arg(long, requires = "phases")]
    search: bool,
    /// Simulate with several values of a key; repeatable, for every combination. Keys joined by +
    /// have the same value
    #[arg(long, value_name = "KEY[+KEY…]=VALUE,…")]
    sweep: Vec<Sweep>,
    /// Keep the results of each point of a sweep in the folder DIR as Parquet. A further call with
    /// the same arguments runs only the rest. Machines that share DIR can take part
    #[arg(long, value_name = "DIR", requires = "sweep", conflicts_with_all = ["csv", "parquet"])]
    points: Option<PathBuf>,
    /// What runs the points: local[,threads=N], ray[,address=HOST:PORT][,python=FILE], or
    /// slurm[,tasks=N][,OPTION=VALUE]…, with options of sbatch
    #[arg(long, value_name = "ENGINE", requires = "points", default_value = "local",
          value_parser = Engine::from_str)]
    engine: Engine,
    /// Maximum time for a point. Points that take longer have failed
    #[arg(long, value_name = "TIME", requires = "points", value_parser = span::time)]
    point_timeout: Option<Duration>,
    /// Write also a table of the frames of streams: a row for each arrival
    #[arg(long, requires = "folders")]
    frames: bool,
    /// Write the plan without parameters, patterns and further files, with all options --set, and
    /// do not simulate. FILE - is standard output; FILE.dot and FILE.gv are graphs for Graphviz
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "trace", "pcapng", "timeline", "seed", "runs", "phases", "sweep", "html", "csv", "parquet"])]
    dump: Option<Target>,
    #[command(flatten)]
    tables: TableArgs,
    /// Write an HTML page: the report of the first run with diagrams and plots, or the table and
    /// plot of --sweep. FILE - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// Returns whether the file has a name of Graphviz: `.dot` or `.gv`.
fn is_graph(target: &Target) -> bool {
    let Target::File(path) = target else { return false };
    path.extension().is_some_and(|end| end == "dot" || end == "gv")
}

/// Runs the command. Returns whether every run, trial and combination meets the plan's
/// requirements.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    let outputs = [("--pcapng", args.pcapng.as_ref()), ("--html", args.html.as_ref())];
    assign_stdout(args.json, &outputs);
    let plan = args.plan.read()?;
    if let Some(target) = &args.dump {
        let planned = built(&plan)?;
        let text = if is_graph(target) { planned.dot() } else { plan.dump() };
        return target.write(&text).map(|()| Ended::Done);
    }
    let stop = stop_on_signals()?;
    let progress = RefCell::new(Progress::new());
    let show = |state: Option<&str>| progress.borrow_mut().state(state);
    let watch = Watch { is_stopped: &|| stop.is_set(), progress: &show };
    let seeds = Seeds { first: args.seed, runs: args.runs };
    let shifts = args.phases.map(|trials| Shifts {
        trials,
        keys: args.shift.clone(),
        search: args.search.then_some(latency_bounds),
    });
    if !args.sweep.is_empty() {
        return sweep(args, &plan, (&seeds, shifts.as_ref()), &watch);
    }
    let planned = seeds.built(&plan).map_err(refused)?;
    let name = args.plan.name();
    let assumed =
        Assumptions { completion_timeout: args.completion_timeout, ..Assumptions::default() };
    let record = planned.record.clone();
    let requested = OutputFiles {
        trace: args.trace.clone().or(record.trace),
        pcapng: args.pcapng.clone().or(record.pcapng),
        report: args.html.clone().or(record.report),
        timeline: chosen(args, &planned),
    };
    if requested.timeline.is_some() && requested.report.is_none() {
        wrong_usage("--timeline needs a report; add --html FILE")
    }
    if requested.trace.is_some() && planned.hosts.is_empty() {
        let what =
            "no trace: the plan has no host; use --pcapng to capture the frames of all wires";
        return Err(Failure(format!("{name}: {what}")));
    }
    warn(&name, &planned, &assumed);
    let text = args.plan.text(&plan);
    let tables = tables(args, &text)?.map(Arc::new);
    let options =
        RunOptions { name, requested, assumed, text, phases: None, tables: tables.clone() };
    let is_requested = options.requested != OutputFiles::default();
    let document = match &shifts {
        Some(shifts) => phases::run(&plan, (&seeds, shifts), options, &watch),
        None => plan::run::run(&planned, &seeds, &options, &watch).map(|document| (document, true)),
    };
    let (document, is_written) = document.map_err(|error| failed(args, &planned, error))?;
    if is_requested && !is_written {
        warning("interrupted: the files of --html, --trace and --pcapng are not written");
    }
    let ended = shown(args, &document);
    tables.map_or(Ok(()), |tables| tables.finish())?;
    Ok(ended)
}

/// Begins the tables of --csv and --parquet.
fn tables(args: &Args, text: &str) -> Result<Option<RunTables>, Failure> {
    let folders = TableFolders { frames: args.frames, ..args.tables.folders() };
    RunTables::create(folders, text)
}

/// Runs every combination. Returns whether all meet the plan's requirements.
fn sweep(
    args: &Args,
    plan: &Plan,
    (seeds, shifts): (&Seeds, Option<&Shifts>),
    watch: &Watch<'_>,
) -> Result<Ended, Failure> {
    let name = args.plan.name();
    let grid = Grid::product(&args.sweep);
    let (document, tables) = match &args.points {
        Some(path) => (in_folder(args, path, plan, grid, (seeds, shifts), watch)?, None),
        None => in_memory(args, plan, &grid, (seeds, shifts), watch)?,
    };
    match args.json {
        true => println!("{}", json(&document)),
        false => print!("{}", document.text()),
    }
    let html = args.html.as_ref();
    let html = html.map_or(Ok(()), |target| target.write(&document.page(&name)));
    tables.map_or(Ok(()), |tables| tables.finish()).and(html)?;
    document.ended().map_err(|Failure(why)| Failure(format!("{name}: {why}")))
}

/// The error of a sweep that cannot begin.
fn wrong(error: RunError) -> Failure {
    match error {
        RunError::Plan(error) => refused(error),
        RunError::Usage(why) => wrong_usage(why),
        RunError::Failed(failed, _) => Failure(failed.why),
    }
}

/// Runs a sweep in the folder of --points.
fn in_folder(
    args: &Args,
    path: &Path,
    plan: &Plan,
    grid: Grid,
    (seeds, shifts): (&Seeds, Option<&Shifts>),
    watch: &Watch<'_>,
) -> Result<SweepDocument, Failure> {
    let (file, settings) = args.plan.source();
    let job = Job::new((file, plan, settings), grid, seeds, shifts).map_err(wrong)?;
    let folder = Folder::create(path, job, &engines::machine())?;
    let worker = [std::env::current_exe()?.display().to_string(), "work".into()];
    let launch = Launch {
        folder: &folder,
        name: &args.plan.name(),
        timeout: args.point_timeout,
        worker: [&worker[..], &["--threads".into(), "1".into()]].concat(),
    };
    args.engine.run(&launch, watch)
}

/// Runs a sweep in memory. Returns its tables too.
fn in_memory(
    args: &Args,
    plan: &Plan,
    grid: &Grid,
    (seeds, shifts): (&Seeds, Option<&Shifts>),
    watch: &Watch<'_>,
) -> Result<(SweepDocument, Option<RunTables>), Failure> {
    let name = &args.plan.name();
    let mut sweep = Combinations::new(plan, grid, seeds, shifts).map_err(wrong)?;
    if sweep.record() {
        note(format_args!("{name}: a sweep writes none of the files of [record]"));
    }
    let text = &args.plan.text(plan);
    let tables = tables(args, text)?;
    let options = SweepOptions { name, text, tables: tables.as_ref() };
    Ok((sweep.run(&options, watch), tables))
}

/// The error of a run without results. Prints limits that may explain the error.
fn failed(args: &Args, planned: &Planned, error: RunError) -> Failure {
    match error {
        RunError::Plan(error) => refused(error),
        RunError::Usage(why) => wrong_usage(why),
        RunError::Failed(failed, document) => {
            if !failed.limits.is_empty() {
                eprint!("{}", planned.link_name(&limits::text(&failed.limits)));
            }
            if args.json {
                println!("{}", json(&document));
            }
            Failure(failed.why)
        }
    }
}

/// Prints a document. Returns whether all requirements are met.
fn shown(args: &Args, document: &SimReport) -> Ended {
    if args.json {
        println!("{}", json(document));
    } else {
        print!("{}", failures_in_red(&plan::run::text::text(document)));
    }
    document.ended()
}

/// Port and start of `--timeline`.
fn chosen(args: &Args, planned: &Planned) -> Option<Chosen> {
    let text = args.timeline.as_ref()?;
    let (port, from) = match text.split_once('@') {
        Some((port, from)) => (port, Some(span::time(from))),
        None => (text.as_str(), None),
    };
    let wrong = |why: String| wrong_usage(format!("--timeline {text}: {why}"));
    let from = from.map(|from| Instant::ZERO + from.unwrap_or_else(wrong));
    let wire =
        planned.wire(port).unwrap_or_else(|why| wrong_usage(format!("--timeline {text}: {why}")));
    Some(Chosen { wire, from })
}

/// Prints warnings before the simulation: overloaded classes, remarks on the plan, and limits that
/// closed gates exceed.
fn warn(name: &str, planned: &Planned, assumed: &Assumptions) {
    for sentence in planned.overload_sentences() {
        warning(format_args!("{name}: {}", red(&sentence)));
    }
    for remark in &planned.remarks {
        note(format_args!("{name}: {}", remark.sentence()));
    }
    for row in limits::flagged(&limits::planned_rows(&planned.config, assumed)) {
        warning(format_args!("{name}: {}", planned.link_name(&row.sentence())));
    }
}
