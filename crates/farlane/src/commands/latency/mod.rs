//! `farlane latency`: time-sensitive frames from a talker to a listener and back, live.

mod compare;
mod lab;
mod listen;
mod options;
mod redirect;
mod talk;

use super::Outcome;
use crate::output::warning;
use crate::signals::Stop;
use ::lab::view::{self, rows};
use columns::{RowFiles, Targets};
use latency::Sample;
use latency_linux::{Operator, Rows, Run};
use options::Output;
use report::Failure;
use std::time;
use wire::Instant;

/// Measure the latency of time-sensitive frames, up to the application and back
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Talk(Box<talk::Args>),
    Listen(Box<listen::Args>),
    Compare(compare::Args),
    Lab(Box<lab::Args>),
    Redirect(redirect::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Talk(args) => talk::run(args),
        Command::Listen(args) => listen::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Redirect(args) => redirect::run(args),
    }
}

impl Operator for Stop {
    fn has_stopped(&self) -> bool {
        self.is_set()
    }

    fn warn(&self, text: &str) {
        warning(text);
    }

    fn inform(&self, text: &str) {
        eprintln!("{text}");
    }
}

/// The files of `--csv` and `--parquet`: a row a frame, while the run lasts.
struct Files {
    files: RowFiles,
    began: time::Instant,
}

impl Files {
    /// Begins the files that are wanted. Their writer has the CPUs and the class of this thread.
    fn create(output: &Output) -> Result<Option<Self>, Failure> {
        let targets = Targets { csv: output.csv.as_ref(), parquet: output.parquet.as_ref() };
        let files = RowFiles::create(targets, rows::COLUMNS)?;
        Ok(files.map(|files| Self { files, began: time::Instant::now() }))
    }
}

impl Rows for Files {
    fn is_free(&mut self) -> bool {
        self.files.is_free()
    }

    fn push(&mut self, sample: &Sample) {
        let at = Instant::from_ns(self.began.elapsed().as_nanos() as u64);
        self.files.push(at, &rows::row(sample));
    }
}

/// Prints and writes what was measured.
fn deliver(run: &Run, files: Option<Files>, output: &Output) -> Outcome {
    let document = &run.document;
    if output.json {
        println!("{}", super::json(document));
    } else {
        print!("{}", view::text(document));
    }
    let rows = files.map_or(Ok(()), |mut files| {
        run.unwritten.iter().for_each(|sample| files.push(sample));
        files.files.finish(&rows::metadata(document))
    });
    let html = output.html.as_ref();
    let html = html.map_or(Ok(()), |target| target.write(&view::page(&[document])));
    rows.and(html)
}
