//! `farlane latency`: time-sensitive frames from a talker to a listener and back, live.

mod clocks;
mod compare;
mod document;
mod html;
mod lab;
mod listen;
mod options;
mod outbox;
mod overlay;
mod print;
mod ptp;
mod redirect;
mod samples;
mod setup;
mod stress;
mod talk;

use super::Outcome;
use document::Document;
use latency::Sample;
use options::Output;
use samples::Rows;

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
    Stress(stress::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.command {
        Command::Talk(args) => talk::run(args),
        Command::Listen(args) => listen::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Redirect(args) => redirect::run(args),
        Command::Stress(args) => stress::run(args),
    }
}

/// Prints and writes what was measured; `unwritten` are the frames without a row.
fn deliver(document: &Document, rows: Rows, unwritten: &[Sample], output: &Output) -> Outcome {
    if output.json {
        println!("{}", super::json(document));
    } else {
        print::text(document);
    }
    let rows = rows.finish(document, unwritten);
    let html = output.html.as_ref();
    let html = html.map_or(Ok(()), |target| target.write(&html::page(&[document])));
    rows.and(html)
}
