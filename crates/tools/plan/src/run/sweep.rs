//! `--sweep`: points with other values of several keys.

mod pictures;

use super::document::{FailedPoint, Listener, SimLatency, SimReport, Stream, SweepDocument};
use super::over_seeds::{Estimate, OverSeeds, StreamOverSeeds, interval_us};
use super::parts::{RunTables, Simulated};
use super::phases::{Phases, Trials, pairs, words};
use super::pool::{self, Extras};
use super::simulate::Failed;
use super::text::us;
use super::{RunError, Seeds, Shifts, Watch};
use crate::simulate::OutputFiles;
use crate::{KeyError, Plan, Planned};
use report::document::{Ended, INTERRUPTED, finish_with_data};
use report::{Align, Failure, Page, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Maximum number of simulations in a sweep in memory.
const MOST: u64 = 10_000;

/// A key with its values.
#[derive(Clone, Debug)]
pub struct Sweep {
    key: String,
    values: Vec<String>,
}

/// The points of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grid {
    /// Dotted paths of the keys. Keys joined by + have the same value.
    pub keys: Vec<String>,
    /// The values of each point, in the order of the keys.
    pub points: Vec<Vec<String>>,
}

impl Grid {
    /// Points with these values of the keys.
    ///
    /// # Errors
    /// No point; an empty key or value; a point that does not have one value for each key.
    pub fn new(keys: Vec<String>, points: Vec<Vec<String>>) -> Result<Self, &'static str> {
        let is_whole =
            |point: &Vec<String>| point.len() == keys.len() && !point.iter().any(String::is_empty);
        if points.is_empty() || keys.is_empty() || !points.iter().all(is_whole) {
            return Err("a sweep needs points, each with a value for every key");
        }
        if keys.iter().any(|key| key.split('+').any(str::is_empty)) {
            return Err("the key of a sweep is empty");
        }
        Ok(Self { keys, points })
    }

    /// Every combination of the values. The last key varies fastest.
    pub fn product(sweeps: &[Sweep]) -> Self {
        let keys = sweeps.iter().map(|sweep| sweep.key.clone()).collect();
        let mut points = vec![Vec::new()];
        for sweep in sweeps {
            let longer = |point: &Vec<String>| {
                let with =
                    |value: &String| [point.as_slice(), std::slice::from_ref(value)].concat();
                sweep.values.iter().map(with).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(longer).collect();
        }
        Self { keys, points }
    }

    /// Returns the keys and values of a point, with keys that + joins one by one.
    pub(super) fn settings(&self, values: &[String]) -> Settings {
        let each = |(key, value): (&String, &String)| {
            let one = |key: &str| (key.to_owned(), value.clone());
            key.split('+').map(one).collect::<Vec<_>>()
        };
        self.keys.iter().zip(values).flat_map(each).collect()
    }
}

/// A point of a sweep: its settings, and its simulations: one per seed or phase.
pub(super) struct Point {
    pub set: Settings,
    /// Values as text by key of the grid.
    named: BTreeMap<String, String>,
    trials: Option<Trials>,
    plans: Vec<Planned>,
    simulations: usize,
}

/// The results of a sweep in addition to its document.
#[derive(Clone, Copy)]
pub struct SweepOptions<'a> {
    /// Name of the plan.
    pub name: &'a str,
    /// Text of the plan, with the settings.
    pub text: &'a str,
    /// Tables of all simulations.
    pub tables: Option<&'a RunTables>,
}

/// Every point of a sweep, in memory.
pub struct Combinations {
    keys: Vec<String>,
    points: Vec<Point>,
}

impl Combinations {
    /// Builds the points of `grid`, each with all seeds, or in all phases of `shifts`. The error is
    /// a mistake in the plan, or too many simulations.
    pub fn new(
        plan: &Plan,
        grid: &Grid,
        seeds: &Seeds,
        shifts: Option<&Shifts>,
    ) -> Result<Self, RunError> {
        let each = shifts.map_or(seeds.runs.unwrap_or(1), |shifts| shifts.trials);
        check_count((grid.points.len() as u64).saturating_mul(each))?;
        let point = |values: &Vec<String>| Point::new(plan, grid, values, (seeds, shifts));
        let points = grid.points.iter().map(point).collect::<Result<Vec<_>, _>>()?;
        // The plan can have `runs`, which may differ between points.
        check_count(points.iter().map(|point| point.simulations as u64).sum())?;
        Ok(Self { keys: grid.keys.clone(), points })
    }

    /// Returns whether the plan has a record table, which a sweep ignores.
    pub fn record(&self) -> bool {
        self.points.iter().any(Point::record)
    }

    /// Runs all points.
    pub fn run(&mut self, options: &SweepOptions<'_>, watch: &Watch<'_>) -> SweepDocument {
        let SweepOptions { name, text, tables } = *options;
        let extras = Extras { tables, ..Extras::default() };
        let all = self.simulate(name, &extras, watch);
        if let Some(tables) = tables {
            self.write(tables, &all);
        }
        let mut document = SweepDocument::new((name, text), self.keys.clone());
        for (point, own) in self.points.iter().zip(all) {
            document.add(&point.named, own.map(|own| point.document(&own)));
        }
        document
    }

    /// Runs all simulations, all at once, or one point after the other if each is searched. Returns
    /// the documents of each point, or why it failed.
    fn simulate(
        &mut self,
        name: &str,
        extras: &Extras<'_>,
        watch: &Watch<'_>,
    ) -> Vec<Result<Vec<Option<SimReport>>, String>> {
        let mut first = 0;
        if self.points.iter().flat_map(|point| &point.trials).any(Trials::is_searched) {
            let run = |point: &mut Point| {
                let extras = Extras { first, ..*extras };
                first += point.simulations;
                match first > point.simulations && (watch.is_stopped)() {
                    true => Ok(vec![None; point.simulations]),
                    false => point.simulate(name, &extras, watch),
                }
            };
            return self.points.iter_mut().map(run).collect();
        }
        let plans: Vec<&Planned> = self.points.iter().flat_map(|point| &point.plans).collect();
        let mut all = pool::run_each(name, &plans, extras, watch).into_iter();
        let own = |point: &Point| {
            let own = all.by_ref().take(point.simulations).enumerate();
            own.map(|(trial, one)| one.transpose().map_err(|failed| point.failed(trial, &failed)))
                .collect()
        };
        self.points.iter().map(own).collect()
    }

    /// Writes the tables of all complete points.
    fn write(&self, tables: &RunTables, all: &[Result<Vec<Option<SimReport>>, String>]) {
        let settings: Vec<String> =
            self.points.iter().map(|point| words("", pairs(&point.set))).collect();
        let mut simulated = Vec::new();
        let mut first = 0;
        for ((point, own), set) in self.points.iter().zip(all).zip(&settings) {
            let whole = own.as_ref().ok().filter(|own| is_whole(own));
            let own = whole.into_iter().flatten().flatten().zip(&point.plans).enumerate();
            simulated.extend(own.map(|(run, (document, planned))| Simulated {
                part: first + run,
                run: run as u64,
                set,
                planned,
                document,
            }));
            first += point.simulations;
        }
        tables.write(simulated);
    }
}

/// Returns whether all simulations of a point have ended.
fn is_whole(own: &[Option<SimReport>]) -> bool {
    own.iter().all(|one| one.as_ref().is_some_and(|document| !document.interrupted))
}

impl SweepDocument {
    /// Returns whether all points met the plan's requirements.
    ///
    /// # Errors
    /// If points failed: how many, and the first of them.
    pub fn ended(&self) -> Result<Ended, Failure> {
        if let Some(FailedPoint { set, why }) = self.failed.first() {
            let (failed, all) = (self.failed.len(), self.failed.len() + self.combinations.len());
            let set = words("--set ", set);
            return Err(Failure(format!("{failed} of {all} points failed, first {set}: {why}")));
        }
        Ok(match self.combinations.iter().all(SimReport::meets_requirements) {
            _ if self.interrupted => Ended::Interrupted,
            true => Ended::Done,
            false => Ended::Missed,
        })
    }

    /// Adds a point: its document (`None` if it has not ended), or why it failed.
    pub(super) fn add(
        &mut self,
        set: &BTreeMap<String, String>,
        result: Result<Option<SimReport>, String>,
    ) {
        match result {
            Ok(Some(document)) => self.combinations.push(document),
            Ok(None) => self.interrupted = true,
            Err(why) => self.failed.push(FailedPoint { set: set.clone(), why }),
        }
    }

    /// Formats the document as text.
    pub fn text(&self) -> String {
        text(self)
    }

    /// Formats the document as an HTML page.
    pub fn page(&self, name: &str) -> String {
        page(name, self)
    }
}

impl Point {
    /// Builds the simulations of a point.
    pub fn new(
        plan: &Plan,
        grid: &Grid,
        values: &[String],
        (seeds, shifts): (&Seeds, Option<&Shifts>),
    ) -> Result<Self, KeyError> {
        let set = grid.settings(values);
        let one = set
            .iter()
            .try_fold(plan.clone(), |plan, (key, value)| plan.with(key, value, "--sweep"))?;
        let mut trials = shifts.map(|shifts| Trials::new(&one, seeds, shifts)).transpose()?;
        let plans = match &mut trials {
            // The search adds plans.
            Some(trials) if trials.is_searched() => Vec::new(),
            Some(trials) => std::mem::take(&mut trials.plans),
            None => seeds.all(&seeds.built(&one)?),
        };
        let simulations = trials.as_ref().map_or(plans.len(), |trials| trials.count);
        let named = grid.keys.iter().cloned().zip(values.iter().cloned()).collect();
        Ok(Self { set, named, trials, plans, simulations })
    }

    fn record(&self) -> bool {
        let searched = self.trials.iter().flat_map(|trials| &trials.plans);
        self.plans.iter().chain(searched).any(|plan| plan.record != OutputFiles::default())
    }

    /// Runs the simulations of this point. The error says why one failed, and its phase.
    pub fn simulate(
        &mut self,
        name: &str,
        extras: &Extras<'_>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Option<SimReport>>, String> {
        let documents = match self.trials.as_mut().filter(|trials| trials.is_searched()) {
            Some(trials) => {
                let documents = trials.run(name, extras, watch);
                self.plans = std::mem::take(&mut trials.plans);
                documents
            }
            None => pool::run_all(name, &self.plans, extras, watch),
        };
        documents.map_err(|(at, failed)| self.failed(at, &failed))
    }

    /// Returns the document of this point; `None` unless all simulations have ended.
    pub fn document(&self, own: &[Option<SimReport>]) -> Option<SimReport> {
        let whole = Some(own).filter(|own| is_whole(own))?;
        let document = match &self.trials {
            Some(trials) => SimReport { phases: Phases::new(trials, own), ..own[0].clone()? },
            None => SimReport::with_runs(whole.iter().flatten().cloned().collect())?,
        };
        Some(SimReport { set: self.named.clone(), ..document })
    }

    /// Returns why a simulation failed, and the phases of a trial.
    fn failed(&self, trial: usize, failed: &Failed) -> String {
        match self.trials.as_ref().map_or(&[][..], |trials| trials.set(trial)) {
            [] => failed.why.clone(),
            phases => format!("{}; {}", failed.why, words("--set ", pairs(phases))),
        }
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

/// Keys and values of a combination.
pub type Settings = Vec<(String, String)>;

/// Returns the plan of every combination with its settings.
///
/// # Errors
/// A mistake in the plan or a setting.
pub fn plans(plan: &Plan, sweeps: &[Sweep]) -> Result<Vec<(Settings, Planned)>, KeyError> {
    let grid = Grid::product(sweeps);
    let point = |values: &Vec<String>| {
        let mut point = Point::new(plan, &grid, values, (&Seeds::default(), None))?;
        Ok((point.set, point.plans.swap_remove(0)))
    };
    grid.points.iter().map(point).collect()
}

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

fn check_count(simulations: u64) -> Result<(), RunError> {
    match simulations {
        0..=MOST => Ok(()),
        _ => Err(RunError::Usage(format!("{simulations} simulations: at most {MOST}"))),
    }
}

/// A column: its name, a function that selects documents with it, and a function that formats it.
type Column = (&'static str, Has, fn(&SimReport) -> String);

type Has = fn(&SimReport) -> bool;

const OF_HOSTS: Has = |document| !document.hosts.is_empty();
const OF_STREAMS: Has = |document| document.hosts.is_empty();
const OF_PHASES: Has = |document| document.phases.is_some();
const OF_SEEDS: Has = |document| mean(document).is_some();
const OF_ONE_SEED: Has = |document| document.over_seeds.is_none();
const REQUIRED: Has = |document| document.verdict().is_some();

const REQUIREMENTS: &str = "requirements";

const COLUMNS: [Column; 16] = [
    ("n", OF_HOSTS, |document| latency(document).n.to_string()),
    ("mean us", OF_HOSTS, |document| {
        us(mean(document).map_or(document.latency_ns.mean, |mean| mean.mean as u64))
    }),
    ("deviation us", OF_SEEDS, |document| {
        mean(document).map_or_else(|| "-".to_owned(), |mean| us(mean.deviation as u64))
    }),
    ("95 % interval us", OF_SEEDS, |document| {
        mean(document).map_or_else(|| "-".to_owned(), interval_us)
    }),
    ("p50 us", OF_HOSTS, |document| us(latency(document).p50)),
    ("p99 us", OF_HOSTS, |document| us(latency(document).p99)),
    ("max us", OF_HOSTS, |document| us(latency(document).max)),
    ("sent", OF_STREAMS, |document| sum(document, |stream, _| stream.sent, |all| all.sent)),
    ("lost", OF_STREAMS, |document| sum(document, |_, own| own.lost, |all| all.lost)),
    ("longest us", OF_STREAMS, |document| us(longest(document))),
    ("in all phases us", OF_PHASES, |document| {
        us(document.phases.as_ref().map_or(0, Phases::largest_ns))
    }),
    ("IOPS", OF_HOSTS, |document| {
        value(document, document.iops, |all| all.iops.as_ref()).to_string()
    }),
    ("MB/s", OF_HOSTS, |document| {
        let rate = value(document, document.bytes_per_s, |all| all.bytes_per_s.as_ref());
        format!("{}.{}", rate / 1_000_000, rate / 100_000 % 10)
    }),
    (
        "fairness",
        |document| OF_HOSTS(document) && OF_ONE_SEED(document),
        |document| document.fairness.map_or_else(|| "-".to_owned(), |index| format!("{index:.4}")),
    ),
    ("busiest link", OF_ONE_SEED, |document| {
        let busiest = document.links.iter().map(|link| link.utilisation_ppm).max().unwrap_or(0);
        format!("{}.{} %", busiest / 10_000, busiest / 1000 % 10)
    }),
    (REQUIREMENTS, REQUIRED, |document| document.verdict().unwrap_or_else(|| "-".to_owned())),
];

/// Returns the mean latency over several seeds of a plan with hosts.
fn mean(document: &SimReport) -> Option<&Estimate> {
    document.over_seeds.as_ref()?.mean_latency_ns.as_ref()
}

/// Returns the mean over several seeds, or the value of the only seed.
fn value(document: &SimReport, one: u64, mean: fn(&OverSeeds) -> Option<&Estimate>) -> u64 {
    document.over_seeds.as_ref().and_then(mean).map_or(one, |mean| mean.mean as u64)
}

/// Returns the latency of the transfers of all seeds.
fn latency(document: &SimReport) -> SimLatency {
    document.over_seeds.as_ref().map_or(document.latency_ns, |all| all.latency_ns)
}

/// Returns the alignment of a column: numbers, except for one column of words.
fn align(head: &str) -> Align {
    if head == REQUIREMENTS { Align::Wrap } else { Align::Right }
}

/// Returns the sum of a count over all streams, listeners and seeds.
fn sum(
    document: &SimReport,
    one: fn(&Stream, &Listener) -> u64,
    over_seeds: fn(&StreamOverSeeds) -> u64,
) -> String {
    let sum: u64 = match &document.over_seeds {
        Some(all) => all.streams.iter().map(over_seeds).sum(),
        None => document.stream_rows().iter().map(|(_, stream, own)| one(stream, own)).sum(),
    };
    sum.to_string()
}

/// Returns the longest latency of any stream and seed in nanoseconds.
fn longest(document: &SimReport) -> u64 {
    let listeners = document.streams.iter().flat_map(|stream| &stream.listeners);
    let first = listeners.map(|listener| listener.latency_ns.max);
    let seeds = document.over_seeds.iter().flat_map(|all| &all.streams);
    first.chain(seeds.map(|stream| stream.latency_ns.max)).max().unwrap_or(0)
}

/// Returns the table: a heading of keys and columns, then one row per point.
fn rows(document: &SweepDocument) -> Vec<Vec<String>> {
    let documents = &document.combinations;
    let columns = COLUMNS.iter().filter(|(_, has, _)| documents.iter().any(has));
    let columns: Vec<_> = columns.collect();
    let keys = document.keys.iter().cloned();
    let heads = keys.chain(columns.iter().map(|(name, ..)| (*name).to_owned())).collect();
    let row = |one: &SimReport| {
        let values = document.keys.iter().map(|key| one.set[key].clone());
        values.chain(columns.iter().map(|(.., text)| text(one))).collect()
    };
    std::iter::once(heads).chain(documents.iter().map(row)).collect()
}

fn text(document: &SweepDocument) -> String {
    let rows = rows(document);
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
    for FailedPoint { set, why } in &document.failed {
        out += &format!("\nFailed: {}: {why}\n", words("", set));
    }
    if document.interrupted {
        out += &format!("\n{INTERRUPTED}\n");
    }
    out
}

fn page(name: &str, document: &SweepDocument) -> String {
    let mut page = Page::new(&format!("farlane sim {name}"));
    page.text(&format!("Every combination of {}, simulated.", document.keys.join(", ")));
    for FailedPoint { set, why } in &document.failed {
        page.warning(&format!("Failed: {}: {why}", words("", set)));
    }
    if document.interrupted {
        page.warning(INTERRUPTED);
    }
    let mut rows = rows(document).into_iter();
    let heads = rows.next().unwrap_or_default();
    let heads: Vec<_> = heads.iter().map(|name| (name.as_str(), align(name))).collect();
    let mut table = Table::new(&heads);
    rows.for_each(|row| table.row(row));
    page.table(&table);
    page.figures(&pictures::all(&document.keys, &document.combinations));
    page.section("The plan");
    page.preformatted(&document.plan_text);
    finish_with_data(page, "JSON", document)
}
