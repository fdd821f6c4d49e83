//! `--sweep`: every combination of several values of several keys.

mod pictures;

use super::document::{SimReport, Stream, SweepDocument};
use super::phases::{Phases, Trials, words};
use super::pool;
use super::text::us;
use super::{RunError, Seeds, Shifts, Watch};
use crate::simulate::OutputFiles;
use crate::{KeyError, Plan, Planned};
use report::document::{Ended, INTERRUPTED, finish_with_data};
use report::{Align, Failure, Page, Table};
use std::str::FromStr;

/// Maximum number of simulations in a sweep.
const MOST: u64 = 10_000;

/// A key with its values.
#[derive(Clone, Debug)]
pub struct Sweep {
    key: String,
    values: Vec<String>,
}

/// A combination: its settings, and its simulations: one, or one per phase.
struct Point {
    set: Vec<(String, String)>,
    values: Vec<String>,
    trials: Option<Trials>,
    plans: Vec<Planned>,
}

/// Every combination of the values of several keys.
pub struct Combinations {
    sweeps: Vec<Sweep>,
    points: Vec<Point>,
    plans: Vec<Planned>,
}

impl Combinations {
    /// Builds the combinations of `sweeps`, each in all phases of `shifts`. The error is a mistake
    /// in the plan, or too many simulations.
    pub fn new(
        plan: &Plan,
        sweeps: &[Sweep],
        seeds: &Seeds,
        shifts: Option<&Shifts>,
    ) -> Result<Self, RunError> {
        let all = product(sweeps);
        let phases = shifts.map_or(1, |shifts| shifts.trials);
        let simulations = (all.len() as u64).saturating_mul(phases);
        if simulations > MOST {
            return Err(RunError::Usage(format!("{simulations} simulations: at most {MOST}")));
        }
        let point = |values| Point::new(plan, sweeps, values, (seeds, shifts));
        let mut points = all.into_iter().map(point).collect::<Result<Vec<_>, _>>()?;
        let plans = points.iter_mut().flat_map(|point| std::mem::take(&mut point.plans)).collect();
        Ok(Self { sweeps: sweeps.to_vec(), points, plans })
    }

    /// Returns whether the plan has a record table, which a sweep ignores.
    pub fn record(&self) -> bool {
        self.plans.iter().any(|plan| plan.record != OutputFiles::default())
    }

    /// Runs all combinations.
    ///
    /// # Errors
    /// If a run fails: the reason, and the values of the combination.
    pub fn run(&self, name: &str, watch: &Watch<'_>) -> Result<SweepDocument, Failure> {
        let Self { sweeps, points, plans } = self;
        let each = plans.len() / points.len();
        let documents = pool::run_all(name, plans, None, watch).map_err(|(at, failed)| {
            let set = points[at / each].words(at % each);
            Failure(format!("{}; {set}", failed.why))
        })?;
        let mut documents = documents.into_iter();
        let finished = points.iter().filter_map(|point| {
            let mut own: Vec<_> = documents.by_ref().take(each).collect();
            // A combination is complete if all its phases have ended.
            if own.iter().flatten().filter(|document| !document.interrupted).count() < each {
                return None;
            }
            let phases = point.trials.as_ref().and_then(|trials| Phases::new(trials, &own));
            let document = own.swap_remove(0)?;
            let keys = sweeps.iter().map(|sweep| sweep.key.clone());
            let set = keys.zip(point.values.iter().cloned()).collect();
            Some(SimReport { phases, set, ..document })
        });
        let combinations: Vec<_> = finished.collect();
        let interrupted = combinations.len() < points.len();
        Ok(SweepDocument::new(name, combinations, interrupted))
    }

    /// Formats the document as text.
    pub fn text(&self, document: &SweepDocument) -> String {
        text(&self.sweeps, document)
    }

    /// Formats the document as an HTML page.
    pub fn page(&self, name: &str, document: &SweepDocument) -> String {
        page(name, &self.sweeps, document)
    }
}

impl SweepDocument {
    /// Returns whether all combinations met the plan's requirements.
    pub fn ended(&self) -> Ended {
        match self.combinations.iter().all(SimReport::meets_requirements) {
            _ if self.interrupted => Ended::Interrupted,
            true => Ended::Done,
            false => Ended::Missed,
        }
    }
}

impl Point {
    fn new(
        plan: &Plan,
        sweeps: &[Sweep],
        values: Vec<String>,
        (seeds, shifts): (&Seeds, Option<&Shifts>),
    ) -> Result<Self, KeyError> {
        // Keys joined by + change together.
        let set: Vec<(String, String)> = sweeps
            .iter()
            .zip(&values)
            .flat_map(|(sweep, value)| {
                sweep.key.split('+').map(|key| (key.to_owned(), value.clone()))
            })
            .collect();
        let one = set
            .iter()
            .try_fold(plan.clone(), |plan, (key, value)| plan.with(key, value, "--sweep"))?;
        let trials = shifts.map(|shifts| Trials::new(&one, seeds, shifts)).transpose()?;
        let (trials, plans) = match trials {
            Some(mut trials) => {
                let plans = std::mem::take(&mut trials.plans);
                (Some(trials), plans)
            }
            None => (None, vec![seeds.built(&one)?]),
        };
        Ok(Self { set, values, trials, plans })
    }

    fn words(&self, trial: usize) -> String {
        let phase = self.trials.as_ref().map_or(&[][..], |trials| trials.set(trial));
        words(self.set.iter().chain(phase))
    }
}

impl FromStr for Sweep {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected KEY[+KEY…]=VALUE,VALUE,…";
        let (key, values) = text.split_once('=').ok_or(EXPECTED)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if key.split('+').any(str::is_empty) || values.iter().any(String::is_empty) {
            return Err(EXPECTED);
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

/// Returns the plan of every combination with its settings.
///
/// # Errors
/// A mistake in the plan or a setting.
pub fn plans(
    plan: &Plan,
    sweeps: &[Sweep],
) -> Result<Vec<(Vec<(String, String)>, Planned)>, KeyError> {
    let point = |values| {
        let mut point = Point::new(plan, sweeps, values, (&Seeds::default(), None))?;
        Ok((point.set, point.plans.swap_remove(0)))
    };
    product(sweeps).into_iter().map(point).collect()
}

/// Returns all combinations. The last key varies fastest.
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

/// A column: its name, a function that selects documents with it, and a function that formats it.
type Column = (&'static str, Has, fn(&SimReport) -> String);

type Has = fn(&SimReport) -> bool;

const ALL: Has = |_| true;
const OF_HOSTS: Has = |document| !document.hosts.is_empty();
const OF_STREAMS: Has = |document| document.hosts.is_empty();
const OF_PHASES: Has = |document| document.phases.is_some();
const REQUIRED: Has = |document| document.verdict().is_some();

const REQUIREMENTS: &str = "requirements";

const COLUMNS: [Column; 14] = [
    ("n", OF_HOSTS, |document| document.latency_ns.n.to_string()),
    ("mean us", OF_HOSTS, |document| us(document.latency_ns.mean)),
    ("p50 us", OF_HOSTS, |document| us(document.latency_ns.p50)),
    ("p99 us", OF_HOSTS, |document| us(document.latency_ns.p99)),
    ("max us", OF_HOSTS, |document| us(document.latency_ns.max)),
    ("sent", OF_STREAMS, |document| sum(document, |stream| stream.sent)),
    ("lost", OF_STREAMS, |document| sum(document, |stream| stream.lost)),
    ("longest us", OF_STREAMS, |document| us(longest(document))),
    ("in all phases us", OF_PHASES, |document| {
        us(document.phases.as_ref().map_or(0, Phases::largest_ns))
    }),
    ("IOPS", OF_HOSTS, |document| document.iops.to_string()),
    ("MB/s", OF_HOSTS, |document| {
        let rate = document.bytes_per_s;
        format!("{}.{}", rate / 1_000_000, rate / 100_000 % 10)
    }),
    ("fairness", OF_HOSTS, |document| {
        document.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.4}"))
    }),
    ("busiest link", ALL, |document| {
        let busiest = document.links.iter().map(|link| link.utilisation_ppm).max().unwrap_or(0);
        format!("{}.{} %", busiest / 10_000, busiest / 1000 % 10)
    }),
    (REQUIREMENTS, REQUIRED, |document| document.verdict().unwrap_or_else(|| "-".to_owned())),
];

/// Returns the alignment of a column: numbers, except for one column of words.
fn align(head: &str) -> Align {
    if head == REQUIREMENTS { Align::Wrap } else { Align::Right }
}

fn sum(document: &SimReport, field: fn(&Stream) -> u64) -> String {
    document.streams.iter().map(field).sum::<u64>().to_string()
}

/// Returns the longest latency of any stream in nanoseconds.
fn longest(document: &SimReport) -> u64 {
    document.streams.iter().map(|stream| stream.latency_ns.max).max().unwrap_or(0)
}

/// Returns the table: a heading of keys and columns, then one row per combination.
fn rows(sweeps: &[Sweep], documents: &[SimReport]) -> Vec<Vec<String>> {
    let columns = COLUMNS.iter().filter(|(_, has, _)| documents.iter().any(has));
    let columns: Vec<_> = columns.collect();
    let keys = sweeps.iter().map(|sweep| sweep.key.clone());
    let heads = keys.chain(columns.iter().map(|(name, ..)| (*name).to_owned())).collect();
    let row = |document: &SimReport| {
        let values = sweeps.iter().map(|sweep| document.set[&sweep.key].clone());
        values.chain(columns.iter().map(|(.., text)| text(document))).collect()
    };
    std::iter::once(heads).chain(documents.iter().map(row)).collect()
}

fn text(sweeps: &[Sweep], document: &SweepDocument) -> String {
    let rows = rows(sweeps, &document.combinations);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&rows[0]);
        let cells = cells.map(|((cell, width), head)| match align(head) {
            Align::Right => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut out: String = rows.iter().map(line).collect();
    if document.interrupted {
        out += &format!("\n{INTERRUPTED}\n");
    }
    out
}

fn page(name: &str, sweeps: &[Sweep], document: &SweepDocument) -> String {
    let documents = &document.combinations;
    let mut page = Page::new(&format!("farlane sim {name}"));
    let keys: Vec<&str> = sweeps.iter().map(|sweep| sweep.key.as_str()).collect();
    page.text(&format!("Every combination of {}, simulated.", keys.join(", ")));
    if document.interrupted {
        page.warning(INTERRUPTED);
    }
    let mut rows = rows(sweeps, documents).into_iter();
    let heads = rows.next().unwrap_or_default();
    let heads: Vec<_> = heads.iter().map(|name| (name.as_str(), align(name))).collect();
    let mut table = Table::new(&heads);
    rows.for_each(|row| table.row(row));
    page.table(&table);
    page.figures(&pictures::all(sweeps, documents));
    finish_with_data(page, "JSON", document)
}
