//! The table.

use super::Run;
use report::Align::{Left, Right};
use report::{Column, Table};

const COLUMNS: [Column<Run>; 12] = [
    ("scenario", Left, |run| run.what.clone()),
    ("control", Left, |run| run.congestion.clone()),
    ("flows", Right, |run| run.flows.to_string()),
    ("Gb/s", Right, |run| format!("{:.2}", run.bits_per_s as f64 / 1e9)),
    ("of line", Right, |run| some(run.utilisation_percent, " %")),
    ("Jain", Right, |run| some(run.jain, "")),
    ("back after", Right, |run| some(run.back_us, " us")),
    ("wait p99", Right, |run| format!("{:.1} us", run.wait_p99_us)),
    ("longest", Right, |run| format!("{:.1} us", run.wait_max_us)),
    ("dropped", Right, |run| run.dropped.to_string()),
    ("again", Right, |run| run.retransmitted.to_string()),
    ("command p50/p99", Right, |run| match (run.command_p50_us, run.command_p99_us) {
        (Some(p50), Some(p99)) => format!("{p50}/{p99} us"),
        _ => String::new(),
    }),
];

fn some(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(String::new, |value| format!("{value}{unit}"))
}

/// As Markdown, so that documents have it as it is printed.
pub fn table(runs: &[Run]) -> String {
    Table::of(&COLUMNS, runs).markdown()
}
