//! Comparison of several runs, such as idle and loaded.

use super::text as single;
use latency::Segment;
use latency_linux::Document;
use report::Align::{Left, Right};
use report::{Failure, Table};
use std::path::Path;

/// Formats tables of the runs, warnings and findings.
pub fn text(documents: &[&Document]) -> String {
    let mut text = String::new();
    for (name, table) in tables(documents) {
        text += &format!("{name}, compared\n{}\n", table.text());
    }
    for document in documents {
        let title = single::title(document);
        let lines = single::cautions(document).into_iter().chain(single::findings(document));
        lines.for_each(|line| text += &format!("{title}: {line}\n"));
    }
    text
}

/// Reads a JSON document of a talker or a listener.
///
/// # Errors
/// A sentence that names the file.
pub fn read(path: &Path) -> Result<Document, Failure> {
    let about = |why: String| Failure(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| about(error.to_string()))?;
    let found: Document = serde_json::from_str(&text).map_err(|error| {
        about(format!("not a document of `farlane latency talk` or `listen`: {error}"))
    })?;
    match found.schema {
        1 => Ok(found),
        other => Err(about(format!("unsupported schema {other}: expected 1"))),
    }
}

/// Returns the names of runs: label or number, and also talker or listener if names are equal.
pub fn names(documents: &[&Document]) -> Vec<String> {
    let short = |document: &&Document| {
        if document.label.is_empty() { document.run.clone() } else { document.label.clone() }
    };
    let all: Vec<String> = documents.iter().map(short).collect();
    let name = |(document, name): (&&Document, &String)| {
        let is_one = all.iter().filter(|other| *other == name).count() == 1;
        if is_one { name.clone() } else { format!("{name} ({})", document.end) }
    };
    documents.iter().zip(&all).map(name).collect()
}

/// Returns one table per segment of a run, with two rows per run.
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
        let found = document.analysis.segments.iter().find(|part| part.segment == segment);
        let Some(found) = found else { continue };
        is_empty = false;
        for (range, figures) in [("whole", &found.whole), ("stable", &found.stable)] {
            let times = [
                figures.min_ns,
                figures.mean_ns,
                figures.sigma_ns as i64,
                figures.p50_ns,
                figures.p99_ns,
            ];
            let more = [figures.p99_9_ns, figures.p99_99_ns, figures.max_ns];
            let mut row = vec![name.clone(), range.to_owned(), figures.n.to_string()];
            row.extend(times.into_iter().chain(more).map(single::plain));
            row.push(figures.in_band.map_or(String::new(), |n| single::share(n, figures.n)));
            table.row(row);
        }
    }
    (!is_empty).then_some(table)
}
