//! Runs as one self-contained page: tables, time series, histograms, data.

use super::{compare, overlay, text};
use latency::SegmentReport;
use latency_linux::Document;
use report::document::finish_with_data;
use report::{Axis, Page, Plot, Scale, time};

/// The page of one run, or of several that are compared.
pub fn page(documents: &[&Document]) -> String {
    let mut page = Page::new("farlane latency");
    if documents.len() > 1 {
        compare::tables(documents).iter().for_each(|(name, table)| {
            page.section(&format!("{name}, compared"));
            page.table(table);
            page.figures(&overlay::figures(documents, name));
        });
    }
    for document in documents {
        run(&mut page, document);
    }
    match documents {
        [one] => finish_with_data(page, "JSON, with every figure", one),
        all => finish_with_data(page, "JSON, with every figure", all),
    }
}

fn run(page: &mut Page, document: &Document) {
    page.section(&text::title(document));
    text::lines(document).iter().for_each(|line| page.text(&format!("{line}.")));
    page.table(&text::segments(document));
    text::cautions(document).iter().for_each(|line| page.warning(&format!("{line}.")));
    let analysis = &document.analysis;
    page.text(&format!("Stable range, by {}: {}.", analysis.stable_by, analysis.stable.reason));
    match analysis.findings.is_empty() {
        true => text::findings(document).iter().for_each(|line| page.note(line)),
        false => text::findings(document).iter().for_each(|line| page.warning(line)),
    }
    if !analysis.slots.is_empty() {
        page.table(&text::slots(document));
    }
    let pair = |segment: &SegmentReport| [course(segment), histogram(segment)];
    let mut figures: Vec<_> = analysis.segments.iter().flat_map(pair).collect();
    figures.extend(clock(document));
    page.figures(&figures);
    if !document.settings.is_empty() {
        page.table(&text::settings(document));
    }
}

/// Caption, explanation and picture.
pub type Figure = (String, String, String);

fn course(segment: &SegmentReport) -> Figure {
    let bins = &segment.course;
    let ends =
        |(low, high): (i64, i64), bin: &latency::Bin| (low.min(bin.min_ns), high.max(bin.max_ns));
    let (low, high) = bins.iter().fold((i64::MAX, i64::MIN), ends);
    let end = bins.last().map_or(1, |bin| bin.at_ns.max(1));
    let x = Axis::new("time", Scale::Linear, time, (0.0, end as f64));
    let y = Axis::new("latency", Scale::Linear, signed, room(low, high));
    let mut plot = Plot::new(&format!("{} along time", segment.segment), x, y);
    let line = |value: fn(&latency::Bin) -> i64| {
        bins.iter().map(move |bin| (bin.at_ns as f64, value(bin) as f64))
    };
    plot.line("longest", line(|bin| bin.max_ns));
    plot.line("median", line(|bin| bin.p50_ns));
    plot.line("shortest", line(|bin| bin.min_ns));
    let small = "Of up to 200 pieces of the run each.".to_owned();
    (format!("{} along time", segment.segment), small, plot.html())
}

fn histogram(segment: &SegmentReport) -> Figure {
    let bars = &segment.histogram;
    let low = bars.first().map_or(0, |bar| bar.from_ns);
    let high = bars.last().map_or(1, |bar| bar.to_ns);
    let top = bars.iter().map(|bar| bar.n).max().unwrap_or(1).max(1) as f64;
    let x = Axis::new("latency", Scale::Linear, signed, room(low, high));
    let y = Axis::new("frames", Scale::Whole, |n| format!("{n:.0}"), (0.0, top * 1.2));
    let mut plot = Plot::new(&format!("{}, histogram", segment.segment), x, y);
    let filled = bars.iter().filter(|bar| bar.n > 0);
    plot.bars = filled.map(|bar| (bar.from_ns as f64, bar.to_ns as f64, bar.n as f64)).collect();
    for (ns, name) in [(segment.whole.p50_ns, "median"), (segment.whole.p99_ns, "p99")] {
        plot.marks.push((ns as f64, format!("{name} {}", signed(ns as f64))));
    }
    let small = "The last bar has all that took longer.".to_owned();
    (segment.segment.clone(), small, plot.html())
}

/// Plots the clock error over time, if a series of it exists.
fn clock(document: &Document) -> Option<Figure> {
    let series = &document.analysis.clock.error.series;
    let (first, last) = series.first().zip(series.last())?;
    let at = |at: u64| at.saturating_sub(first.at_ns) as f64;
    let edge = |up: i64| {
        series.iter().map(move |point| {
            (at(point.at_ns), point.offset_ns as f64 + (up * point.bound_ns as i64) as f64)
        })
    };
    let low = edge(-1).map(|(_, ns)| ns).fold(f64::MAX, f64::min);
    let high = edge(1).map(|(_, ns)| ns).fold(f64::MIN, f64::max);
    let x = Axis::new("time", Scale::Linear, time, (0.0, at(last.at_ns).max(1.0)));
    let y = Axis::new("listener ahead", Scale::Linear, signed, room(low as i64, high as i64));
    let mut plot = Plot::new("clock error along time", x, y);
    plot.line("at most", edge(1));
    plot.line("offset", edge(0));
    plot.line("at least", edge(-1));
    Some(("Clock error along time".to_owned(), "Offset and its bounds.".to_owned(), plot.html()))
}

/// Returns the range from `low` to `high`, or a range around `low` if that range is empty.
pub fn room(low: i64, high: i64) -> (f64, f64) {
    if low < high { (low as f64, high as f64) } else { (low as f64 - 1.0, low as f64 + 1.0) }
}

/// Formats a time in nanoseconds that may be negative.
pub fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) }
}
