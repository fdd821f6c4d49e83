//! Comparison of targets.

use super::document::{IoDocument, IoSection, IoTransfers};
use report::Align::{Left, Right};
use report::span::micros;
use report::{Column, Table};

/// Results of a section on a target and on the first target.
struct Row {
    target: String,
    all: IoTransfers,
    first: IoTransfers,
    cpu: f64,
    peer_cpu: Option<f64>,
}

/// Returns the name of a section, with the name of its target if there are several.
pub fn name(document: &IoDocument, section: &IoSection) -> String {
    match &document.targets[..] {
        [_] => section.name.clone(),
        targets => format!("{} on {}", section.name, targets[section.target].name),
    }
}

/// Returns a table for each section that ran on several targets, with its name.
pub fn tables(document: &IoDocument) -> Vec<(String, Table)> {
    let mut tables = Vec::new();
    // Results are sorted by section, then by target.
    for results in document.sections.chunk_by(|_, next| next.target > 0) {
        if let [first, _, ..] = results {
            let row = |result: &IoSection| Row {
                target: document.targets[result.target].name.clone(),
                all: result.all.clone(),
                first: first.all.clone(),
                cpu: result.host_cpu_ns_per_io,
                peer_cpu: result.peer_cpu_ns_per_io,
            };
            let rows: Vec<Row> = results.iter().map(row).collect();
            tables.push((first.name.clone(), Table::from_rows(&COLUMNS, &rows)));
        }
    }
    tables
}

/// Returns the value divided by the first target's value.
fn ratio(value: f64, first: f64) -> String {
    if first > 0.0 { format!("{:.2}", value / first) } else { String::new() }
}

fn cpu(ns: Option<f64>) -> String {
    ns.map_or_else(|| "not seen".to_owned(), |ns| format!("{:.2}", ns / 1e3))
}

const COLUMNS: [Column<Row>; 9] = [
    ("target", Left, |row| row.target.clone()),
    ("IOPS", Right, |row| format!("{:.0}", row.all.iops)),
    ("ratio", Right, |row| ratio(row.all.iops, row.first.iops)),
    ("mean us", Right, |row| micros(row.all.mean_ns)),
    ("ratio", Right, |row| ratio(row.all.mean_ns as f64, row.first.mean_ns as f64)),
    ("p50", Right, |row| micros(row.all.p50_ns)),
    ("p99", Right, |row| micros(row.all.p99_ns)),
    ("CPU us", Right, |row| cpu(Some(row.cpu))),
    ("other side", Right, |row| cpu(row.peer_cpu)),
];
