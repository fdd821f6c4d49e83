//! The pictures of a sweep: one row per combination, without interpolation between combinations.

use super::{latency, longest, mean, value};
use crate::run::document::SimReport;
use crate::run::over_seeds::{Estimate, OverSeeds};
use crate::run::phases::Phases;
use crate::simulate::requirements::Row;
use report::{Axis, DotRow, Dots, Scale, time};

/// A picture: name, values with their names, a function that formats a value, and the mean over
/// several seeds that is the first value.
type Figure = (&'static str, &'static [(&'static str, Value)], fn(f64) -> String, Mean);

type Mean = fn(&OverSeeds) -> Option<&Estimate>;

type Value = fn(&SimReport) -> Option<f64>;

const FIGURES: [Figure; 3] = [
    (
        "Latency",
        &[
            ("mean", |document| match mean(document) {
                Some(mean) => Some(mean.mean),
                None => if_has_hosts(document, document.latency_ns.mean),
            }),
            ("99th percentile", |document| if_has_hosts(document, latency(document).p99)),
            ("maximum", |document| {
                let streams = document.hosts.is_empty().then(|| longest(document) as f64);
                if_has_hosts(document, latency(document).max).or(streams)
            }),
            ("maximum of all phases", |document| {
                document.phases.as_ref().map(|phases| Phases::largest_ns(phases) as f64)
            }),
        ],
        time,
        |all| all.mean_latency_ns.as_ref(),
    ),
    (
        "Throughput",
        &[("throughput", |document| {
            let rate = value(document, document.bytes_per_s, |all| all.bytes_per_s.as_ref());
            if_has_hosts(document, rate)
        })],
        |rate| format!("{:.0} MB/s", rate / 1e6),
        |all| all.bytes_per_s.as_ref(),
    ),
    (
        "Fairness",
        &[("fairness", |document| document.fairness.filter(|_| document.over_seeds.is_none()))],
        |index| format!("{index:.2}"),
        |_| None,
    ),
];

fn if_has_hosts(document: &SimReport, value: u64) -> Option<f64> {
    (!document.hosts.is_empty() && value > 0).then_some(value as f64)
}

/// Returns caption, subtitle and SVG of each picture.
pub fn all(keys: &[String], documents: &[SimReport]) -> Vec<(String, String, String)> {
    let requirements = requirements(keys, documents);
    let figures = FIGURES.iter().filter_map(|figure| picture(figure, keys, documents));
    figures.chain(requirements).collect()
}

fn picture(
    (title, series, format, mean): &Figure,
    keys: &[String],
    documents: &[SimReport],
) -> Option<(String, String, String)> {
    let has = |(_, value): &&(&str, Value)| documents.iter().any(|one| value(one).is_some());
    let series: Vec<_> = series.iter().filter(has).collect();
    let row = |document: &SimReport| {
        let values: Vec<Vec<f64>> =
            series.iter().map(|(_, value)| value(document).into_iter().collect()).collect();
        let last = values.last().and_then(|values| values.first());
        let note = last.map_or_else(String::new, |value| format(*value));
        let estimate = document.over_seeds.as_ref().and_then(*mean);
        let interval = estimate.map(|mean| mean.confidence_95.map(|end| end.max(0.0)));
        DotRow { name: name(keys, document), note, bad: false, values, interval }
    };
    let rows: Vec<_> = documents.iter().map(row).collect();
    let names: Vec<String> = series.iter().map(|(name, _)| (*name).to_owned()).collect();
    let small = format!("at the right: {}", names.last()?);
    let small = if names.len() > 1 { small } else { String::new() };
    let has_intervals = rows.iter().any(|row| row.interval.is_some());
    let bar = if has_intervals {
        format!("bar: 95 % interval of the {}", names[0])
    } else {
        String::new()
    };
    let small =
        [small, bar].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    Some((
        (*title).to_owned(),
        small,
        dots(title, &title.to_lowercase(), (names, rows), *format, None).html(),
    ))
}

/// Plots the largest observed latency of each requirement as a share of its deadline.
fn requirements(keys: &[String], documents: &[SimReport]) -> Option<(String, String, String)> {
    let share = |row: &Row| Some(row.worst_ns? as f64 / row.limit_ns?.max(1) as f64);
    let row = |document: &SimReport| DotRow {
        name: name(keys, document),
        note: document.verdict().unwrap_or_default(),
        bad: !document.meets_requirements(),
        values: vec![document.required().into_iter().filter_map(share).collect()],
        interval: None,
    };
    let rows: Vec<_> = documents.iter().map(row).collect();
    rows.iter().any(|row| !row.note.is_empty()).then(|| {
        let title = "Requirements";
        let small = "largest observed latency of each requirement, as a share of its deadline";
        let per_cent = |share| format!("{:.0} %", share * 100.0);
        let series = vec![title.to_lowercase()];
        let picture = dots(title, "share of the deadline", (series, rows), per_cent, Some(1.0));
        (title.to_owned(), small.to_owned(), picture.html())
    })
}

fn name(keys: &[String], document: &SimReport) -> String {
    let key = |key: &String| format!("{key}={}", document.set[key]);
    keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

fn dots(
    title: &str,
    label: &str,
    (series, rows): (Vec<String>, Vec<DotRow>),
    format: fn(f64) -> String,
    limit: Option<f64>,
) -> Dots {
    let values = rows.iter().flat_map(|row| row.values.iter().flatten().copied());
    let intervals = rows.iter().flat_map(|row| row.interval).flatten();
    let most = values.chain(intervals).chain(limit).fold(0.0, f64::max);
    let axis = Axis::new(label, Scale::Linear, format, (0.0, most * 1.05));
    Dots { title: format!("{title} of every combination"), axis, series, rows, limit }
}
