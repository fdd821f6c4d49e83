//! The rows as text.

use super::{LimitVerdict, NEVER, Row};
use report::time;

/// Formats a time in picoseconds with its sign.
pub(in crate::simulate) fn signed_time(ps: i128) -> String {
    let sign = if ps < 0 { "-" } else { "" };
    format!("{sign}{}", time(ps.unsigned_abs() as f64 / 1000.0))
}

/// Returns the cells of a row: limit, observed, margin, factor, verdict, event.
pub(in crate::simulate) fn cells(row: &Row) -> [String; 6] {
    let mut cells = words(row);
    if row.planned {
        cells[1] = format!("planned {}", cells[1]);
    }
    cells
}

/// Returns the cells of a row as parts of a sentence.
pub(super) fn words(row: &Row) -> [String; 6] {
    let none = || "–".to_owned();
    let ns = |duration: wire::Duration| time(duration.as_ns() as f64);
    let limit = match row.latest {
        latest if latest == row.limit || latest == NEVER => ns(row.limit),
        latest => format!("{}–{}", ns(row.limit), ns(latest)),
    };
    let worst = match &row.worst {
        _ if row.endless => "for ever".to_owned(),
        Some(event) => ns(event.span),
        None => none(),
    };
    let margin = row.margin_ps().filter(|_| !row.endless).map_or_else(none, signed_time);
    let factor = row.factor().filter(|_| !row.endless);
    let factor = factor.map_or_else(none, |factor| match factor {
        factor if factor < 10.0 => format!("{factor:.2}"),
        factor => format!("{factor:.0}"),
    });
    let verdict = match row.verdict() {
        LimitVerdict::Holds => "holds",
        LimitVerdict::AtRisk => "AT RISK",
        LimitVerdict::Breaks => "BREAKS",
    };
    let event = match (&row.first, &row.worst) {
        (Some(first), _) => format!("first: {}", first.words()),
        (None, Some(worst)) => format!("none; longest {}", worst.words()),
        (None, None) => "none; nothing waited".to_owned(),
    };
    [limit, worst, margin, factor, verdict.to_owned(), event]
}

/// Formats a table for a terminal, one line per limit.
pub fn text(rows: &[Row]) -> String {
    let head = ["limit", "at", "observed", "margin", "factor", "", "beyond the limit"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let [limit, observed, margin, factor, verdict, event] = cells(row);
        [row.name.clone(), limit, observed, margin, factor, verdict, event]
    }));
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let pad = |(column, cell): (usize, &String)| match (column, widths[column]) {
        (1..=4, width) => format!("{cell:>width$}"),
        (_, width) => format!("{cell:<width$}"),
    };
    let line = |line: &[String; 7]| {
        let cells: Vec<String> = line.iter().enumerate().map(pad).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}
