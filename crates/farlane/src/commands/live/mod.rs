//! `farlane live`: runs a plan on live nodes.

mod node;

use super::{Ended, Failure, json};
use crate::key_args::KeyArgs;
use crate::namespace::Namespace;
use crate::node::waiting;
use crate::output::{assign_stdout, failures_in_red, file_only, note, warning, wrong_usage};
use crate::plan_args::{PlanArgs, TableArgs, built};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use load::{TraceFile, TraceTarget};
use plan::Planned;
use plan::run::LiveResults;
use plan::run::tables::{RowOrigin, TableFolders};
use report::span;
use report::target::Target;
use rig::LiveOptions;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use storage::media::Backing;
use wire::Duration;

/// Run a plan on live nodes: all on this machine, or one node of it
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane live plans/live.toml --local\n  \
    farlane live plans/live.toml --local --set host.push=off --html live.html\n  \
    farlane live plans/live.toml --node device --address drive=0.0.0.0 --insecure\n  \
    farlane live plans/live.toml --node host --address drive=192.0.2.7 --insecure\n\n\
    --local needs root. Its namespaces vanish with the command. docs/guide/compare.md compares\n\
    live runs with `farlane sim`.")]
pub struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Run every node of the plan in network namespaces of this machine
    #[arg(long, required_unless_present = "node", conflicts_with = "node")]
    local: bool,
    /// Run only this host or node of the plan, in the network of this machine
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Address of a drive's node, or of a switch node as NODE@HOST, at which the node listens and to
    /// which its host or switch node connects; repeatable. 127.0.0.1 if there is only one
    #[arg(long, value_name = "NAME=ADDRESS", requires = "node")]
    address: Vec<String>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Namespace of a drive of the plan, as with `farlane device --namespace`; repeatable. Without
    /// it, the drive is in RAM
    #[arg(long, value_name = "DRIVE:NAMESPACE")]
    namespace: Vec<DriveNamespace>,
    /// Allow writes to files and block devices of --namespace: hosts overwrite the part that the
    /// workload uses
    #[arg(long, requires = "namespace")]
    destructive: bool,
    /// Compare what is read with what was written
    #[arg(long)]
    verify: bool,
    /// Poll for input this long before sleeping: lower latency, higher CPU load. A number alone is
    /// in microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    spin: Duration,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Record TLPs and frames of every node for `farlane trace`, into FILE, FILE.device0,
    /// FILE.switch0, FILE.host1 and so on
    #[arg(long, value_name = "FILE", value_parser = file_only)]
    trace: Option<PathBuf>,
    #[command(flatten)]
    tables: TableArgs,
    /// Write an HTML page, the same as of `farlane sim`. Records traces, which slows the nodes
    /// down. FILE - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// A value of `--namespace`.
#[derive(Clone, Debug)]
struct DriveNamespace {
    drive: String,
    namespace: Namespace,
}

impl FromStr for DriveNamespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (drive, namespace) =
            text.split_once(':').ok_or("expected DRIVE:NAMESPACE, such as store:file=disk.img")?;
        Ok(Self { drive: drive.into(), namespace: namespace.parse()? })
    }
}

/// Runs the command. Returns whether the plan's requirements are met.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    assign_stdout(args.json, &[("--html", args.html.as_ref())]);
    let plan = args.plan.read()?;
    let planned = built(&plan)?;
    check_effects(args, &planned);
    let name = args.plan.name();
    if let Some(why) = rig::refusal(&planned) {
        return Err(Failure(format!("{name}: the plan cannot run live: {why}")));
    }
    let differences = rig::differences(&planned);
    for difference in &differences {
        note(format_args!("{name}: only simulated: {difference}"));
    }
    let folder = args.html.as_ref().map(|_| tempfile::tempdir()).transpose()?;
    let hidden = folder.as_ref().map(|folder| folder.path().join("run.trace"));
    let trace = args.trace.clone().or(hidden);
    // Without these the commands are only counted.
    let lists = args.html.is_some()
        || args.tables.folders().all().next().is_some()
        || !planned.requirements.is_empty();
    let options = LiveOptions {
        waiting: waiting(args.spin),
        verify: args.verify,
        list: lists,
        backing: backing(args, &planned),
        credentials: args.keys.credentials()?,
        trace: TraceTarget::new(trace.clone().map(TraceFile::new), |text| warning(text)),
    };
    let text = args.plan.text(&plan);
    let tables = args.tables.folders().begin(&text)?;
    let stop = stop_on_signals()?;
    let console = (&mut Progress::new(), &stop);
    let mut run = match &args.node {
        None => rig::run(&planned, &options, (console.0, console.1))?,
        Some(node) => match node::run(args, (node, &planned), &options, (console.0, console.1))? {
            Some(run) => run,
            None => return Ok(Ended::Done),
        },
    };
    let report = run.report(&planned);
    let only = |text| format!("only simulated: {text}");
    let failed = run.failure.as_ref().map(|why| format!("failed: {why}"));
    let measurements = LiveResults {
        report,
        remarks: differences.into_iter().map(only).chain(failed).collect(),
        traces: trace.map_or_else(Vec::new, |trace| traces(&planned, &trace)),
        interrupted: run.interrupted,
        commands: run.take_commands(),
    };
    let mut document = measurements.document(&planned, &name);
    document.plan_text.clone_from(&text);
    match args.json {
        true => println!("{}", json(&document)),
        false => print!("{}", failures_in_red(&plan::run::text::text(&document))),
    }
    let tabled = tables.map_or(Ok(()), |mut tables| {
        let origin = RowOrigin { world: document.world, run: 0, seed: document.seed, set: "" };
        tables.commands(&origin, &planned, &measurements.commands);
        tables.document(&origin, &document);
        tables.finish(&text)
    });
    let paged = args
        .html
        .as_ref()
        .map_or(Ok(()), |target| target.write(&measurements.page(&planned, &name, &text)?));
    let wrong: u64 = document.hosts.iter().map(|host| host.mismatches).sum();
    match wrong {
        0 => {
            let whole = run.failure.map_or(Ok(()), Err);
            tabled.and(paged).and(whole).map(|()| document.ended())
        }
        wrong => Err(Failure(format!("{wrong} reads returned other data than were written"))),
    }
}

/// Ends the process if an option has no effect on the node of `--node`.
fn check_effects(args: &Args, planned: &Planned) {
    let TableFolders { csv, parquet, .. } = args.tables.folders();
    let of_hosts = [
        ("--verify", args.verify),
        ("--json", args.json),
        ("--html", args.html.is_some()),
        ("--csv", csv.is_some()),
        ("--parquet", parquet.is_some()),
    ];
    let of_drives = [("--namespace", !args.namespace.is_empty())];
    let (others, place) = match &args.node {
        Some(name) if planned.hosts.contains(name) => (&of_drives[..], "nodes with drives"),
        Some(name) if planned.stations.contains(name) => (&of_hosts[..], "hosts"),
        _ => return,
    };
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        wrong_usage(format!("{option} applies only to {place}"))
    }
}

/// The namespaces of `--namespace` by drive. An unknown drive ends the process.
fn backing(args: &Args, planned: &Planned) -> BTreeMap<String, Vec<Backing>> {
    let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for DriveNamespace { drive, namespace } in &args.namespace {
        let drives = planned.tunnel_links().filter(|link| link.link.drive.is_some());
        let known: Vec<&str> = drives.map(|link| link.name).collect();
        if !known.contains(&drive.as_str()) {
            let known = known.join(", ");
            wrong_usage(format!("--namespace {drive}: no such drive: expected one of {known}"))
        }
        let backing = namespace.backing(false);
        if matches!(backing, Backing::File { .. }) && !args.destructive {
            wrong_usage(format!("--namespace {drive}: hosts overwrite the file; add --destructive"))
        }
        all.entry(drive.clone()).or_default().push(backing);
    }
    all
}

/// The trace files of each host's nodes.
fn traces(planned: &Planned, first: &Path) -> Vec<Vec<PathBuf>> {
    (0..planned.hosts.len()).map(|host| rig::traces(planned, host, first)).collect()
}
