//! `--phases`: the worst of several trials with different phases.

use super::document::{FailedRun, SimReport};
use super::pool::{self, Extras};
use super::search::{LatencyBounds, Search};
use super::simulate::{Failed, RunOptions};
use super::text::us;
use super::{RunError, Seeds, Shifts, Watch};
use crate::simulate::PagePhases;
use crate::simulate::requirements::{self, Row};
use crate::{KeyError, Plan, Planned, Shift, Trial};
use report::Align::{Left, Right};
use report::document::rounded;
use report::{Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Trials with other phases (docs/plan.md#phases), and the largest observed values.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Phases {
    /// Number of trials, including trial 0: the plan as written.
    pub tried: usize,
    /// Only with `--search`: number of trials that the search chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched: Option<usize>,
    /// Seed of the phases, and of all random numbers in each trial.
    pub seed: u64,
    /// The values that the trials shift.
    pub shifts: Vec<Range>,
    /// The longest latency of each host and stream.
    pub observed: Vec<Observed>,
    /// Each requirement in the trial that is the worst for it.
    pub requirements: Vec<TriedRequirement>,
    /// The trials with the largest value of a host, stream or requirement.
    pub trials: Vec<NamedTrial>,
}

/// A key that trials shift.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "Shift")]
pub struct Range {
    /// Dotted path of the key.
    pub key: String,
    /// Value in trial 0.
    pub written_ps: i64,
    /// The other trials add less than this.
    pub within_ns: u64,
}

/// The largest latency of a host or stream.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Observed {
    /// Name of the host or stream.
    pub name: String,
    /// The longest latency of trial 0.
    pub as_written_ns: u64,
    /// The longest latency of all trials: the largest observed one, not a bound.
    pub largest_ns: u64,
    /// Number of the trial with `largest_ns`; the first of several equal ones.
    pub trial: usize,
    /// Only with `--search`: the guaranteed latency (`farlane tsn bound`), which holds in every
    /// phase, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<u64>,
    /// Only with `--search`: why there is no `bound_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `bound_ns` divided by `largest_ns`, if there is a bound and a frame or command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tightness: Option<f64>,
}

impl Observed {
    /// Compares the row with the bounds of a search.
    fn compare(&mut self, bounds: &LatencyBounds) {
        match bounds.get(&self.name) {
            Some(Ok(bound)) => {
                let ratio = rounded(*bound as f64 / self.largest_ns as f64, 3);
                self.bound_ns = Some(*bound);
                self.tightness = (self.largest_ns > 0).then_some(ratio);
            }
            Some(Err(why)) => self.why = Some(why.clone()),
            None => self.why = Some("the host sends no NVMe commands".to_owned()),
        }
    }
}

/// A requirement in the trial that is the worst for it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct TriedRequirement {
    /// The requirement.
    #[serde(flatten)]
    pub row: Row,
    /// Number of the trial; the first of several equal ones.
    pub trial: usize,
}

/// A trial, and how to repeat it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "Trial")]
pub struct NamedTrial {
    /// Number of the trial.
    pub trial: usize,
    /// Values as text by dotted key. `--set KEY=VALUE` for each of them repeats the trial with the
    /// same `digest`.
    pub set: BTreeMap<String, String>,
    /// Digest of everything that happened, 16 hexadecimal digits.
    pub digest: String,
}

/// The trials of a plan.
pub struct Trials {
    seed: u64,
    shifts: Vec<Shift>,
    trials: Vec<Trial>,
    /// The plan, and the bounds of its hosts and streams, if the trials are searched.
    searched: Option<(Plan, LatencyBounds)>,
    /// Number of random trials and trial 0.
    random: usize,
    /// Number of trials, including those that a search adds.
    pub count: usize,
    /// A simulation for each trial.
    pub plans: Vec<Planned>,
}

impl Trials {
    /// Builds the trials of `shifts`. The error is a key that cannot be shifted.
    pub fn new(plan: &Plan, options: &Seeds, shifts: &Shifts) -> Result<Self, KeyError> {
        let planned = options.built(plan)?;
        let seed = planned.config.seed;
        let count = shifts.trials as usize;
        let has_subjects = !planned.hosts.is_empty() || !planned.streams.is_empty();
        let search = shifts.search.filter(|_| has_subjects);
        let first = search.map_or(shifts.trials, |_| shifts.trials.div_ceil(3).max(2));
        let searched = search.map(|bounds| (plan.clone(), bounds(&planned)));
        let (shifts, trials) = plan.phases(first, seed, &shifts.keys)?;
        let plans = trials.iter().map(|trial| trial.planned.clone().with_seed(seed)).collect();
        let random = trials.len();
        Ok(Self { seed, shifts, trials, searched, random, count, plans })
    }

    /// Returns whether a search adds trials.
    pub fn is_searched(&self) -> bool {
        self.searched.is_some()
    }

    /// Runs all trials. A search adds trials until there are [`count`](Self::count). After a stop,
    /// trials that have not begun have no document. The error is that of a trial, with its number.
    pub(super) fn run(
        &mut self,
        name: &str,
        extras: &Extras<'_>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Option<SimReport>>, (usize, Failed)> {
        /// Trials at once, each from the best of all earlier ones.
        const BATCH: usize = 4;
        let Some((plan, bounds)) = &self.searched else {
            return pool::run_all(name, &self.plans, extras, watch);
        };
        let mut search = Search::new(&self.shifts, &self.plans[0]);
        let (mut all, mut aims) = (Vec::new(), vec![Vec::new(); self.plans.len()]);
        loop {
            let first = all.len();
            let extras = Extras { first: extras.first + first, contention: true, ..*extras };
            let show = |state: Option<&str>| {
                let trials = |state| format!("trial {first} of {}, {state}", self.count);
                (watch.progress)(state.map(trials).as_deref());
            };
            let batch = Watch { is_stopped: watch.is_stopped, progress: &show };
            let documents = pool::run_all(name, &self.plans[first..], &extras, &batch);
            all.extend(documents.map_err(|(at, failed)| (first + at, failed))?);
            if all.len() >= self.count || (watch.is_stopped)() {
                all.resize_with(self.count, || None);
                return Ok(all);
            }
            for (at, document) in all.iter_mut().enumerate().skip(first) {
                let trial = (&self.trials[at].added[..], &aims[at][..]);
                document.iter_mut().for_each(|document| search.learn(trial, document, bounds));
            }
            for (added, subjects) in search.next(BATCH.min(self.count - all.len()), &self.plans) {
                let trial = plan
                    .trial(&self.shifts, added)
                    .map_err(|error| (0, Failed { why: error.to_string(), limits: Vec::new() }))?;
                self.plans.push(trial.planned.clone().with_seed(self.seed));
                self.trials.push(trial);
                aims.push(subjects);
            }
        }
    }

    /// Returns the keys and values that change the plan to this trial; empty for the plan as
    /// written.
    pub fn set(&self, trial: usize) -> &[(String, String)] {
        &self.trials[trial].set
    }
}

/// Runs all trials. Returns the document of the plan as written, with the results of all trials,
/// and whether the files of `options.requested` were written. If `watch` stops the run during the
/// trials, no file is written.
///
/// # Errors
/// If a trial cannot be built, or a run fails.
pub fn run(
    plan: &Plan,
    (seeds, shifts): (&Seeds, &Shifts),
    options: RunOptions,
    watch: &Watch<'_>,
) -> Result<(SimReport, bool), RunError> {
    let name = &options.name.clone();
    let mut trials = Trials::new(plan, seeds, shifts)?;
    let extras = Extras { tables: options.tables.as_deref(), ..Extras::default() };
    let all = trials.run(name, &extras, watch);
    let failed = |(at, mut failed): (usize, Failed)| {
        let document = FailedRun::new(&options, &trials.plans[at], &failed);
        if at > 0 {
            failed.why =
                format!("{}; trial {at}: {}", failed.why, words("--set ", pairs(trials.set(at))));
        }
        RunError::Failed(failed, Box::new(document))
    };
    let all = all.map_err(failed)?;
    let phases = Phases::new(&trials, &all);
    let interrupted = (watch.is_stopped)();
    if let Some(tables) = &options.tables {
        tables.write_runs(&trials.plans, &all);
    }
    // The plan as written runs once more, for limits and files.
    let is_written = phases.is_some() && !interrupted;
    let mut documents = match &phases {
        Some(phases) if is_written => {
            let options = RunOptions { phases: Some(phases.page()), ..options.clone() };
            let extras = Extras { requested: Some(&options), ..Extras::default() };
            pool::run_all(name, &trials.plans[..1], &extras, watch).map_err(failed)?
        }
        _ => all,
    };
    let mut document = documents.swap_remove(0).expect("the first one always runs");
    document.interrupted |= interrupted;
    document.plan_text = options.text.clone();
    document.phases = phases;
    Ok((document, is_written))
}

/// Returns keys and values as references.
pub fn pairs(set: &[(String, String)]) -> impl Iterator<Item = (&String, &String)> {
    set.iter().map(|(key, value)| (key, value))
}

/// Formats settings, each after `prefix`: with `--set ` as the options that repeat a trial, or a
/// combination of a sweep.
pub fn words<'a>(prefix: &str, set: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let word = |(key, value)| format!("{prefix}{key}={value}");
    set.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

impl Phases {
    /// Collects the results of the finished trials; `None` if the plan as written did not finish.
    pub fn new(trials: &Trials, all: &[Option<SimReport>]) -> Option<Self> {
        fn whole((trial, document): (usize, &Option<SimReport>)) -> Option<(usize, &SimReport)> {
            Some((trial, document.as_ref().filter(|document| !document.interrupted)?))
        }
        let all: Vec<(usize, &SimReport)> = all.iter().enumerate().filter_map(whole).collect();
        let (_, written) = all.first().filter(|(trial, _)| *trial == 0)?;
        let latencies: Vec<_> = all.iter().map(|(_, document)| latencies(document)).collect();
        let observed = latencies[0].iter().enumerate().map(|(row, (name, as_written_ns))| {
            let (at, largest_ns) = largest(latencies.iter().map(|values| values[row].1));
            let (name, as_written_ns) = (name.clone(), *as_written_ns);
            let trial = all[at].0;
            let (bound_ns, why, tightness) = (None, None, None);
            let mut row =
                Observed { name, as_written_ns, largest_ns, trial, bound_ns, why, tightness };
            trials.searched.iter().for_each(|(_, bounds)| row.compare(bounds));
            row
        });
        let observed: Vec<_> = observed.collect();
        let requirements = (0..written.requirements.len()).map(|row| {
            let row = |document: &SimReport| document.requirements[row].clone();
            let (at, _) = largest(all.iter().map(|(_, document)| row(document).badness()));
            let (trial, document) = all[at];
            TriedRequirement { row: row(document), trial }
        });
        let requirements: Vec<_> = requirements.collect();
        let is_worst = |trial: usize| {
            observed.iter().any(|row| row.trial == trial)
                || requirements.iter().any(|row| row.trial == trial)
        };
        let named = all.iter().filter(|(trial, _)| is_worst(*trial));
        let named = named.map(|(trial, document)| NamedTrial {
            trial: *trial,
            set: trials.set(*trial).iter().cloned().collect(),
            digest: document.digest.clone(),
        });
        let range = |shift: &Shift| Range {
            key: shift.key.clone(),
            written_ps: shift.written_ps,
            within_ns: shift.within.as_ns(),
        };
        let (tried, trials_named) = (all.len(), named.collect());
        let searched = trials.is_searched().then(|| tried.saturating_sub(trials.random));
        Some(Self {
            tried,
            searched,
            seed: trials.seed,
            shifts: trials.shifts.iter().map(range).collect(),
            observed,
            requirements,
            trials: trials_named,
        })
    }

    /// Returns the largest of all latencies in nanoseconds.
    pub fn largest_ns(&self) -> u64 {
        self.observed.iter().map(|row| row.largest_ns).max().unwrap_or(0)
    }

    /// Returns whether all trials meet all requirements.
    pub fn meets_requirements(&self) -> bool {
        self.requirements.iter().all(|required| required.row.holds)
    }

    fn title(&self) -> String {
        let searched = self.searched.map(|count| format!(", {count} of them searched"));
        let searched = searched.unwrap_or_default();
        format!("largest observed of {} tried phases{searched}, not a bound", self.tried)
    }

    /// Returns a table of the latencies of hosts and streams.
    fn latencies(&self) -> Table {
        const COLUMNS: [Column<Observed>; 6] = [
            ("latency in us", Left, |row| row.name.clone()),
            ("as written", Right, |row| us(row.as_written_ns)),
            ("largest observed", Right, |row| us(row.largest_ns)),
            ("trial", Right, |row| row.trial.to_string()),
            ("bound", Right, |row| row.bound_ns.map_or_else(|| "none".to_owned(), us)),
            ("bound / largest", Right, |row| {
                row.tightness.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
            }),
        ];
        Table::from_rows(&COLUMNS[..if self.searched.is_some() { 6 } else { 4 }], &self.observed)
    }

    /// Returns a table of the requirements, each in its worst trial.
    fn required(&self) -> Table {
        let rows = self.requirements.iter();
        requirements::table_of_trials(rows.map(|TriedRequirement { row, trial }| (row, *trial)))
    }

    /// Returns a line for each trial that a table names.
    fn named(&self) -> Vec<String> {
        let line = |trial: &NamedTrial| match trial.trial {
            0 => "trial 0: the plan as it is written".to_owned(),
            number => format!("trial {number}: {}", words("--set ", &trial.set)),
        };
        self.trials.iter().map(line).collect()
    }

    /// Formats the results as text.
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

/// Returns the first of the largest values, with its index.
fn largest<T: Ord>(values: impl Iterator<Item = T>) -> (usize, T) {
    let all = values.enumerate();
    let larger = |best: (usize, T), next: (usize, T)| if next.1 > best.1 { next } else { best };
    all.reduce(larger).expect("the plan as it is written")
}

/// Returns the names, as in [`Observed`], and the longest latencies in nanoseconds of all hosts and
/// streams.
pub fn latencies(document: &SimReport) -> Vec<(String, u64)> {
    let hosts = document.hosts.iter();
    let hosts = hosts.map(|host| (format!("host {}", host.host), host.latency_ns.max));
    let streams = document.stream_rows().into_iter();
    let streams = streams.map(|(name, _, own)| (format!("stream {name}"), own.latency_ns.max));
    hosts.chain(streams).collect()
}
