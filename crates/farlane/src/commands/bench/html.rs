//! The results as one self-contained page: table, distributions, data.

use super::case::Path;
use super::print::{Document, Run};
use super::{Results, Series};
use crate::analyse::latency::Latency;
use crate::report::{Align, Page, Table, distribution};

/// The page.
pub fn page(results: &Results, document: &Document) -> String {
    let mut page = Page::new("farlane bench");
    let floor = &document.floor;
    page.text(&format!(
        "Raw floor of the same run ({}): 64-byte TCP round trip, median {:.2} µs; one-way TCP \
         stream {:.0} MB/s. Figures are medians over {} interleaved rounds on loopback, both ends \
         on one machine.",
        floor.wait,
        floor.tcp_pingpong_64b_p50_ns as f64 / 1e3,
        floor.tcp_stream_bytes_per_s as f64 / 1e6,
        document.runs.first().map_or(0, |run| run.rounds),
    ));
    page.table(&table(&document.runs, results));
    page.section("Latency distributions");
    page.text(
        "Share of commands that took at most so long; every sample of every round counts. The \
         slowest one in a thousand is beyond the right end.",
    );
    let figures = super::CASES.into_iter().map(|case| {
        let series: Vec<&Series> = results.series.iter().filter(|s| s.case == case).collect();
        let lines: Vec<(String, &Latency)> = series.iter().map(|s| (name(s), &s.latency)).collect();
        let name = case.name();
        let plot = distribution(&format!("latency distribution of {name}"), &lines);
        (name, String::new(), plot.html())
    });
    page.figures(&figures.collect::<Vec<_>>());
    page.section("Data");
    let text = crate::commands::json(document);
    page.details("JSON, with percentiles", &text);
    page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")))
}

fn name(series: &Series) -> String {
    let path = if series.path == Path::Direct { "direct" } else { "tunnelled" };
    format!("{path}, MPS {}", series.mps)
}

fn table(runs: &[Run], results: &Results) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("path", Left),
        ("MPS", Right),
        ("workload", Left),
        ("IOPS", Right),
        ("min", Right),
        ("max", Right),
        ("MB/s", Right),
        ("p50 µs", Right),
        ("p99 µs", Right),
        ("floor round trips", Right),
        ("of raw stream", Right),
        ("host CPU µs", Right),
        ("device CPU µs", Right),
    ]);
    for (run, series) in runs.iter().zip(&results.series) {
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        table.row(vec![
            run.path.to_owned(),
            run.mps.to_string(),
            series.case.name(),
            format!("{:.0}", run.iops),
            format!("{:.0}", run.iops_min),
            format!("{:.0}", run.iops_max),
            format!("{:.0}", run.bytes_per_s / 1e6),
            us(run.p50_ns as f64),
            us(run.p99_ns as f64),
            format!("{:.2}", run.floor_round_trips),
            format!("{:.0} %", run.floor_stream_share * 100.0),
            us(run.host_cpu_ns_per_io),
            us(run.device_cpu_ns_per_io),
        ]);
    }
    table
}
