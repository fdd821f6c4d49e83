//! `farlane latency compare`: compares runs, such as idle and loaded.

use crate::output::assign_stdout;
use lab::view;
use latency_linux::Document;
use report::Outcome;
use report::target::Target;
use std::path::PathBuf;

/// Compare runs, such as idle and loaded
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Documents of `talk --json` and `listen --json`
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// Write an HTML page with time series and histograms. FILE - is standard output, instead of
    /// the text
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
