//! The clock section of the page: offsets over time, errors of gate edges, measured latencies.

use super::{StreamRow, Subject};
use crate::simulate::clocks::{self, signed};
use report::Align::{Left, Right};
use report::{Axis, Page, Plot, Scale, Table, round_time, time};
use sim::network::{ClockReport, OffsetSample};
use wire::Instant;

/// Maximum number of points of a line. Beyond it, each point is the largest offset of several
/// samples.
const POINTS: usize = 400;
/// Maximum number of lines of a plot: the clocks with the largest errors.
const LINES: usize = 8;

/// Adds the section about clocks, if they were simulated.
pub(super) fn section(page: &mut Page, subject: &Subject<'_>) {
    let Some(time) = &subject.report.time_of_nodes else { return };
    page.section("Clocks");
    page.text(
        "How far each clock is ahead of the reference: the clock of the best grandmaster with \
         power, or of the last one. It is synchronised once it follows that clock and its servo has \
         estimated the frequency, and holds over, with its last frequency, when no time comes.",
    );
    let names = clocks::names(subject.config, subject.words.named);
    let all: Vec<_> = names.iter().zip(&time.clocks).collect();
    let synced = time.clocks.iter().filter_map(ClockReport::synced_from).max();
    let mut figures = vec![figure("Size of the offset, logarithmic", size_plot(&all))];
    let after = synced.filter(|from| time.clocks.iter().any(|c| has_two(c, *from)));
    if let Some(from) = after {
        figures.push(figure("Offset, after all were synchronised", offset_plot(&all, from)));
    }
    page.figures(&figures);
    let rows = clocks::clocks(subject.config, subject.report, subject.words.named);
    page.table(&clocks::clock_table(&rows));
    edges(page, subject);
    measured(page, subject);
}

fn figure(caption: &str, plot: Plot) -> (String, String, String) {
    (caption.to_owned(), String::new(), plot.html())
}

fn has_two(clock: &ClockReport, from: Instant) -> bool {
    clock.since(from).nth(1).is_some()
}

/// Returns the clocks with the largest errors, at most [`LINES`].
fn worst<'a>(
    all: &[(&'a String, &'a ClockReport)],
    from: Instant,
) -> Vec<(&'a String, &'a ClockReport)> {
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|(_, clock)| std::cmp::Reverse(clock.largest_since(from)));
    sorted.truncate(LINES);
    sorted
}

/// Returns times in seconds and offsets in nanoseconds. A point for several samples has the largest
/// of their offsets.
fn points(clock: &ClockReport, from: Instant) -> Vec<(f64, f64)> {
    let samples: Vec<_> = clock.since(from).collect();
    let together = samples.len().div_ceil(POINTS).max(1);
    let point = |several: &[&OffsetSample]| {
        let most = several.iter().max_by_key(|sample| sample.offset_ps.unsigned_abs());
        let most = most.expect("a chunk has some");
        (most.at.as_ps() as f64 / 1e12, most.offset_ps as f64 / 1e3)
    };
    samples.chunks(together).map(point).collect()
}

fn seconds(range: (f64, f64)) -> Axis {
    Axis::new("time in s", Scale::Linear, |s| format!("{s}"), range)
}

fn range_of(all: &[(&String, &ClockReport)], from: Instant) -> (f64, f64) {
    let last = all.iter().filter_map(|(_, clock)| clock.offsets.last()).map(|sample| sample.at);
    let end = last.max().unwrap_or(from).as_ps() as f64 / 1e12;
    let from = from.as_ps() as f64 / 1e12;
    (from, end.max(from + 1e-9))
}

fn size_plot(all: &[(&String, &ClockReport)]) -> Plot {
    let from = Instant::ZERO;
    let most =
        all.iter().map(|(_, clock)| clock.largest_since(from)).max().unwrap_or(0) as f64 / 1e3;
    let y = Axis::times("size of the offset", 1.0, most * 1.2);
    let mut plot = Plot::new("Size of clock offsets along time", seconds(range_of(all, from)), y);
    for (name, clock) in worst(all, from) {
        let sizes = points(clock, from).into_iter().map(|(at, ns)| (at, ns.abs().max(1.0)));
        plot.line(name, sizes);
    }
    plot
}

fn offset_plot(all: &[(&String, &ClockReport)], from: Instant) -> Plot {
    let most = all.iter().map(|(_, clock)| clock.largest_since(from)).max().unwrap_or(0);
    let most = (most as f64 / 1e3 * 1.1).max(1.0);
    let y = Axis::new("offset", Scale::Linear, round, (-most, most));
    let mut plot = Plot::new("Clock offsets along time", seconds(range_of(all, from)), y);
    for (name, clock) in worst(all, from) {
        plot.line(name, points(clock, from));
    }
    plot
}

/// Formats a time in nanoseconds that may be negative, rounded.
fn round(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", round_time(-ns)) } else { round_time(ns) }
}

/// Adds the error of each port's edges, and the bytes by which the error shortens a window.
fn edges(page: &mut Page, subject: &Subject<'_>) {
    let edges = clocks::edges(subject.config, subject.report, subject.words.named);
    if edges.is_empty() {
        return;
    }
    page.text(
        "Edges of gates come early or late by as much as the clock errs; here since each clock \
         first followed a grandmaster. A window that two nodes \
         share is shorter by the difference of their errors: in bytes, what the line carries in \
         the worst error of a port.",
    );
    page.table(&clocks::edge_table(&edges));
}

/// Adds latencies in true time and as both clocks measure them.
fn measured(page: &mut Page, subject: &Subject<'_>) {
    let mut table = Table::new(&[
        ("stream", Left),
        ("latency, least", Right),
        ("most", Right),
        ("measured, least", Right),
        ("most", Right),
        ("clocks apart by up to", Right),
    ]);
    let mut any = false;
    for StreamRow { name, own, .. } in subject.words.stream_rows(subject) {
        let ends = |range: fn(&sim::network::MeasuredSample) -> [i64; 2]| {
            let least = own.measured.iter().map(|sample| range(sample)[0]).min()?;
            Some((least, own.measured.iter().map(|sample| range(sample)[1]).max()?))
        };
        let (Some(truly), Some(seen)) = (ends(|s| s.truly), ends(|s| s.measured)) else { continue };
        let apart = own.measured.iter().flat_map(|sample| {
            [0, 1].map(|end| (sample.measured[end] - sample.truly[end]).unsigned_abs())
        });
        let cells = [truly.0, truly.1, seen.0, seen.1].map(signed);
        let apart = time(apart.max().unwrap_or(0) as f64 / 1e3);
        any = true;
        table.row(std::iter::once(name).chain(cells).chain([apart]).collect());
    }
    if any {
        page.text(
            "Receivers measure a latency as what their clock shows less what the sender's clock \
             showed: the difference of the clocks is in it.",
        );
        page.table(&table);
    }
}
