//! The results as one self-contained page: table, every round, distributions, data.

use super::super::html::distributions;
use super::PathPair;
use super::print::{EfficiencyDocument, consistency, cpu_ns, heading, ratio, rows};
use crate::commands::{INTERRUPTED, finish_with_data};
use load::testbed::Round;
use report::{Axis, DotRow, Dots, Page, Scale, time};

/// A figure of a round: its name, its value, and the format of its values.
type Figure = (&'static str, fn(&Round) -> f64, fn(f64) -> String);

const FIGURES: [Figure; 5] = [
    ("IOPS", |round| round.iops, |iops| format!("{iops:.0}")),
    ("CPU time per command, both sides", cpu_ns, time),
    ("Mean latency", |round| round.mean_ns as f64, time),
    ("99th percentile of the latency", |round| round.p99_ns as f64, time),
    ("Consistency: p99.9 / p50", consistency, |ratio| format!("{ratio:.1}")),
];

/// Formats the page.
pub fn page(pairs: &[PathPair], document: &EfficiencyDocument) -> String {
    let mut page = Page::new("farlane bench efficiency");
    page.text(&format!("{}. Both nodes run on one machine.", heading(document)));
    if document.interrupted {
        page.warning(INTERRUPTED);
    }
    page.table(&rows(document));
    page.section("Rounds");
    page.text(
        "Each mark is a round. At the right: tunnelled / direct, median over pairs of runs that \
         follow each other, with minimum and maximum.",
    );
    page.figures(&FIGURES.map(|figure| rounds(figure, pairs)));
    let cases: Vec<_> = pairs.iter().map(|[direct, _]| direct.case).collect();
    distributions(&mut page, &cases, pairs.as_flattened());
    finish_with_data(page, "JSON, with the spread of every figure", document)
}

/// Draws a figure of every round, by workload.
fn rounds((name, figure, format): Figure, pairs: &[PathPair]) -> (String, String, String) {
    let row = |pair: &PathPair| {
        let of_pair = ratio(pair, figure);
        DotRow {
            name: pair[0].case.name(),
            note: format!("{:.2} ({:.2}-{:.2})", of_pair.median, of_pair.min, of_pair.max),
            bad: false,
            values: pair.each_ref().map(|path| path.rounds.iter().map(figure).collect()).into(),
            interval: None,
        }
    };
    let all = || pairs.as_flattened().iter().flat_map(|series| series.rounds.iter().map(figure));
    let (least, most) = all().fold((f64::MAX, 1.0), |(least, most): (f64, f64), value| {
        (least.min(value), most.max(value))
    });
    let least = least.clamp(1e-3, most);
    let range = (least * 0.95, most * 1.05);
    let dots = Dots {
        title: name.to_owned(),
        axis: Axis::new("logarithmic", Scale::Log, format, range),
        series: vec!["direct".to_owned(), "tunnelled".to_owned()],
        rows: pairs.iter().map(row).collect(),
        limit: None,
    };
    (name.to_owned(), String::new(), dots.html())
}
