//! Plots of several runs in one picture: over time, and cumulative distributions.

use super::compare::names;
use super::page::{Figure, room, signed};
use latency::{Figures, SegmentReport};
use latency_linux::Document;
use report::{Axis, Plot, Scale, time};

/// The axis is logarithmic if all plotted times are above 0 and the longest is at least this many
/// times the shortest.
const WIDE: i64 = 20;

/// Returns the plots of a segment for the runs that have it; none if only one of several runs has
/// it.
pub fn figures(documents: &[&Document], segment: &str) -> Vec<Figure> {
    let runs = runs(documents, segment);
    if runs.is_empty() { Vec::new() } else { vec![courses(&runs), distributions(&runs)] }
}

/// Returns the distributions of a segment; `None` if only one of several runs has the segment.
pub fn distribution(documents: &[&Document], segment: &str) -> Option<Figure> {
    let runs = runs(documents, segment);
    (!runs.is_empty()).then(|| distributions(&runs))
}

/// Returns the runs that have a segment, with their names; none if only one of several runs has it.
fn runs(documents: &[&Document], segment: &str) -> Vec<(String, SegmentReport)> {
    let find = |document: &&Document| {
        document.analysis.segments.iter().find(|part| part.segment == segment).cloned()
    };
    let names = names(documents).into_iter();
    let runs = names.zip(documents).filter_map(|(name, document)| Some((name, find(document)?)));
    let runs: Vec<_> = runs.collect();
    if runs.len() < documents.len().clamp(1, 2) { Vec::new() } else { runs }
}

/// Plots medians and longest times over the time since each run's start.
fn courses(runs: &[(String, SegmentReport)]) -> Figure {
    let bins = || runs.iter().flat_map(|(_, segment)| &segment.course);
    let end = bins().map(|bin| bin.at_ns).max().unwrap_or(0).max(1);
    let low = bins().map(|bin| bin.p50_ns).min().unwrap_or(0);
    let high = bins().map(|bin| bin.max_ns).max().unwrap_or(0);
    let x = Axis::new("time from the run's beginning", Scale::Linear, time, (0.0, end as f64));
    let title = format!("{}, runs along time", runs[0].1.segment);
    let mut plot = Plot::new(&title, x, latencies(low, high));
    for (name, segment) in runs {
        let longest = segment.course.iter().map(|bin| (bin.at_ns as f64, bin.max_ns as f64));
        plot.line(&format!("{name}, longest"), longest);
    }
    // Drawn on top of the others.
    for (name, segment) in runs {
        let medians = segment.course.iter().map(|bin| (bin.at_ns as f64, bin.p50_ns as f64));
        plot.line(&format!("{name}, median"), medians);
    }
    (title, "Of up to 200 pieces of each run.".to_owned(), plot.html())
}

/// Plots the share of frames up to each latency.
fn distributions(runs: &[(String, SegmentReport)]) -> Figure {
    let low = runs.iter().map(|(_, segment)| segment.whole.min_ns).min().unwrap_or(0);
    let high = runs.iter().map(|(_, segment)| segment.whole.max_ns).max().unwrap_or(0);
    let title = format!("{}, cumulative distributions", runs[0].1.segment);
    let mut plot = Plot::new(&title, latencies(low, high), Axis::shares("share of frames"));
    for (name, segment) in runs {
        plot.line(name, shares(segment));
    }
    (title, "Of all frames of each run.".to_owned(), plot.html())
}

/// Returns the edges of the histogram's bars, and the percentiles. The last bar contains all longer
/// latencies, so its edge is left out.
fn shares(segment: &SegmentReport) -> Vec<(f64, f64)> {
    let Figures { n, min_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns, max_ns, .. } =
        segment.whole;
    let mut points = vec![(min_ns, 0.0), (p50_ns, 0.5), (p90_ns, 0.9), (p99_ns, 0.99)];
    points.extend([(p99_9_ns, 0.999), (p99_99_ns, 0.9999), (max_ns, 1.0)]);
    let mut below = 0;
    for bar in segment.histogram.split_last().map_or(&[][..], |(_, edges)| edges) {
        below += bar.n;
        points.push((bar.to_ns, below as f64 / n.max(1) as f64));
    }
    let mut points: Vec<_> = points.into_iter().map(|(ns, share)| (ns as f64, share)).collect();
    points.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
    points
}

fn latencies(low: i64, high: i64) -> Axis {
    if low > 0 && high / low >= WIDE {
        return Axis::times("latency, logarithmic", low as f64 * 0.95, high as f64 * 1.05);
    }
    Axis::new("latency", Scale::Linear, signed, room(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latency::Bar;

    /// 1000 frames: one half takes 10 to 20 us, the other half 20 to 30 us, and the last ten take
    /// longer.
    #[test]
    fn a_distribution_joins_bars_and_percentiles() {
        let bar = |from_ns, n| Bar { from_ns, to_ns: from_ns + 10_000, n };
        let whole = Figures {
            n: 1000,
            min_ns: 10_000,
            p50_ns: 19_000,
            p90_ns: 28_000,
            p99_ns: 29_000,
            p99_9_ns: 70_000,
            p99_99_ns: 90_000,
            max_ns: 90_000,
            ..Figures::default()
        };
        let segment = SegmentReport {
            segment: "round trip".to_owned(),
            crosses_clocks: false,
            whole,
            stable: whole,
            within_clock_error: None,
            caution: String::new(),
            course: Vec::new(),
            histogram: vec![bar(10_000, 500), bar(20_000, 500)],
        };
        let points = [
            (10_000.0, 0.0),
            (19_000.0, 0.5),
            (20_000.0, 0.5),
            (28_000.0, 0.9),
            (29_000.0, 0.99),
            (70_000.0, 0.999),
            (90_000.0, 0.9999),
            (90_000.0, 1.0),
        ];
        assert_eq!(shares(&segment), points);
    }

    #[test]
    fn only_wide_ranges_above_zero_are_logarithmic() {
        let scale = |low, high| latencies(low, high).scale;
        assert_eq!(scale(10, 200), Scale::Log);
        assert_eq!([scale(10, 199), scale(-5, 1000), scale(0, 0)], [Scale::Linear; 3]);
    }
}
