//! Requirements and streams.

use super::{StreamRow, Subject};
use crate::simulate::limits::signed_time;
use crate::simulate::{flows, handled, requirements};
use report::{Align, Axis, Column, Page, Plot, Scale, Table, time};

/// Adds the requirements of the plan, and overloads.
pub(super) fn requirements(page: &mut Page, subject: &Subject<'_>) {
    for sentence in subject.words.overloads {
        page.warning(sentence);
    }
    for sentence in subject.words.remarks {
        page.text(&format!("Remark: {sentence}."));
    }
    if subject.requirements.is_empty() {
        return;
    }
    page.section("Requirements");
    page.text(
        "The largest observed values of this run; another run may show larger ones. A frame that \
         is lost, or still on its way after its deadline, is late.",
    );
    let mut rows = subject.requirements.to_vec();
    rows.sort_by_key(|row| row.holds);
    page.table(&requirements::table(&rows));
}

/// Adds the largest values of other phases.
pub(super) fn phases(page: &mut Page, subject: &Subject<'_>) {
    let Some(phases) = subject.words.phases else { return };
    page.section("Phases");
    if !phases.met {
        page.warning("A requirement is missed in one of the tried phases.");
    }
    page.text(&phases.text);
    page.table(&phases.latencies);
    phases.requirements.iter().for_each(|table| page.table(table));
    page.preformatted(&phases.trials);
}

/// Adds the results of each stream.
pub(super) fn section(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, words, .. } = subject;
    if report.streams.is_empty() {
        return;
    }
    page.section("Streams");
    page.text(
        "From the application of the sender to that of the receiver. Backlog is the most that was \
         on the way at once. Streams with the least margin to their deadline come first, then \
         those with the longest latency.",
    );
    let rows = words.stream_rows(subject);
    page.html("<div id=\"streams\">\n");
    page.table(&table(&rows));
    page.html("</div>\n");
}

/// Adds the results of flows over TCP. The plot has the first [`LINES`] of them.
pub(super) fn flows(page: &mut Page, subject: &Subject<'_>) {
    /// As many as the plot can show apart.
    const LINES: usize = 6;
    let rows = flows::rows(subject.report, subject.words.named);
    if rows.is_empty() {
        return;
    }
    page.section("Flows over TCP");
    page.table(&flows::table(&rows));
    let lines: Vec<_> = rows.iter().take(LINES).collect();
    let points = || lines.iter().flat_map(|row| row.progress());
    let most = points()
        .fold((1e-9, 1.0), |most: (f64, f64), point| (most.0.max(point.0), most.1.max(point.1)));
    let x =
        Axis::new("time since its start, s", Scale::Linear, |s| format!("{s:.3}"), (0.0, most.0));
    let y = Axis::new("goodput, Mb/s", Scale::Linear, |rate| format!("{rate:.0}"), (0.0, most.1));
    let mut plot = Plot::new("Goodput of flows along time", x, y);
    lines.iter().for_each(|row| plot.line(&row.name, row.progress()));
    page.figures(&[("Goodput along time".to_owned(), String::new(), plot.html())]);
}

/// Adds elimination and policing.
pub(super) fn handled(page: &mut Page, subject: &Subject<'_>) {
    let Subject { report, words, .. } = subject;
    let (eliminations, policings) = handled::rows(report, words.identified, words.named);
    if !eliminations.is_empty() {
        page.section("Replication and elimination");
        page.text(
            "Copies are frames that bridges sent to more than one port. A recovery function passes \
             the first copy of each number. Rogue frames have a number too far from the history and \
             are discarded. Latent errors: copies are missing although nothing is lost.",
        );
        page.table(&handled::eliminations(&eliminations));
        if report.retransmitted > 0 {
            page.text(&format!(
                "Stations sent {} TCP segments or raw frames with data again.",
                report.retransmitted
            ));
        }
    }
    if !policings.is_empty() {
        page.section("Filtering and policing");
        page.text("What bridges did with streams that they police, by filter.");
        page.table(&handled::policings(&policings));
    }
}

fn table(rows: &[StreamRow<'_>]) -> Table {
    use Align::{Left, Right};
    let columns: [Column<StreamRow<'_>>; 13] = [
        ("stream", Left, |row| row.name.clone()),
        ("margin", Right, |row| row.margin_ns.map_or("-".into(), margin)),
        ("sent", Right, |row| row.stream.sent.to_string()),
        ("arrived", Right, |row| row.own.arrived.to_string()),
        ("lost", Right, |row| row.own.lost.to_string()),
        ("min", Right, |row| span(row.latency.min_ns)),
        ("mean", Right, |row| span(row.latency.mean_ns)),
        ("median", Right, |row| span(row.latency.p50_ns)),
        ("99 %", Right, |row| span(row.latency.p99_ns)),
        ("99.9 %", Right, |row| span(row.latency.p99_9_ns)),
        ("max", Right, |row| span(row.latency.max_ns)),
        ("max − min", Right, |row| span(row.latency.max_ns - row.latency.min_ns)),
        ("backlog", Right, |row| format!("{} B", row.stream.backlog_bytes)),
    ];
    Table::from_rows(&columns, rows)
}

fn span(ns: u64) -> String {
    time(ns as f64)
}

fn margin(ns: i64) -> String {
    signed_time(i128::from(ns) * 1000)
}
