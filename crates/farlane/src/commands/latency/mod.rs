//! `farlane latency`: time-sensitive frames from a talker to a listener and back, live.

mod compare;
mod lab;
mod listen;
mod options;
mod redirect;
mod talk;

use super::Outcome;
use crate::output::warning;
use crate::signals::stop_on_signals;
use ::lab::view::{self, Files};
use latency_linux::{Operator, Run};
use live::Stop;
use options::ResultArgs;
use std::io;

/// Measure latencies of time-sensitive frames, up to the application and back
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

/// The operator at the terminal, who stops a measurement by a signal.
struct Terminal(Stop);

impl Terminal {
    /// Handles the signals. Fails as [`stop_on_signals`].
    fn new() -> io::Result<Self> {
        stop_on_signals().map(Self)
    }
}

impl Operator for Terminal {
    fn has_stopped(&self) -> bool {
        self.0.is_set()
    }

    fn warn(&self, text: &str) {
        warning(text);
    }

    fn inform(&self, text: &str) {
        eprintln!("{text}");
    }
}

/// Prints the results and writes the files.
fn deliver(run: &Run, files: Option<Files>, output: &ResultArgs) -> Outcome {
    let document = &run.document;
    if output.json {
        println!("{}", super::json(document));
    } else {
        print!("{}", view::text(document));
    }
    let rows = files.map_or(Ok(()), |files| files.finish(run));
    let html = output.html.as_ref();
    let html = html.map_or(Ok(()), |target| target.write(&view::page(&[document])));
    rows.and(html)
}
