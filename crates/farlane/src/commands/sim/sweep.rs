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
            // Keys joined by + go together.
            for key in sweep.key.split('+') {
                one =
                    one.with(key, value, "--sweep").map_err(|error| Failure(error.to_string()))?;
            }
        }
        plans.push(built(args, &one)?);
    }
    let recorded = |plan: &Planned| plan.record != Wanted::default();
    if plans.iter().any(recorded) {
        eprintln!("farlane: {}: sweeps record nothing", args.plan.display());
    }
    let mut documents = pool::run_all(&args.plan.display().to_string(), &plans, None)
        .map_err(|(_, failed)| Failure(failed.why))?;
    for (document, point) in documents.iter_mut().zip(&points) {
        let keys = sweeps.iter().map(|sweep| sweep.key.clone());
        document.set = keys.zip(point.iter().cloned()).collect::<BTreeMap<_, _>>();
    }
    if let Some(target) = &args.html {
        target.write(&page(args, &sweeps, &points, &documents))?;
    }
    if args.json {
        return print(&documents);
    }
    print!("{}", text(&sweeps, &points, &documents));
    Ok(())
}

fn parse(text: &str) -> Result<Sweep, Failure> {
    let fail = || Failure(format!("--sweep {text}: expected KEY[+KEY…]=VALUE,VALUE,…"));
    let (key, values) = text.split_once('=').ok_or_else(fail)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if key.split('+').any(str::is_empty) || values.iter().any(String::is_empty) {
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

const COLUMNS: [&str; 9] =
    ["n", "mean us", "p50 us", "p99 us", "max us", "IOPS", "MB/s", "fairness", "busiest link"];

fn cells(document: &Document) -> [String; 9] {
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
        document.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.4}")),
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
    let first = &sweeps[0];
    let small = format!("{} from left to right: {}", first.key, first.values.join(", "));
    let shown = |figure: &Figure| figure.fits(documents);
    let figures = FIGURES.iter().filter(|figure| shown(figure)).map(|figure| {
        let plot = plot(figure, sweeps, points, documents).html();
        (figure.name.to_owned(), small.clone(), plot)
    });
    page.figures(&figures.collect::<Vec<_>>());
    page.section("Data");
    page.details("JSON", &crate::commands::json(documents));
    page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")))
}

/// What is plotted.
struct Figure {
    name: &'static str,
    of: fn(&Document) -> Option<f64>,
    format: fn(f64) -> String,
}

const FIGURES: [Figure; 4] = [
    Figure {
        name: "Mean latency",
        of: |document| Some(document.latency_ns.mean as f64),
        format: time,
    },
    Figure {
        name: "99th percentile of the latency",
        of: |document| Some(document.latency_ns.p99 as f64),
        format: time,
    },
    Figure {
        name: "Throughput",
        of: |document| Some(document.bytes_per_s as f64),
        format: |rate| format!("{:.0} MB/s", rate / 1e6),
    },
    Figure {
        name: "Fairness",
        of: |document| document.fairness,
        format: |index| format!("{index:.2}"),
    },
];

impl Figure {
    /// Whether every simulation has it.
    fn fits(&self, documents: &[Document]) -> bool {
        documents.iter().all(|document| (self.of)(document).is_some_and(|value| value > 0.0))
    }
}

/// The first key from left to right, a line for each combination of the
/// others.
fn plot(figure: &Figure, sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> Plot {
    let most = documents.iter().filter_map(|document| (figure.of)(document)).fold(0.0, f64::max);
    let first = &sweeps[0];
    let x = Axis {
        label: first.key.clone(),
        scale: Scale::Linear,
        // Its values stand there by name.
        format: |_| String::new(),
        range: (0.0, (first.values.len() as f64 - 1.0).max(1.0)),
    };
    let y = Axis {
        label: figure.name.to_lowercase(),
        scale: Scale::Linear,
        format: figure.format,
        range: (0.0, most * 1.05),
    };
    let mut plot = Plot::new(&format!("{} of every combination", figure.name.to_lowercase()), x, y);
    for (point, document) in points.iter().zip(documents) {
        let others = sweeps[1..].iter().zip(&point[1..]);
        let name: Vec<String> =
            others.map(|(sweep, value)| format!("{}={value}", sweep.key)).collect();
        let name = if name.is_empty() { figure.name.to_owned() } else { name.join(", ") };
        let place = first.values.iter().position(|value| *value == point[0]).unwrap_or(0);
        let Some(value) = (figure.of)(document) else { continue };
        let at = (place as f64, value);
        match plot.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(at),
            None => plot.series.push(Series { name, points: vec![at] }),
        }
    }
    let labels = first.values.iter().enumerate();
    plot.names = labels.map(|(place, value)| (place as f64, value.clone())).collect();
    plot
}
