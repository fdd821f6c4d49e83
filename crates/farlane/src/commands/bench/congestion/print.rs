//! The table.

use super::Run;

const HEAD: [&str; 12] = [
    "scenario",
    "control",
    "flows",
    "Gb/s",
    "of line",
    "Jain",
    "back after",
    "wait p99",
    "longest",
    "dropped",
    "again",
    "command p50/p99",
];

/// As Markdown, so that documents have it as it is printed.
pub fn table(runs: &[Run]) -> String {
    let some = |value: Option<f64>, unit: &str| match value {
        Some(value) => format!("{value}{unit}"),
        None => String::new(),
    };
    let row = |run: &Run| -> [String; 12] {
        let command = match (run.command_p50_us, run.command_p99_us) {
            (Some(p50), Some(p99)) => format!("{p50}/{p99} us"),
            _ => String::new(),
        };
        [
            run.what.clone(),
            run.congestion.clone(),
            run.flows.to_string(),
            format!("{:.2}", run.bits_per_s as f64 / 1e9),
            some(run.utilisation_percent, " %"),
            some(run.jain, ""),
            some(run.back_us, " us"),
            format!("{:.1} us", run.wait_p99_us),
            format!("{:.1} us", run.wait_max_us),
            run.dropped.to_string(),
            run.retransmitted.to_string(),
            command,
        ]
    };
    let rows: Vec<[String; 12]> = runs.iter().map(row).collect();
    let head = HEAD.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |row: &[String; 12]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            // Words on the left, numbers on the right.
            if column < 2 { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") }
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = widths.iter().enumerate().map(|(column, width)| {
        let dashes = "-".repeat(width - 1);
        if column < 2 { format!(" {dashes}- |") } else { format!(" {dashes}: |") }
    });
    let mut out = line(&head);
    out += &format!("|{}\n", rule.collect::<String>());
    rows.iter().for_each(|row| out += &line(row));
    out
}
