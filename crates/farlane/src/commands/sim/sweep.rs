//! `--sweep`: every combination of several values of several keys.

use super::document::Document;
use super::print::us;
use super::{Args, Failure, Outcome, built, pool, print};
use crate::plan::{Plan, Planned};
use crate::report::{Align, Axis, Page, Plot, Scale, Series, Table, time};
use crate::simulate::Wanted;
use std::collections::BTreeMap;

/// More simulations are not what anybody means.
const MOST: usize = 10_000;

/// A key with its values.
struct Sweep {
    key: String,
    values: Vec<String>,
}

/// Runs every combination.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args, plan: &Plan) -> Outcome {
    let sweeps = args.sweep.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    let points = product(&sweeps);
    if points.len() > MOST {
        return Err(Failure(format!("{} combinations: at most {MOST}", points.len())));
    }
    if args.runs.is_some() {
        return Err(Failure("--runs and --sweep exclude each other; sweep seed instead".into()));
    }
    let mut plans = Vec::new();
    for point in &points {
        let mut one = plan.clone();
        for (sweep, value) in sweeps.iter().zip(point) {
            one = one
                .with(&sweep.key, value, "--sweep")
                .map_err(|error| Failure(error.to_string()))?;
        }
        plans.push(built(args, &one)?);
    }
    let recorded = |plan: &Planned| plan.record != Wanted::default();
    if plans.iter().any(recorded) {
        eprintln!("farlane: {}: sweeps record nothing", args.plan.display());
    }
    let mut documents = pool::run_all(&args.plan.display().to_string(), &plans, None)?;
    for (document, point) in documents.iter_mut().zip(&points) {
        let keys = sweeps.iter().map(|sweep| sweep.key.clone());
        document.set = keys.zip(point.iter().cloned()).collect::<BTreeMap<_, _>>();
    }
    if let Some(path) = &args.html {
        std::fs::write(path, page(args, &sweeps, &points, &documents))
            .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    }
    if args.json {
        return print(&documents);
    }
    print!("{}", text(&sweeps, &points, &documents));
    Ok(())
}

fn parse(text: &str) -> Result<Sweep, Failure> {
    let fail = || Failure(format!("--sweep {text}: expected KEY=VALUE,VALUE,…"));
    let (key, values) = text.split_once('=').ok_or_else(fail)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if key.is_empty() || values.iter().any(String::is_empty) {
        return Err(fail());
    }
    Ok(Sweep { key: key.to_owned(), values })
}

/// The last key varies fastest.
fn product(sweeps: &[Sweep]) -> Vec<Vec<String>> {
    let mut points = vec![Vec::new()];
    for sweep in sweeps {
        let longer = |point: &Vec<String>| {
            let with = |value: &String| [point.as_slice(), std::slice::from_ref(value)].concat();
            sweep.values.iter().map(with).collect::<Vec<_>>()
        };
        points = points.iter().flat_map(longer).collect();
    }
    points
}

const COLUMNS: [&str; 8] =
    ["n", "mean us", "p50 us", "p99 us", "max us", "IOPS", "MB/s", "busiest link"];

fn cells(document: &Document) -> [String; 8] {
    let latency = document.latency_ns;
    let busiest = document.links.iter().map(|link| link.utilisation_ppm).max().unwrap_or(0);
    [
        latency.n.to_string(),
        us(latency.mean),
        us(latency.p50),
        us(latency.p99),
        us(latency.max),
        document.iops.to_string(),
        format!("{}.{}", document.bytes_per_s / 1_000_000, document.bytes_per_s / 100_000 % 10),
        format!("{}.{} %", busiest / 10_000, busiest / 1000 % 10),
    ]
}

fn text(sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> String {
    let heads: Vec<String> =
        sweeps.iter().map(|sweep| sweep.key.clone()).chain(COLUMNS.map(str::to_owned)).collect();
    let mut rows = vec![heads];
    for (point, document) in points.iter().zip(documents) {
        rows.push(point.iter().cloned().chain(cells(document)).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        out += &format!("{}\n", cells.join("  "));
    }
    out
}

fn page(args: &Args, sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> String {
    let mut page = Page::new(&format!("farlane sim {}", args.plan.display()));
    let keys: Vec<&str> = sweeps.iter().map(|sweep| sweep.key.as_str()).collect();
    page.text(&format!("Every combination of {}, simulated.", keys.join(", ")));
    let head: Vec<(&str, Align)> =
        keys.iter().copied().chain(COLUMNS).map(|name| (name, Align::Right)).collect();
    let mut table = Table::new(&head);
    for (point, document) in points.iter().zip(documents) {
        table.row(point.iter().cloned().chain(cells(document)).collect());
    }
    page.table(&table);
    let plot = plot(sweeps, points, documents).html();
    let first = &sweeps[0];
    let small = format!("{} from left to right: {}", first.key, first.values.join(", "));
    page.figures(&[("Mean latency".into(), small, plot)]);
    page.section("Data");
    page.details("JSON", &serde_json::to_string_pretty(documents).expect("plain keys"));
    page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")))
}

/// The first key from left to right, a line for each combination of the
/// others.
fn plot(sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> Plot {
    let means = documents.iter().map(|document| document.latency_ns.mean as f64);
    let (least, most) =
        means.fold((f64::MAX, 1.0), |(low, high): (f64, f64), ns| (low.min(ns), high.max(ns)));
    let first = &sweeps[0];
    let x = Axis {
        label: first.key.clone(),
        scale: Scale::Linear,
        // Its values are marked by name.
        format: |_| String::new(),
        range: (0.0, (first.values.len() as f64 - 1.0).max(1.0)),
    };
    let y = Axis {
        label: "mean latency".into(),
        scale: Scale::Linear,
        format: time,
        range: (least.min(most * 0.9) * 0.97, most * 1.03),
    };
    let mut plot = Plot::new("mean latency of every combination", x, y);
    for (point, document) in points.iter().zip(documents) {
        let others = sweeps[1..].iter().zip(&point[1..]);
        let name: Vec<String> =
            others.map(|(sweep, value)| format!("{}={value}", sweep.key)).collect();
        let name = if name.is_empty() { "mean".to_owned() } else { name.join(", ") };
        let place = first.values.iter().position(|value| *value == point[0]).unwrap_or(0);
        let at = (place as f64, document.latency_ns.mean as f64);
        match plot.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(at),
            None => plot.series.push(Series { name, points: vec![at] }),
        }
    }
    let labels = first.values.iter().enumerate();
    plot.marks = labels.map(|(place, value)| (place as f64, value.clone())).collect();
    plot
}
