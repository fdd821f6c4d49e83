//! Running a simulation, with observers.

use super::parts::{Part, RunTables};
use crate::Planned;
use crate::recorded;
use crate::simulate::contention::{Contention, Contentions};
use crate::simulate::limits::{Assumptions, Row};
use crate::simulate::requirements::{self, Deadlines};
use crate::simulate::stream_hops::StreamHops;
use crate::simulate::{Observers, OutputFiles, Outputs, PageLabels, PagePhases, Shared};
use report::Failure;
use report::document::INTERRUPTED;
use sim::measure::{Breakdown, CommandRecord, Observer, STAGES, Stage};
use sim::world::Report;
use sim::{Config, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{Duration, Instant};

/// The progress of a simulation, for another thread to read.
#[derive(Debug, Default)]
pub struct RunProgress {
    /// Completed commands.
    pub commands: AtomicU64,
    /// Virtual time in nanoseconds.
    pub ns: AtomicU64,
}

/// Simulates `config` with `observers` to its end or until it is stopped; `pace` shows the
/// progress. Returns whether the simulation ended by itself. The error is one line with the reason
/// of a failure.
pub(super) fn simulate(
    config: &Config,
    observers: Vec<Box<dyn Observer>>,
    pace: &RunProgress,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<(Report, bool), String> {
    /// Virtual time between two updates of the progress.
    const STEP: Duration = Duration::from_us(500);
    let mut world = World::new(config).map_err(|error| error.to_string())?;
    world.observe(Box::new(Observers(observers)));
    let mut until = Instant::ZERO + STEP;
    loop {
        match world.run_until(until) {
            Ok(done) if done || is_stopped() => {
                return recorded::failure(config).map_or_else(|| Ok((world.report(), done)), Err);
            }
            Ok(_) => pace.ns.store(until.as_ns(), Ordering::Relaxed),
            Err(error) => {
                // The simulation ended at this time, so the time is rounded up.
                let ns = world.now().as_ps().div_ceil(1_000);
                pace.ns.store(ns, Ordering::Relaxed);
                return Err(error.to_string());
            }
        }
        until += STEP;
    }
}

/// Number of commands by duration, with one example for each duration. Memory is bounded for any
/// number of commands.
#[derive(Debug, Default)]
pub struct DurationCounts {
    /// By duration to 12 significant bits: the number of commands, and the first one.
    by_length: BTreeMap<u64, (u64, CommandRecord)>,
    /// Number of commands.
    pub count: u64,
}

impl DurationCounts {
    fn add(&mut self, record: &CommandRecord) {
        let ps = (record.until - record.since).as_ps();
        let drop = (64 - ps.leading_zeros()).saturating_sub(12);
        let entry = self.by_length.entry(ps >> drop << drop).or_insert((0, *record));
        entry.0 += 1;
        self.count += 1;
    }

    /// Returns a command at this quantile, 0 to 1000 in parts of 1000; `None` without commands.
    pub fn example(&self, quantile: u64) -> Option<&CommandRecord> {
        let rank = (self.count * quantile).div_ceil(1000).max(1);
        let mut seen = 0;
        self.by_length.values().find_map(|(count, record)| {
            seen += count;
            (seen >= rank).then_some(record)
        })
    }
}

/// Durations of the commands of all hosts.
#[derive(Debug, Default)]
pub struct Commands {
    /// Durations of all commands.
    pub all: DurationCounts,
    /// Sum of the times of all commands by stage, in picoseconds.
    pub sums: [u128; STAGES],
}

/// Counts commands as they end.
pub(super) struct CommandCounter {
    pub commands: Rc<RefCell<Commands>>,
    pub pace: Arc<RunProgress>,
}

impl Observer for CommandCounter {
    fn command(&mut self, record: &CommandRecord) {
        let mut commands = self.commands.borrow_mut();
        commands.all.add(record);
        for (sum, stage) in commands.sums.iter_mut().zip(Stage::ALL) {
            *sum += u128::from(record.breakdown.get(stage).as_ps());
        }
        self.pace.commands.fetch_add(1, Ordering::Relaxed);
    }
}

/// Converts picoseconds by stage to nanoseconds per command or frame. The sum of the parts is exactly the
/// total, because each part is the difference of two sums.
pub fn in_ns<const N: usize>(ps: [u128; N], count: u64) -> [u64; N] {
    let mut sum = 0;
    let mut before = 0;
    ps.map(|ps| {
        sum += ps;
        let now = (sum / u128::from(count.max(1)) / 1000) as u64;
        let part = now - before;
        before = now;
        part
    })
}

/// Converts the breakdown of one command as [`in_ns`].
pub fn breakdown_in_ns(breakdown: &Breakdown) -> [u64; STAGES] {
    in_ns(Stage::ALL.map(|stage| breakdown.get(stage).as_ps().into()), 1)
}

/// Outputs of a simulation in addition to its JSON document.
#[derive(Clone)]
pub struct RunOptions {
    /// Name of the plan.
    pub name: String,
    /// Files to write.
    pub requested: OutputFiles,
    /// Timeouts of real systems to compare with.
    pub assumed: Assumptions,
    /// Text of the plan file.
    pub text: String,
    /// Results of other phases, for the page.
    pub phases: Option<PagePhases>,
    /// Tables of all runs.
    pub tables: Option<Arc<RunTables>>,
}

/// Why a simulation failed, or its outputs could not be written.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// The reason in one line.
    pub why: String,
    /// Every limit, if limits were observed.
    pub limits: Vec<Row>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self { why: failure.0, limits: Vec::new() }
    }
}

/// The results of a simulation.
pub struct Results {
    pub report: Report,
    pub commands: Commands,
    /// Limits; empty unless outputs are requested.
    pub limits: Vec<Row>,
    pub requirements: Vec<requirements::Row>,
    /// Whether the simulation was stopped before its end.
    pub interrupted: bool,
    /// The reason why the part of the simulation is incomplete.
    pub part_failed: Option<String>,
    /// What hosts and listeners met; empty unless observed.
    pub contention: Vec<Contention>,
    /// Hops of streams; `None` unless outputs are requested and there are streams.
    pub hops: Option<StreamHops>,
}

/// Returns the plan's remarks on a run.
pub fn remarks(plan: &Planned, report: &Report) -> Vec<String> {
    plan.remarks.iter().map(|remark| remark.after(report.time)).collect()
}

/// Runs a simulation to its end or until `stop` is set. Collects the durations of commands, and
/// limits if anything is `requested`, and contention if `contention`. Writes the commands into
/// `part`.
pub fn simulate_plan(
    name: &str,
    plan: &Planned,
    pace: &Arc<RunProgress>,
    (requested, contention): (Option<&RunOptions>, bool),
    part: Option<Part>,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Results, Failed> {
    let config = &plan.config;
    let commands = Rc::new(RefCell::new(Commands::default()));
    let counter = CommandCounter { commands: commands.clone(), pace: pace.clone() };
    let named = |text: &str| plan.link_name(text);
    let begin =
        |options: &RunOptions| Outputs::begin(config, &options.requested, options.assumed, &named);
    let mut outputs = requested.map(begin).transpose()?;
    let deadlines = Shared::new(Deadlines::new(&plan.requirements));
    let mut observers: Vec<Box<dyn Observer>> =
        vec![Box::new(counter), Box::new(deadlines.clone())];
    observers.extend(outputs.iter().map(Outputs::observer));
    let part = part.map(Shared::new);
    observers.extend(part.iter().map(|part| Box::new(part.clone()) as Box<dyn Observer>));
    let streams = plan.streams.iter().map(|(_, id)| *id);
    let contention = contention.then(|| Shared::new(Contentions::new(config, streams)));
    observers.extend(contention.iter().map(|one| Box::new(one.clone()) as Box<dyn Observer>));
    let result = simulate(config, observers, pace, is_stopped);
    let requirements = |report: &Report| requirements::rows(&deadlines.0.borrow(), report);
    let mut limits = Vec::new();
    if let Some(outputs) = &mut outputs {
        let reached = Instant::from_ns(pace.ns.load(Ordering::Relaxed));
        let now = result.as_ref().map_or(reached, |(report, _)| report.time);
        // A command that still waits at a stop is not a failure.
        limits = outputs.close(config, now, result.is_ok())?;
    }
    let (report, is_done) = match result {
        Ok(done) => done,
        Err(why) => return Err(Failed { why, limits }),
    };
    if let (Some(outputs), Some(options)) = (&mut outputs, requested) {
        let mut remarks = remarks(plan, &report);
        remarks.extend((!is_done).then(|| INTERRUPTED.to_owned()));
        let words = PageLabels {
            world: super::document::World::Sim,
            title: name.rsplit('/').next().unwrap_or(name),
            plan: &options.text,
            named: &named,
            recorded: &plan.recorded(),
            streams: &plan.streams,
            identified: &plan.identified,
            overloads: &plan.overload_sentences(),
            remarks: &remarks,
            phases: options.phases.as_ref(),
        };
        outputs.report(config, &report, &limits, &requirements(&report), &words)?;
    }
    let commands = Rc::try_unwrap(commands).expect("the world is gone").into_inner();
    let requirements = requirements(&report);
    let part_failed = part.and_then(|part| part.0.borrow_mut().finish());
    let hops = outputs.and_then(Outputs::into_hops);
    let contention = contention.map(|one| one.0.borrow_mut().finish()).unwrap_or_default();
    let interrupted = !is_done;
    Ok(Results {
        report,
        commands,
        limits,
        requirements,
        interrupted,
        part_failed,
        contention,
        hops,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_parts_sum_to_the_total() {
        let mut ps = [333u128; STAGES];
        ps[3] = 1_999_999;
        let total: u128 = ps.iter().sum();
        for count in [1, 3, 7] {
            let parts = in_ns(ps, count);
            assert_eq!(parts.iter().sum::<u64>(), (total / u128::from(count) / 1000) as u64);
        }
    }
}
