//! `--sweep`: every combination of several values of several keys.

use super::document::{Document, Stream};
use super::print::us;
use super::{Args, Failure, built, json, pool};
use crate::commands::finish;
use plan::simulate::{OutputFiles, requirements};
use plan::{Plan, Planned};
use report::{Align, Axis, Page, Plot, Scale, Series, Table, time};
use std::collections::BTreeMap;

/// Simulations of a sweep at most; more are a mistake.
const MOST: usize = 10_000;

/// A key with its values.
struct Sweep {
    key: String,
    values: Vec<String>,
}

/// Runs every combination; yields whether all of them meet the plan's requirements.
pub fn run(args: &Args, plan: &Plan) -> Result<bool, Failure> {
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
    let recorded = |plan: &Planned| plan.record != OutputFiles::default();
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
        println!("{}", json(&documents));
    } else {
        print!("{}", text(&sweeps, &points, &documents));
    }
    Ok(documents.iter().all(Document::meets_requirements))
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

/// A column: its name, and its text for a simulation.
type Column = (&'static str, fn(&Document) -> String);

/// Of all simulations; the last one only with requirements.
const COLUMNS: [Column; 10] = [
    ("n", |document| document.latency_ns.n.to_string()),
    ("mean us", |document| us(document.latency_ns.mean)),
    ("p50 us", |document| us(document.latency_ns.p50)),
    ("p99 us", |document| us(document.latency_ns.p99)),
    ("max us", |document| us(document.latency_ns.max)),
    ("IOPS", |document| document.iops.to_string()),
    ("MB/s", |document| {
        let rate = document.bytes_per_s;
        format!("{}.{}", rate / 1_000_000, rate / 100_000 % 10)
    }),
    ("fairness", |document| {
        document.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.4}"))
    }),
    ("busiest link", |document| {
        let busiest = document.links.iter().map(|link| link.utilisation_ppm).max().unwrap_or(0);
        format!("{}.{} %", busiest / 10_000, busiest / 1000 % 10)
    }),
    ("requirements", |document| {
        requirements::verdict(&document.requirements).unwrap_or_else(|| "-".to_owned())
    }),
];

/// The same of simulations without hosts.
const OF_STREAMS: [Column; 5] = [
    ("sent", |document| sum(document, |stream| stream.sent)),
    ("lost", |document| sum(document, |stream| stream.lost)),
    ("longest us", |document| us(longest(document))),
    COLUMNS[8],
    COLUMNS[9],
];

fn sum(document: &Document, of: fn(&Stream) -> u64) -> String {
    document.streams.iter().map(of).sum::<u64>().to_string()
}

/// The longest latency of any stream in nanoseconds.
fn longest(document: &Document) -> u64 {
    document.streams.iter().map(|stream| stream.latency_ns.max).max().unwrap_or(0)
}

/// Those that these simulations have.
fn columns(documents: &[Document]) -> &'static [Column] {
    let hosts = documents.iter().any(|document| !document.hosts.is_empty());
    let all: &[Column] = if hosts { &COLUMNS } else { &OF_STREAMS };
    let required = documents.iter().any(|document| !document.requirements.is_empty());
    if required { all } else { &all[..all.len() - 1] }
}

/// The keys and the columns, and under them the values of each combination and its results.
fn rows(sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> Vec<Vec<String>> {
    let columns = columns(documents);
    let keys = sweeps.iter().map(|sweep| sweep.key.clone());
    let heads = keys.chain(columns.iter().map(|(name, _)| (*name).to_owned())).collect();
    let row = |(point, document): (&Vec<String>, &Document)| {
        point.iter().cloned().chain(columns.iter().map(|(_, text)| text(document))).collect()
    };
    std::iter::once(heads).chain(points.iter().zip(documents).map(row)).collect()
}

fn text(sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> String {
    let rows = rows(sweeps, points, documents);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

fn page(args: &Args, sweeps: &[Sweep], points: &[Vec<String>], documents: &[Document]) -> String {
    let mut page = Page::new(&format!("farlane sim {}", args.plan.display()));
    let keys: Vec<&str> = sweeps.iter().map(|sweep| sweep.key.as_str()).collect();
    page.text(&format!("Every combination of {}, simulated.", keys.join(", ")));
    let mut rows = rows(sweeps, points, documents).into_iter();
    let heads = rows.next().unwrap_or_default();
    let heads: Vec<_> = heads.iter().map(|name| (name.as_str(), Align::Right)).collect();
    let mut table = Table::new(&heads);
    rows.for_each(|row| table.row(row));
    page.table(&table);
    let first = &sweeps[0];
    let small = format!("{} from left to right: {}", first.key, first.values.join(", "));
    // What every simulation has.
    let shown = |(_, of, _): &&Figure| {
        documents.iter().all(|document| of(document).is_some_and(|value| value > 0.0))
    };
    let figures = FIGURES.iter().filter(shown).map(|figure| {
        let plot = plot(figure, sweeps, points, documents).html();
        (figure.0.to_owned(), small.clone(), plot)
    });
    page.figures(&figures.collect::<Vec<_>>());
    finish(page, "JSON", documents)
}

/// What is plotted: name, value, and text of a value.
type Figure = (&'static str, fn(&Document) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 5] = [
    ("Mean latency", |document| Some(document.latency_ns.mean as f64), time),
    ("99th percentile of the latency", |document| Some(document.latency_ns.p99 as f64), time),
    (
        "Throughput",
        |document| Some(document.bytes_per_s as f64),
        |rate| format!("{:.0} MB/s", rate / 1e6),
    ),
    ("Fairness", |document| document.fairness, |index| format!("{index:.2}")),
    (
        "Longest latency of a stream",
        |document| document.hosts.is_empty().then(|| longest(document) as f64),
        time,
    ),
];

/// The first key from left to right, a line for each combination of the others.
fn plot(
    (title, of, format): &Figure,
    sweeps: &[Sweep],
    points: &[Vec<String>],
    documents: &[Document],
) -> Plot {
    let most = documents.iter().filter_map(of).fold(0.0, f64::max);
    let first = &sweeps[0];
    let x = Axis {
        label: first.key.clone(),
        scale: Scale::Linear,
        // Its values stand there by name.
        format: |_| String::new(),
        range: (0.0, (first.values.len() as f64 - 1.0).max(1.0)),
    };
    let y = Axis {
        label: title.to_lowercase(),
        scale: Scale::Linear,
        format: *format,
        range: (0.0, most * 1.05),
    };
    let mut plot = Plot::new(&format!("{} of every combination", title.to_lowercase()), x, y);
    for (point, document) in points.iter().zip(documents) {
        let others = sweeps[1..].iter().zip(&point[1..]);
        let name: Vec<String> =
            others.map(|(sweep, value)| format!("{}={value}", sweep.key)).collect();
        let name = if name.is_empty() { (*title).to_owned() } else { name.join(", ") };
        let place = first.values.iter().position(|value| *value == point[0]).unwrap_or(0);
        let Some(value) = of(document) else { continue };
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
