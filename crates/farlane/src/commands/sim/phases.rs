//! `--phases`: the worst of several tried phases.

use super::document::Document;
use super::print::us;
use super::simulate::{Failed, RunOptions};
use super::{Args, Failure, json, pool};
use plan::simulate::PagePhases;
use plan::simulate::requirements::{self, Row};
use plan::{Plan, Shift, Trial};
use report::Align::{Left, Right};
use report::{Column, Table};
use serde::Serialize;
use std::collections::BTreeMap;

/// What was tried, and the largest values that were observed.
#[derive(Clone, Debug, Serialize)]
pub struct Phases {
    /// Simulations, the plan as it is written among them.
    pub tried: usize,
    /// Of the draws.
    pub seed: u64,
    pub shifts: Vec<Range>,
    pub observed: Vec<Observed>,
    pub requirements: Vec<Required>,
    /// Those in which something was largest.
    pub trials: Vec<Named>,
}

/// What trials shift.
#[derive(Clone, Debug, Serialize)]
pub struct Range {
    pub key: String,
    pub written_ps: i64,
    pub within_ns: u64,
}

/// The largest latency of a host or a stream.
#[derive(Clone, Debug, Serialize)]
pub struct Observed {
    pub name: String,
    pub as_written_ns: u64,
    pub largest_ns: u64,
    pub trial: usize,
}

/// A requirement in the trial that is the worst for it.
#[derive(Clone, Debug, Serialize)]
pub struct Required {
    #[serde(flatten)]
    pub row: Row,
    pub trial: usize,
}

/// A trial, with what turns the plan into it.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    pub trial: usize,
    pub set: BTreeMap<String, String>,
    pub digest: String,
}

/// Runs all trials: the document of the plan as it is written, with what they showed.
pub fn run(args: &Args, plan: &Plan, count: u64, options: RunOptions) -> Result<Document, Failure> {
    let (name, seed) = (args.plan.display().to_string(), super::built(args, plan)?.config.seed);
    let (shifts, trials) =
        plan.phases(count, seed, &args.shift).map_err(|error| Failure(error.to_string()))?;
    let plans: Vec<_> = trials.iter().map(|trial| trial.planned.clone().with_seed(seed)).collect();
    let failed = |at: usize, failed: Failed| {
        let words = words(trials[at].set.iter().map(|(key, value)| (key, value)));
        if args.json {
            let assumed = &options.assumed;
            println!("{}", json(&super::FailedRun::new(&name, &plans[at], assumed, &failed)));
        }
        let why = failed.why;
        Failure(if at == 0 { why } else { format!("{why}; trial {at}: {words}") })
    };
    let all = pool::run_all(&name, &plans, None).map_err(|(at, why)| failed(at, why))?;
    let phases = Phases::new(seed, &shifts, &trials, &all);
    // Once more, for limits and files.
    let options = RunOptions { phases: Some(phases.page()), ..options };
    let written = pool::run_all(&name, &plans[..1], Some(&options));
    let mut document = written.map_err(|(at, why)| failed(at, why))?.remove(0);
    document.phases = Some(phases);
    Ok(document)
}

/// What repeats a trial.
fn words<'a>(set: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    set.map(|(key, value)| format!("--set {key}={value}")).collect::<Vec<_>>().join(" ")
}

impl Phases {
    fn new(seed: u64, shifts: &[Shift], trials: &[Trial], all: &[Document]) -> Self {
        let latencies: Vec<_> = all.iter().map(latencies).collect();
        let observed = latencies[0].iter().enumerate().map(|(row, (name, as_written_ns))| {
            let (trial, largest_ns) = largest(latencies.iter().map(|of| of[row].1));
            let (name, as_written_ns) = (name.clone(), *as_written_ns);
            Observed { name, as_written_ns, largest_ns, trial }
        });
        let observed: Vec<_> = observed.collect();
        let requirements = (0..all[0].requirements.len()).map(|at| {
            let row = |document: &Document| document.requirements[at].clone();
            let badness = |row: Row| (!row.holds, row.worst_ns, row.late);
            let (trial, _) = largest(all.iter().map(|document| badness(row(document))));
            Required { row: row(&all[trial]), trial }
        });
        let requirements: Vec<_> = requirements.collect();
        let mut named: Vec<usize> = observed.iter().map(|row| row.trial).collect();
        named.extend(requirements.iter().map(|row| row.trial));
        named.sort_unstable();
        named.dedup();
        let name = |trial: usize| Named {
            trial,
            set: trials[trial].set.iter().cloned().collect(),
            digest: all[trial].digest.clone(),
        };
        let range = |shift: &Shift| Range {
            key: shift.key.clone(),
            written_ps: shift.written_ps,
            within_ns: shift.within.as_ns(),
        };
        Self {
            tried: all.len(),
            seed,
            shifts: shifts.iter().map(range).collect(),
            observed,
            requirements,
            trials: named.into_iter().map(name).collect(),
        }
    }

    /// Whether all trials meet all requirements.
    pub fn meets_requirements(&self) -> bool {
        self.requirements.iter().all(|required| required.row.holds)
    }

    fn title(&self) -> String {
        format!("largest observed of {} tried phases, not a bound", self.tried)
    }

    /// Latencies of hosts and streams.
    fn latencies(&self) -> Table {
        const COLUMNS: [Column<Observed>; 4] = [
            ("latency in us", Left, |row| row.name.clone()),
            ("as written", Right, |row| us(row.as_written_ns)),
            ("largest observed", Right, |row| us(row.largest_ns)),
            ("trial", Right, |row| row.trial.to_string()),
        ];
        Table::of(&COLUMNS, &self.observed)
    }

    /// Requirements, each in its worst trial.
    fn required(&self) -> Table {
        let rows = self.requirements.iter();
        requirements::table_of_trials(rows.map(|Required { row, trial }| (row, *trial)))
    }

    /// A line for each trial that a table names.
    fn named(&self) -> Vec<String> {
        let line = |trial: &Named| match trial.trial {
            0 => "trial 0: the plan as it is written".to_owned(),
            number => format!("trial {number}: {}", words(trial.set.iter())),
        };
        self.trials.iter().map(line).collect()
    }

    /// What it says for people.
    pub fn text(&self) -> String {
        let mut out = format!("Phases: {}\n", self.title());
        let tables = [self.latencies(), self.required()];
        let shown = if self.requirements.is_empty() { &tables[..1] } else { &tables[..] };
        for table in shown {
            out += &format!("{}\n", table.text());
        }
        out += &(self.named().join("\n") + "\n");
        let keys: Vec<&str> = self.shifts.iter().map(|shift| shift.key.as_str()).collect();
        out + &format!("shifted: {}; all else below is of trial 0\n\n", keys.join(", "))
    }

    fn page(&self) -> PagePhases {
        let title = self.title();
        PagePhases {
            text: format!("The {title}. Everything else on this page is of trial 0."),
            latencies: self.latencies(),
            requirements: (!self.requirements.is_empty()).then(|| self.required()),
            trials: self.named().join("\n"),
            met: self.meets_requirements(),
        }
    }
}

/// The first of the largest values, with its place.
fn largest<T: Ord>(values: impl Iterator<Item = T>) -> (usize, T) {
    let all = values.enumerate();
    let larger = |best: (usize, T), next: (usize, T)| if next.1 > best.1 { next } else { best };
    all.reduce(larger).expect("the plan as it is written")
}

/// The longest latency of each host and stream.
fn latencies(document: &Document) -> Vec<(String, u64)> {
    let hosts = document.hosts.iter();
    let hosts = hosts.map(|host| (format!("host {}", host.host), host.latency_ns.max));
    let streams = document.streams.iter();
    let streams = streams.map(|of| (format!("stream {}", of.name), of.latency_ns.max));
    hosts.chain(streams).collect()
}
