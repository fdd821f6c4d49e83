//! `farlane latency compare`: several runs side by side, such as idle and loaded.

use super::document::Document;
use super::{html, print};
use crate::output::assign_stdout;
use latency::Segment;
use report::Align::{Left, Right};
use report::target::Target;
use report::{Failure, Outcome, Table};
use std::path::{Path, PathBuf};

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
        args.files.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let documents: Vec<&Document> = documents.iter().collect();
    for (name, table) in tables(&documents) {
        println!("{name}, compared");
        println!("{}", table.text());
    }
    for document in &documents {
        let title = print::title(document);
        print::cautions(document).iter().for_each(|line| println!("{title}: {line}"));
        print::findings(document).iter().for_each(|line| println!("{title}: {line}"));
    }
    args.html.as_ref().map_or(Ok(()), |target| target.write(&html::page(&documents)))
}

fn read(path: &Path) -> Result<Document, Failure> {
    let about = |why: String| Failure(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| about(error.to_string()))?;
    let found: Document = serde_json::from_str(&text).map_err(|error| {
        about(format!("it is no document of `farlane latency talk` or `listen`: {error}"))
    })?;
    match found.schema {
        1 => Ok(found),
        other => Err(about(format!("schema {other}, and this program knows 1"))),
    }
}

/// What runs are called: by label or number, and by their end where that is not enough.
pub fn names(documents: &[&Document]) -> Vec<String> {
    let short = |of: &&Document| {
        if of.label.is_empty() { of.run.clone() } else { of.label.clone() }
    };
    let all: Vec<String> = documents.iter().map(short).collect();
    let name = |(document, name): (&&Document, &String)| {
        let is_one = all.iter().filter(|other| *other == name).count() == 1;
        if is_one { name.clone() } else { format!("{name} ({})", document.end) }
    };
    documents.iter().zip(&all).map(name).collect()
}

/// A table for each part of the way that a run has, with two rows a run.
pub fn tables(documents: &[&Document]) -> Vec<(String, Table)> {
    let names = Segment::ALL.map(Segment::name);
    let tables = names.into_iter().map(|name| (name.to_owned(), table(documents, name)));
    tables.filter_map(|(name, table)| Some((name, table?))).collect()
}

fn table(documents: &[&Document], segment: &str) -> Option<Table> {
    let figures =
        ["n", "min us", "mean", "sigma", "p50", "p99", "p99.9", "p99.99", "max", "in band"];
    let mut head = vec![("run", Left), ("range", Left)];
    head.extend(figures.map(|name| (name, Right)));
    let mut table = Table::new(&head);
    let mut is_empty = true;
    for (document, name) in documents.iter().zip(names(documents)) {
        let found = document.analysis.segments.iter().find(|of| of.segment == segment);
        let Some(found) = found else { continue };
        is_empty = false;
        for (range, of) in [("whole", &found.whole), ("stable", &found.stable)] {
            let times = [of.min_ns, of.mean_ns, of.sigma_ns as i64, of.p50_ns, of.p99_ns];
            let more = [of.p99_9_ns, of.p99_99_ns, of.max_ns];
            let mut row = vec![name.clone(), range.to_owned(), of.n.to_string()];
            row.extend(times.into_iter().chain(more).map(print::plain));
            row.push(of.in_band.map_or(String::new(), |n| print::share(n, of.n)));
            table.row(row);
        }
    }
    (!is_empty).then_some(table)
}
