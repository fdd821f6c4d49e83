//! `farlane latency compare`: several runs side by side, such as idle and loaded.

use crate::output::assign_stdout;
use lab::view;
use latency_linux::Document;
use report::Outcome;
use report::target::Target;
use std::path::PathBuf;

/// Show runs side by side, such as idle and loaded
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Documents that `talk --json` and `listen --json` printed
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// Also write one page with the time series and histograms of all; with - to standard output, in
    /// place of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    assign_stdout(false, &[("--html", args.html.as_ref())]);
    let documents: Vec<Document> =
        args.files.iter().map(|path| view::read(path)).collect::<Result<_, _>>()?;
    let documents: Vec<&Document> = documents.iter().collect();
    print!("{}", view::compared(&documents));
    args.html.as_ref().map_or(Ok(()), |target| target.write(&view::page(&documents)))
}
