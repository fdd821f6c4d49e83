//! `--sweep`: every combination of several values of several keys.

mod pictures;

use super::document::{Listener, SimLatency, SimReport, Stream, SweepDocument};
use super::over_seeds::{Estimate, OverSeeds, StreamOverSeeds, interval_us};
use super::parts::{RunTables, Simulated};
use super::phases::{Phases, Trials, words};
use super::pool::{self, Extras};
use super::resume::Resume;
use super::simulate::Failed;
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

/// A combination: its settings, and its simulations: one per seed or phase.
struct Point {
    set: Vec<(String, String)>,
    values: Vec<String>,
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
    /// Simulations of earlier calls.
    pub resume: Option<&'a Resume>,
}

/// Every combination of the values of several keys.
pub struct Combinations {
    sweeps: Vec<Sweep>,
    points: Vec<Point>,
    plans: Vec<Planned>,
}

impl Combinations {
    /// Builds the combinations of `sweeps`, each with all seeds, or in all phases of `shifts`. The
    /// error is a mistake in the plan, or too many simulations.
    pub fn new(
        plan: &Plan,
        sweeps: &[Sweep],
        seeds: &Seeds,
        shifts: Option<&Shifts>,
    ) -> Result<Self, RunError> {
        let all = product(sweeps);
        let each = shifts.map_or(seeds.runs.unwrap_or(1), |shifts| shifts.trials);
        check_count((all.len() as u64).saturating_mul(each))?;
        let point = |values| Point::new(plan, sweeps, values, (seeds, shifts));
        let mut points = all.into_iter().map(point).collect::<Result<Vec<_>, _>>()?;
        // The plan can have `runs`, which may differ between combinations.
        check_count(points.iter().map(|point| point.simulations as u64).sum())?;
        let plans = points.iter_mut().flat_map(|point| std::mem::take(&mut point.plans)).collect();
        Ok(Self { sweeps: sweeps.to_vec(), points, plans })
    }

    /// Returns whether the plan has a record table, which a sweep ignores.
    pub fn record(&self) -> bool {
        let searched = self.points.iter().flat_map(|point| &point.trials);
        let mut plans = self.plans.iter().chain(searched.flat_map(|trials| &trials.plans));
        plans.any(|plan| plan.record != OutputFiles::default())
    }

    /// Runs all combinations.
    ///
    /// # Errors
    /// If a run fails: the reason, and the values of the combination.
    pub fn run(
        &mut self,
        options: &SweepOptions<'_>,
        watch: &Watch<'_>,
    ) -> Result<SweepDocument, Failure> {
        let SweepOptions { name, text, tables, resume } = *options;
        let extras = Extras { tables, resume, ..Extras::default() };
        let documents = self.simulate(name, &extras, watch).map_err(|(at, failed)| {
            let set = self.places().nth(at).map(|(point, trial)| point.words(trial));
            Failure(format!("{}; {}", failed.why, set.unwrap_or_default()))
        })?;
        let mut rest = &documents[..];
        let is_whole = |own: &[Option<SimReport>]| {
            own.iter().all(|one| one.as_ref().is_some_and(|document| !document.interrupted))
        };
        // A combination is complete if all its seeds and phases have ended.
        let complete: Vec<Option<&[_]>> = self
            .points
            .iter()
            .map(|point| {
                let (own, others) = rest.split_at(point.simulations);
                rest = others;
                is_whole(own).then_some(own)
            })
            .collect();
        let interrupted = complete.iter().any(Option::is_none);
        if let Some(tables) = tables {
            let is_complete: Vec<bool> = complete.iter().map(Option::is_some).collect();
            self.write(tables, &documents, &is_complete);
        }
        let combination = |(point, own): (&Point, Option<&[Option<SimReport>]>)| {
            let own = own?;
            let keys = self.sweeps.iter().map(|sweep| sweep.key.clone());
            let set = keys.zip(point.values.iter().cloned()).collect();
            let document = match &point.trials {
                Some(trials) => {
                    let phases = Phases::new(trials, own);
                    SimReport { phases, ..own[0].clone()? }
                }
                None => SimReport::with_runs(own.iter().flatten().cloned().collect())?,
            };
            Some(SimReport { set, ..document })
        };
        let combinations = self.points.iter().zip(complete).filter_map(combination).collect();
        Ok(SweepDocument::new((name, text), combinations, interrupted))
    }

    /// Runs all simulations, all at once, or one combination after the other if each is searched.
    fn simulate(
        &mut self,
        name: &str,
        extras: &Extras<'_>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Option<SimReport>>, (usize, Failed)> {
        if !self.points.iter().flat_map(|point| &point.trials).any(Trials::is_searched) {
            return pool::run_all(name, &self.plans, extras, watch);
        }
        let mut all = Vec::new();
        for point in &mut self.points {
            let first = all.len();
            let Some(trials) =
                point.trials.as_mut().filter(|_| first == 0 || !(watch.is_stopped)())
            else {
                all.resize_with(first + point.simulations, || None);
                continue;
            };
            let extras = Extras { first, ..*extras };
            let documents = trials.run(name, &extras, watch);
            all.extend(documents.map_err(|(at, failed)| (first + at, failed))?);
            self.plans.append(&mut trials.plans);
        }
        Ok(all)
    }

    /// Returns the combination of each simulation, and the number of the simulation in it.
    fn places(&self) -> impl Iterator<Item = (&Point, usize)> {
        self.points.iter().flat_map(|point| (0..point.simulations).map(move |at| (point, at)))
    }

    /// Writes the tables of all complete combinations.
    fn write(&self, tables: &RunTables, documents: &[Option<SimReport>], is_complete: &[bool]) {
        let settings: Vec<String> = self.points.iter().map(Point::settings).collect();
        let points = settings.iter().zip(is_complete).zip(&self.points);
        let places = points.flat_map(|((set, is_complete), point)| {
            (0..point.simulations).map(move |run| (set, *is_complete, run as u64))
        });
        let simulations = places.zip(&self.plans).zip(documents).enumerate();
        let simulated = simulations.filter_map(|(part, ((place, planned), document))| {
            let ((set, true, run), Some(document)) = (place, document) else { return None };
            Some(Simulated { part, run, set, planned, document })
        });
        tables.write(simulated, !is_complete.contains(&false));
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
        let mut trials = shifts.map(|shifts| Trials::new(&one, seeds, shifts)).transpose()?;
        let plans = match &mut trials {
            // The search adds plans.
            Some(trials) if trials.is_searched() => Vec::new(),
            Some(trials) => std::mem::take(&mut trials.plans),
            None => seeds.all(&seeds.built(&one)?),
        };
        let simulations = trials.as_ref().map_or(plans.len(), |trials| trials.count);
        Ok(Self { set, values, trials, plans, simulations })
    }

    /// Returns the settings as text.
    fn settings(&self) -> String {
        words("", &self.set)
    }

    fn words(&self, trial: usize) -> String {
        let phase = self.trials.as_ref().map_or(&[][..], |trials| trials.set(trial));
        words("--set ", self.set.iter().chain(phase))
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
    let point = |values| {
        let mut point = Point::new(plan, sweeps, values, (&Seeds::default(), None))?;
        Ok((point.set, point.plans.swap_remove(0)))
    };
    product(sweeps).into_iter().map(point).collect()
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
    page.section("The plan");
    page.preformatted(&document.plan_text);
    finish_with_data(page, "JSON", document)
}
