//! The results as one self-contained page: table, distributions, data.

use super::BenchResults;
use super::print::{BenchDocument, BenchRun, us};
use crate::commands::{INTERRUPTED, finish_with_data};
use load::case::Case;
use load::testbed::Series;
use report::Align::{Left, Right};
use report::latency::Latency;
use report::{Column, Page, Table, distribution};

/// Formats the page.
pub fn page(results: &BenchResults, document: &BenchDocument) -> String {
    let mut page = Page::new("farlane bench");
    page.text(&format!(
        "{} Figures are medians over {} interleaved rounds on loopback, both ends on one machine.",
        document.floor.sentence(),
        document.runs.first().map_or(0, |run| run.rounds),
    ));
    if document.interrupted {
        page.warning(INTERRUPTED);
    }
    page.table(&Table::from_rows(&COLUMNS, &document.runs));
    distributions(&mut page, &super::CASES, &results.series);
    finish_with_data(page, "JSON, with percentiles", document)
}

/// Adds the latency distributions of each workload.
pub fn distributions(page: &mut Page, cases: &[Case], all: &[Series]) {
    page.section("Latency distributions");
    page.text(
        "Share of commands up to each latency, over all samples of all rounds. The slowest \
         0.1 % are beyond the right end.",
    );
    let figures = cases.iter().map(|case| {
        let series = all.iter().filter(|series| series.case == *case);
        let lines: Vec<(String, &Latency)> = series.map(|s| (name(s), &s.latency)).collect();
        let name = case.name();
        let plot = distribution(&format!("latency distribution of {name}"), &lines);
        (name, String::new(), plot.html())
    });
    page.figures(&figures.collect::<Vec<_>>());
}

fn name(series: &Series) -> String {
    format!("{}, MPS {}, push {}", series.path, series.mps, series.push)
}

const COLUMNS: [Column<BenchRun>; 15] = [
    ("path", Left, |run| run.path.to_owned()),
    ("MPS", Right, |run| run.mps.to_string()),
    ("push", Left, |run| run.push.to_owned()),
    ("workload", Left, |run| run.case.name()),
    ("IOPS", Right, |run| format!("{:.0}", run.iops)),
    ("min", Right, |run| format!("{:.0}", run.iops_min)),
    ("max", Right, |run| format!("{:.0}", run.iops_max)),
    ("MB/s", Right, |run| format!("{:.0}", run.bytes_per_s / 1e6)),
    ("p50 us", Right, |run| us(run.p50_ns)),
    ("p99 us", Right, |run| us(run.p99_ns)),
    ("floor round trips", Right, |run| format!("{:.2}", run.floor_round_trips)),
    ("of raw stream", Right, |run| format!("{:.0} %", run.floor_stream_share * 100.0)),
    ("with copies", Right, |run| format!("{:.0} %", run.floor_copied_stream_share * 100.0)),
    ("host CPU us", Right, |run| format!("{:.2}", run.host_cpu_ns_per_io / 1e3)),
    ("device CPU us", Right, |run| format!("{:.2}", run.device_cpu_ns_per_io / 1e3)),
];
