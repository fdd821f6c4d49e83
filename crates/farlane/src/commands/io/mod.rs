//! `farlane io`: load on live drives by the built-in initiator.

mod compare;
mod consent;
pub(super) mod document;
mod html;
mod options;
mod print;
mod target;

use super::{Failure, Outcome, json};
use crate::node::{NodeArgs, instance};
use crate::output::{assign_stdout, one_of, wrong_usage};
use crate::progress::Progress;
use crate::push_args::PushArgs;
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use clap::{ArgGroup, value_parser};
use columns::Targets;
use document::IoDocument;
use live::Stop;
use load::io::{End, LoadTarget, OnError, Request, Runner, Samples, Session, Settings, job_file};
use nvme::MAX_QUEUES;
use options::WorkArgs;
use report::span;
use report::target::Target;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use target::CompletionsOption;
use vfio_user::client::Doorbells;
use wire::Duration;

/// Put load on live drives, and measure and verify them
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("target").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
    farlane io --connect localhost --rw randread --iodepth 8 --runtime 10 --time_based\n  \
    farlane io --connect localhost --rw randrw --size 64m --verify --destructive\n  \
    farlane io --connect localhost jobs.fio --json --parquet samples.parquet\n  \
    farlane io --vfio-user /tmp/farlane/0/cntrl --completions polled --rw randread --runtime 10\n\n\
    Without --destructive, drives are only read. docs/io.md describes keys and job files.\n\
    Ctrl-C ends the run and prints the results so far.")]
pub struct Args {
    /// Job file of fio, instead of the options of the workload
    #[arg(value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Device or switch node: HOST[:PORT] or raw:INTERFACE,MAC. Repeatable: targets are compared
    #[arg(long, value_name = "ADDRESS", group = "target")]
    connect: Vec<String>,
    /// Socket of a vfio-user server, of farlane or another program. Repeatable, after targets of
    /// --connect
    #[arg(long, value_name = "SOCKET", group = "target")]
    vfio_user: Vec<PathBuf>,
    /// How to ring doorbells of --vfio-user: in a mapped page, by message, or auto (mapped if the
    /// server offers a page in memory)
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = one_of(Doorbells::ALL, Doorbells::name), requires = "vfio_user")]
    doorbells: Doorbells,
    /// How to find completions of --vfio-user
    #[arg(long, value_name = "METHOD", default_value = "msix", requires = "vfio_user")]
    completions: CompletionsOption,
    #[command(flatten)]
    push: PushArgs,
    /// Number of the drive, from 0. Required if several drives are behind --connect
    #[arg(long, value_name = "INDEX")]
    drive: Option<usize>,
    /// Allow writes, which destroy data of the drive
    #[arg(long)]
    destructive: bool,
    /// Do not ask before data are overwritten. Required with --destructive if there is no terminal
    #[arg(long, requires = "destructive")]
    yes: bool,
    /// What to do after an error or a lost link: stop the run, or continue and wait for the drive
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    on_error: OnErrorOption,
    /// Time to wait for a drive whose link is lost, with --on-error continue. A number alone is in
    /// seconds
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span::seconds)]
    reconnect: Duration,
    /// Time to wait for the node at the start, such as 500ms. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = span::seconds)]
    wait: Duration,
    /// Group of this host, 0 to 65535. A device of another group refuses this host; devices of
    /// group 0 accept any host
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// I/O queue pairs per connection of the link, as of `farlane device`. Each connection runs its jobs in
    /// a thread of its own. By default a link has one connection
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=i64::from(MAX_QUEUES)), requires = "connect", conflicts_with_all = ["gate", "trace", "csv", "parquet"])]
    queues_per_link: Option<u16>,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Write one line of CSV per transfer. FILE - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    csv: Option<Target>,
    /// Write one row of Apache Parquet per transfer, with the columns of --csv
    #[arg(long, value_name = "FILE")]
    parquet: Option<Target>,
    /// Write an HTML page with distributions and time series. FILE - is standard output, instead of
    /// the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
    // This field is last, because its heading in the help applies to all options after it.
    #[command(flatten)]
    work: WorkArgs,
}

/// The value of `--on-error`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum OnErrorOption {
    Stop,
    Continue,
}

impl From<OnErrorOption> for OnError {
    fn from(option: OnErrorOption) -> Self {
        match option {
            OnErrorOption::Stop => Self::Stop,
            OnErrorOption::Continue => Self::Continue,
        }
    }
}

impl Args {
    /// The settings of targets and of the end of a run. Fails as [`NodeArgs::settings`].
    fn settings(&self) -> Result<Settings, Failure> {
        // Without a node there is no line to gate.
        let node = match self.connect[..] {
            [] => self.node.ungated(),
            _ => self.node.settings()?,
        };
        Ok(Settings {
            on_error: self.on_error.into(),
            reconnect: self.reconnect,
            wait: self.wait,
            drive: self.drive,
            group: self.group,
            doorbells: self.doorbells,
            completions: self.completions.into(),
            push: self.push.settings(),
            queues_per_link: self.queues_per_link,
            node,
            trace: self.trace.target(),
        })
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let documents = [
        ("--csv", args.csv.as_ref()),
        ("--parquet", args.parquet.as_ref()),
        ("--html", args.html.as_ref()),
    ];
    assign_stdout(args.json, &documents);
    if args.queues_per_link.is_some() && matches!(args.on_error, OnErrorOption::Continue) {
        wrong_usage("--queues-per-link cannot be used with --on-error continue")
    }
    let request = request(args)?;
    consent::check(args, &request);
    let targets = args.targets()?;
    let samples =
        Samples::create(Targets { csv: args.csv.as_ref(), parquet: args.parquet.as_ref() })?;
    let stop = stop_on_signals()?;
    let settings = args.settings()?;
    let mut sessions = Vec::new();
    let ready = prepare((args, &settings), &request, &targets, &stop, &mut sessions);
    if let Err(refused) = ready {
        close(&settings, sessions)?;
        return Err(refused);
    }
    let mut document = IoDocument::new(&sessions, request.randseed.unwrap_or_else(instance));
    let end = work(&settings, &request, (&mut sessions, &stop), samples, &mut document);
    let closed = close(&settings, sessions);
    if args.json {
        println!("{}", json(&document));
    } else {
        print::text(&document);
    }
    let html = args.html.as_ref();
    let html = html.map_or(Ok(()), |target| target.write(&html::page(&document)));
    end.and(closed).and(html)?;
    verdict(args, &document)
}

/// Shuts all targets down. Fails with the first error.
fn close(settings: &Settings, sessions: Vec<Session>) -> Outcome {
    let closed: Vec<Outcome> = sessions.into_iter().map(|one| one.close(settings)).collect();
    closed.into_iter().collect()
}

/// Brings all targets up, checks that they support the request, and gets permission to write.
fn prepare(
    (args, settings): (&Args, &Settings),
    request: &Request,
    targets: &[LoadTarget],
    stop: &Stop,
    sessions: &mut Vec<Session>,
) -> Outcome {
    for target in targets {
        let console = &mut Progress::new();
        let session = Session::start(settings, request, target, (stop, console), sessions)?;
        sessions.push(session);
        let session = &sessions[sessions.len() - 1];
        request.sections.iter().try_for_each(|section| session.check(section))?;
        request.groups().try_for_each(|group| session.check_group(group))?;
    }
    consent::ask(args, sessions, request, stop)
}

/// The request of the options or of the job file. A mistake in an option ends the process. Fails
/// for a mistake in the job file; the error names the line.
fn request(args: &Args) -> Result<Request, Failure> {
    match (&args.jobs, args.work.any()) {
        (None, _) => Ok(args.work.request().unwrap_or_else(wrong_usage)),
        (Some(path), None) => job_file::read(path),
        (Some(path), Some(option)) => {
            let path = path.display();
            wrong_usage(format!(
                "--{option} cannot be used with the job file '{path}'; set {option} in the file"
            ))
        }
    }
}

/// Runs all groups of sections and adds their results to the document. Fails as [`Runner::run`].
fn work(
    settings: &Settings,
    request: &Request,
    (sessions, stop): (&mut [Session], &Stop),
    samples: Option<Samples>,
    document: &mut IoDocument,
) -> Outcome {
    let mut progress = Progress::new();
    let samples = samples.map(|samples| Arc::new(Mutex::new(samples)));
    let mut runner = Runner::new(settings, sessions, document.randseed, (stop, &mut progress));
    let end = runner.run(request, samples.as_ref(), |result| document.add(&result));
    let failed = match end {
        Ok(End::Done) => Ok(()),
        Ok(End::Interrupted) => {
            document.ended = "interrupted";
            Ok(())
        }
        Ok(End::Stopped(why)) => {
            (document.ended, document.why) = ("stopped", Some(why));
            Ok(())
        }
        Err(failure) => Err(failure),
    };
    progress.done();
    let samples = samples.and_then(Arc::into_inner).and_then(|samples| samples.into_inner().ok());
    let written = samples.map_or(Ok(()), |samples| samples.finish(&metadata(document)));
    failed.and(written)
}

/// The metadata of a file of samples.
fn metadata(document: &IoDocument) -> [(&'static str, String); 6] {
    let workload = document.sections.iter();
    let workload: Vec<_> = workload.map(|section| (&section.name, &section.workload)).collect();
    let targets = document.targets.iter();
    let targets: Vec<_> =
        targets.map(|target| (&target.name, &target.drive.serial_number)).collect();
    [
        ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("farlane.targets", serde_json::to_string(&targets).expect("plain keys")),
        ("farlane.randseed", document.randseed.to_string()),
        ("farlane.workload", serde_json::to_string(&workload).expect("plain keys")),
        ("farlane.clock", "monotonic, from the beginning of the first section".to_owned()),
        ("farlane.ended", document.ended.to_owned()),
    ]
}

/// Fails if the run stopped, or if transfers or data were wrong.
fn verdict(args: &Args, document: &IoDocument) -> Outcome {
    let (failed, wrong) = (document.failed(), document.mismatches());
    if let Some(why) = &document.why {
        return Err(Failure(format!("{why}; {failed} transfers failed")));
    }
    if wrong > 0 {
        return Err(Failure(format!("{wrong} reads returned other data than were written")));
    }
    match args.on_error {
        OnErrorOption::Stop if failed > 0 => Err(Failure(format!("{failed} transfers failed"))),
        _ => Ok(()),
    }
}
