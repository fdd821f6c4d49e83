//! The document of `farlane compare`, its text and its page.

use crate::compare::{Case, CaseRounds, Figures, Rounds};
use analysis::trace::MeasureKind;
use plan::Machine;
use plan::run::phases::{pairs, words};
use report::document::{INTERRUPTED, finish_with_data, rounded};
use report::{Align, Column, Page, Table, time};
use schemars::JsonSchema;
use serde::Serialize;
use stats::medians::{self, Estimate};
use std::collections::BTreeMap;

/// Version of the document.
const SCHEMA: u32 = 1;
/// Spread of the floor's round trips beyond which a machine counts as busy, in per cent.
const BUSY: f64 = 15.0;

/// A plan in both worlds. Times are medians over the rounds, in nanoseconds. An error is the
/// simulated value relative to the live value, minus one, in per cent.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "WorldComparison")]
pub struct CompareDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    pub schema: u32,
    /// The file of the plan, as given.
    pub plan: String,
    /// The text of the plan, with `--set` as comments.
    pub plan_text: String,
    /// `true`, only after Ctrl-C: the document contains the finished rounds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Number of rounds.
    pub rounds: usize,
    /// Raw TCP over the network of the first case.
    pub floor: FloorSummary,
    /// Why the errors may be those of the machine rather than of the model, and why rounds are
    /// missing, if so.
    pub warnings: Vec<String>,
    /// The cases: combinations of `--sweep`.
    pub cases: Vec<CompareCase>,
}

/// Raw TCP during the rounds.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct FloorSummary {
    /// Median of the rounds' median round trip of 64 bytes, in nanoseconds.
    pub round_trip_ns: u64,
    /// Interquartile range of the rounds' medians, in per cent of the median.
    pub spread_percent: f64,
    /// Median of the rounds' throughput of a stream with a copy on each side, in bytes per second.
    pub stream_bytes_per_s: u64,
}

/// One combination in both worlds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CompareCase {
    /// The settings of the combination, as text by dotted key.
    pub set: BTreeMap<String, String>,
    /// Latencies and throughputs.
    pub figures: Vec<WorldFigure>,
    /// The parts of a command in one recorded run of both worlds, by type of command. Recording
    /// slows live nodes down.
    pub stages: Vec<StageFigure>,
    /// Failed commands and wrong data in live runs.
    pub failures: u64,
}

/// One measure in both worlds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WorldFigure {
    /// `p50_ns`, `mean_ns`, `p99_ns`, `iops` or `bytes_per_s`.
    pub measure: &'static str,
    /// Median of the live runs.
    pub live: u64,
    /// Median of the simulations.
    pub sim: u64,
    /// The error.
    pub error: Option<ErrorEstimate>,
}

/// An error with its confidence interval, in per cent.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct ErrorEstimate {
    /// The error.
    pub percent: f64,
    /// Lower and upper end of the 95 % interval, from order statistics of the rounds; null with
    /// fewer than eight rounds, or if rounds depend strongly on earlier ones.
    pub interval: Option<(f64, f64)>,
}

/// One part of a command in both worlds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct StageFigure {
    /// Type of the command.
    pub command: String,
    /// The part, as `farlane trace` names it.
    pub part: String,
    /// Median of the live commands, in nanoseconds.
    pub live_ns: u64,
    /// Median of the simulated commands, in nanoseconds.
    pub sim_ns: u64,
    /// The error.
    pub error: Option<ErrorEstimate>,
}

/// A measure of a run: name, value, and whether it is a time.
type Measure = (&'static str, fn(&Figures) -> u64, bool);

const MEASURES: [Measure; 5] = [
    ("p50_ns", |run| run.latency.p50, true),
    ("mean_ns", |run| run.latency.mean, true),
    ("p99_ns", |run| run.latency.p99, true),
    ("iops", |run| run.iops, false),
    ("bytes_per_s", |run| run.bytes_per_s, false),
];

/// Returns a ratio as an error.
fn error(ratio: Option<Estimate>) -> Option<ErrorEstimate> {
    let percent = |ratio: f64| rounded((ratio - 1.0) * 100.0, 2);
    let Estimate { value, interval } = ratio?;
    let interval = interval.map(|(low, high)| (percent(low), percent(high)));
    Some(ErrorEstimate { percent: percent(value), interval })
}

impl CompareDocument {
    /// Creates the document. `calibrated` and `here` are the machine of the calibration and this
    /// machine.
    pub fn new(
        (plan, plan_text): (&str, String),
        cases: &[Case],
        rounds: &Rounds,
        (calibrated, here): (Option<&Machine>, &Machine),
    ) -> Self {
        let floor = floor(rounds);
        let mut warnings = Vec::new();
        if floor.spread_percent > BUSY {
            warnings.push(format!(
                "the machine is busy: the round trips of raw TCP spread by {:.0} % from round to \
                 round",
                floor.spread_percent
            ));
        }
        match calibrated {
            None => warnings.push(
                "the plan names no calibration: its delays are not those of this machine".into(),
            ),
            Some(machine) => warnings.extend(
                machine
                    .difference(here)
                    .map(|words| format!("the calibration is of another machine: {words}")),
            ),
        }
        for (case, rounds) in cases.iter().zip(&rounds.cases).filter(|(_, one)| one.failed() > 0) {
            let set = case.words();
            warnings.push(format!("{} live commands failed: {set}", rounds.failed()));
        }
        warnings.extend(rounds.failure.as_ref().map(ToString::to_string));
        let cases = cases.iter().zip(&rounds.cases);
        Self {
            schema: SCHEMA,
            plan: plan.to_owned(),
            plan_text,
            interrupted: rounds.interrupted,
            rounds: rounds.cases.iter().map(|case| case.live.len()).min().unwrap_or(0),
            floor,
            warnings,
            cases: cases.map(|(case, rounds)| CompareCase::new(case, rounds)).collect(),
        }
    }

    /// Formats the document as text.
    pub fn text(&self) -> String {
        let FloorSummary { round_trip_ns, spread_percent, stream_bytes_per_s } = self.floor;
        let mut out = format!(
            "{}: {} rounds in turns; raw TCP: round trip {} (spread {spread_percent:.0} %), stream \
             {} MB/s\n",
            self.plan,
            self.rounds,
            time(round_trip_ns as f64),
            stream_bytes_per_s / 1_000_000
        );
        if self.interrupted {
            out += &format!("{INTERRUPTED}\n");
        }
        out += &format!("\n{}", self.table().text());
        for case in self.cases.iter().filter(|case| !case.stages.is_empty()) {
            out += &format!("\n{}, recorded\n{}", case.heading(), case.stage_table().text());
        }
        out
    }

    /// Formats the document as an HTML page.
    pub fn page(&self) -> String {
        let mut page = Page::new(&format!("farlane compare {}", self.plan));
        page.text(&format!(
            "The same plan on live nodes and simulated, {} rounds in turns. An error is the \
             simulated value relative to the live value, minus one, with its 95 % confidence \
             interval.",
            self.rounds
        ));
        if self.interrupted {
            page.warning(INTERRUPTED);
        }
        self.warnings.iter().for_each(|warning| page.warning(warning));
        page.table(&self.table());
        page.figures(&crate::compare_pictures::all(self));
        for case in self.cases.iter().filter(|case| !case.stages.is_empty()) {
            page.section(&format!("Where the time of a command goes: {}", case.heading()));
            page.note("One recorded run of both worlds. Recording slows live nodes down.");
            page.table(&case.stage_table());
        }
        page.details("Plan", &self.plan_text);
        finish_with_data(page, "JSON", self)
    }

    fn table(&self) -> Table {
        let mut heads = vec![("case", Align::Left)];
        heads.extend(
            ["live p50", "sim p50", "error", "95 % interval", "live p99", "sim p99", "error"]
                .map(|name| (name, Align::Right)),
        );
        heads.extend(["live IOPS", "sim IOPS", "error"].map(|name| (name, Align::Right)));
        let mut table = Table::new(&heads);
        for case in &self.cases {
            let cells = |name, interval: bool| -> Vec<String> {
                let Some(figure) = case.figure(name) else {
                    return vec!["–".to_owned(); if interval { 4 } else { 3 }];
                };
                let value = |value: u64| match name {
                    "iops" => value.to_string(),
                    _ => time(value as f64),
                };
                let mut cells = vec![value(figure.live), value(figure.sim), percent(figure.error)];
                cells.extend(interval.then(|| self::interval(figure.error)));
                cells
            };
            let name = vec![case.heading()];
            table.row(
                [name, cells("p50_ns", true), cells("p99_ns", false), cells("iops", false)]
                    .concat(),
            );
        }
        table
    }
}

/// Formats an error.
pub fn percent(error: Option<ErrorEstimate>) -> String {
    error.map_or_else(|| "–".into(), |error| format!("{:+.1} %", error.percent))
}

fn interval(error: Option<ErrorEstimate>) -> String {
    let interval = error.and_then(|error| error.interval);
    interval.map_or_else(|| "–".into(), |(low, high)| format!("{low:+.1} to {high:+.1} %"))
}

const STAGES: [Column<StageFigure>; 5] = [
    ("part", Align::Left, |row| row.part.clone()),
    ("live", Align::Right, |row| time(row.live_ns as f64)),
    ("sim", Align::Right, |row| time(row.sim_ns as f64)),
    ("error", Align::Right, |row| percent(row.error)),
    ("95 % interval", Align::Right, |row| interval(row.error)),
];

impl CompareCase {
    fn new(case: &Case, rounds: &CaseRounds) -> Self {
        let figure = |(measure, value, _): &Measure| {
            let values = |runs: &[Figures]| runs.iter().map(value).collect::<Vec<u64>>();
            let compared = medians::compare(&values(&rounds.live), &values(&rounds.sim))?;
            let [live, sim] = compared.medians;
            (live > 0 || sim > 0).then(|| WorldFigure {
                measure,
                live,
                sim,
                error: error(compared.ratio),
            })
        };
        let figures = MEASURES.iter().filter_map(figure).collect();
        let set = case.set.iter().cloned().collect();
        Self { set, figures, stages: stages(rounds), failures: rounds.failed() }
    }

    /// Returns a measure.
    pub fn figure(&self, measure: &str) -> Option<&WorldFigure> {
        self.figures.iter().find(|figure| figure.measure == measure)
    }

    /// Returns the settings in words.
    pub fn heading(&self) -> String {
        let set: Vec<_> = self.set.clone().into_iter().collect();
        if set.is_empty() { "plan".to_owned() } else { words("", pairs(&set)) }
    }

    fn stage_table(&self) -> Table {
        Table::from_rows(&STAGES, &self.stages)
    }
}

/// Returns the parts of the commands of the workload: of the type with the most commands.
fn stages(rounds: &CaseRounds) -> Vec<StageFigure> {
    let Some(compared) = &rounds.stages else { return Vec::new() };
    let Some(pair) = compared.pairs.iter().max_by_key(|pair| pair.kinds[0].commands) else {
        return Vec::new();
    };
    let times = pair.differences.iter().filter(|one| one.measure.kind.is_time());
    let stage = |one: &analysis::trace::compare::Difference| {
        // The base of the comparison is the simulation.
        let [sim_ns, live_ns] = one.medians.medians;
        let inverse = one.medians.ratio.map(|ratio| Estimate {
            value: 1.0 / ratio.value,
            interval: ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)),
        });
        let part = match one.measure.kind {
            MeasureKind::Duration => "whole command".to_owned(),
            _ => one.measure.words(),
        };
        let command = pair.kinds[0].kind.clone();
        StageFigure { command, part, live_ns, sim_ns, error: error(inverse) }
    };
    times.map(stage).filter(|row| row.live_ns > 0 || row.sim_ns > 0).collect()
}

fn floor(rounds: &Rounds) -> FloorSummary {
    let sorted = |value: fn(&crate::floor::FloorRound) -> u64| {
        let mut all: Vec<u64> = rounds.floor.iter().map(value).collect();
        all.sort_unstable();
        all
    };
    let trips = sorted(|round| round.round_trip_ns);
    let stream = sorted(|round| round.stream_bytes_per_s);
    let Some(round_trip_ns) = medians::median(&trips) else { return FloorSummary::default() };
    let at = |share: usize| trips[(trips.len() - 1) * share / 4] as f64;
    let spread = (at(3) - at(1)) * 100.0 / round_trip_ns.max(1) as f64;
    FloorSummary {
        round_trip_ns,
        spread_percent: rounded(spread, 1),
        stream_bytes_per_s: medians::median(&stream).unwrap_or(0),
    }
}
