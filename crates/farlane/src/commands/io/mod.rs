//! `farlane io`: the built-in initiator on a live drive.

mod attach;
mod consent;
mod document;
mod html;
mod job_file;
mod options;
mod print;
mod record;
mod run;
mod samples;
mod session;

use super::{Failure, Outcome, json};
use crate::node::{NodeArgs, instance};
use crate::output::assign_stdout;
use crate::progress::Progress;
use crate::trace_args::TraceArgs;
use document::Document;
use options::{Request, WorkArgs};
use record::Recorder;
use report::latency::Latency;
use report::span;
use report::target::Target;
use run::{End, Runner};
use samples::Samples;
use session::Session;
use std::path::PathBuf;
use wire::Duration;

/// Put load on a live drive, measure and verify it
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane io --connect localhost --rw randread --iodepth 8 --runtime 10\n  \
    farlane io --connect localhost --rw randrw --size 64m --verify --destructive\n  \
    farlane io --connect localhost jobs.fio --json --parquet samples.parquet\n\n\
    Without --destructive it only reads. docs/io.md describes keys and job files.\n\
    Ctrl-C ends the run in order and prints what was measured.")]
pub struct Args {
    /// A job file of fio, in place of the options of the workload
    #[arg(value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// The device or switch node: HOST[:PORT], or raw:INTERFACE,MAC for raw Ethernet
    #[arg(long, value_name = "ADDR")]
    connect: String,
    /// Which drive, from 0, if several are behind a switch node
    #[arg(long, value_name = "N")]
    drive: Option<usize>,
    /// Allow writes: they destroy what the drive holds
    #[arg(long)]
    destructive: bool,
    /// Do not ask before anything is overwritten
    #[arg(long, requires = "destructive")]
    yes: bool,
    /// After an error or with a lost link: stop, or continue and wait for the drive
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_error: OnError,
    /// How long to wait for a drive whose link is lost, with --on-error continue;
    /// a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span::seconds)]
    reconnect: Duration,
    /// How long to wait for the node at the start; a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::seconds)]
    wait: Duration,
    /// The group that this host belongs to; `farlane move` gives a device to another
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// One JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Also write a line of CSV a transfer; with - to standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    csv: Option<Target>,
    /// Also write a row a transfer in Apache Parquet, with the columns of --csv
    #[arg(long, value_name = "FILE")]
    parquet: Option<Target>,
    /// Also write a self-contained page with the distributions and the course along time; with - to
    /// standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
    // Last: its heading in the help is that of all options behind.
    #[command(flatten)]
    work: WorkArgs,
}

/// What to do after an error.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum OnError {
    Stop,
    Continue,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let documents = [
        ("--csv", args.csv.as_ref()),
        ("--parquet", args.parquet.as_ref()),
        ("--html", args.html.as_ref()),
    ];
    assign_stdout(args.json, &documents)?;
    let request = request(args)?;
    consent::check(args, &request)?;
    let samples = Samples::create(args)?;
    let mut session = Session::start(args, &request)?;
    let fits = request.sections.iter().try_for_each(|section| session.check(section));
    if let Err(refused) = fits.and_then(|()| consent::ask(args, &session, &request)) {
        session.close(args)?;
        return Err(refused);
    }
    let mut document = Document::new(&session, request.randseed.unwrap_or_else(instance));
    let mut latencies = Vec::new();
    let end = work(args, &request, &mut session, samples, (&mut document, &mut latencies));
    let closed = session.close(args);
    if args.json {
        println!("{}", json(&document));
    } else {
        print::text(&document);
    }
    let html = args
        .html
        .as_ref()
        .map_or(Ok(()), |target| target.write(&html::page(&document, &latencies)));
    end.and(closed).and(html)?;
    verdict(args, &document)
}

/// What was asked for. The error names an option or a line.
fn request(args: &Args) -> Result<Request, Failure> {
    match (&args.jobs, args.work.any()) {
        (None, _) => args.work.request(),
        (Some(path), None) => job_file::read(path),
        (Some(path), Some(option)) => {
            let path = path.display();
            Err(Failure(format!("--{option} stands beside the job file {path}: put it there")))
        }
    }
}

/// Runs all sections into the document, and the latencies of each. Fails if a section cannot begin or the machine breaks down.
fn work(
    args: &Args,
    request: &Request,
    session: &mut Session,
    mut samples: Option<Samples>,
    (document, latencies): (&mut Document, &mut Vec<Latency>),
) -> Outcome {
    let epoch = session.rig.machine.clock().now();
    let seed = document.randseed;
    let (progress, written) = (Progress::new(), Vec::new());
    let mut runner = Runner { args, session, seed, written, progress };
    let mut failed = Ok(());
    for section in &request.sections {
        let mut recorder = Recorder::new(epoch, &section.name, samples.take());
        let end = runner.run(section, &mut recorder);
        document.add(section, &recorder);
        latencies.push(recorder.all().latency);
        samples = recorder.samples.take();
        match end {
            Ok(End::Done) => continue,
            Ok(End::Interrupted) => document.ended = "interrupted",
            Ok(End::Stopped(why)) => (document.ended, document.why) = ("stopped", Some(why)),
            Err(failure) => failed = Err(failure),
        }
        break;
    }
    runner.progress.done();
    let written = samples.map_or(Ok(()), |samples| samples.finish(args, document));
    failed.and(written)
}

/// Whether the run did what was asked.
fn verdict(args: &Args, document: &Document) -> Outcome {
    let (failed, wrong) = (document.failed(), document.mismatches());
    if let Some(why) = &document.why {
        return Err(Failure(format!("{why}; failed: {failed}")));
    }
    if wrong > 0 {
        return Err(Failure(format!("{wrong} reads returned other data than were written")));
    }
    match args.on_error {
        OnError::Stop if failed > 0 => Err(Failure(format!("failed: {failed}"))),
        _ => Ok(()),
    }
}
