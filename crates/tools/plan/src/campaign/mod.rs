//! A campaign: for each seed a small random network with a workload and faults is simulated, and
//! the laws that must hold under every fault are checked. A seed that breaks a law is minimised and
//! becomes a plan.
//!
//! # Modules
//!
//! - `scenario`: the plan of a seed
//! - `fault`: kinds of faults
//! - `laws`: a run and its laws
//! - `order`: TLPs cross a link once and in PCIe order
//! - `watcher`: the observer of a run
//! - `reached`: states that a campaign must reach
//! - `minimise`: a smaller plan with the same failure

mod fault;
mod laws;
mod minimise;
mod order;
mod reached;
mod scenario;
#[cfg(test)]
mod tests;
mod watcher;

pub use fault::Kind;
pub use reached::Condition;

use crate::run::Watch;
use crate::run::pool::in_parallel;
use laws::Outcome;
use report::Align::{Left, Right};
use report::document::{Ended, INTERRUPTED};
use report::{Column, Table};
use scenario::Scenario;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::RangeInclusive;

/// A campaign with fewer seeds may leave conditions unreached.
pub const ENOUGH: u64 = 1_000;
/// The most failures that are minimised and reported; the campaign ends with the last one.
const MOST_FAILURES: usize = 10;

/// The results of a campaign.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CampaignReport {
    /// Version of this format.
    pub schema: u32,
    /// Number of seeds that were run.
    pub seeds: u64,
    /// Digest of all runs, the same for the same seeds and program.
    pub digest: String,
    /// Each kind of fault.
    pub faults: Vec<FaultRow>,
    /// Each condition that a large campaign must reach.
    pub conditions: Vec<ConditionRow>,
    /// Seeds that broke a law, at most 10.
    pub failures: Vec<FailedSeed>,
    /// Whether the campaign ended before its last seed.
    pub interrupted: bool,
}

/// A kind of fault in a campaign.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FaultRow {
    /// The kind.
    pub fault: Kind,
    /// Number of seeds in which the fault acted.
    pub seeds: u64,
    /// How often the fault acted: frames, accesses, or times at which it began.
    pub count: u64,
}

/// A condition in a campaign.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ConditionRow {
    /// The condition.
    pub condition: Condition,
    /// Number of seeds that reached the condition.
    pub seeds: u64,
}

/// A seed that broke a law.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// The law that was broken, and how, in the minimised plan.
    pub broken: String,
    /// The minimised plan.
    pub plan: String,
}

/// The text of the plan of a seed.
pub fn plan(seed: u64) -> String {
    Scenario::new(seed).text()
}

/// Runs a campaign.
pub fn run(seeds: RangeInclusive<u64>, watch: &Watch<'_>) -> CampaignReport {
    let (first, count) = (*seeds.start(), (seeds.end() - seeds.start()).saturating_add(1));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut report = CampaignReport::new();
    let (mut failed, mut digest) = (Vec::new(), 0u64);
    let work = |at: usize| {
        let seed = first + at as u64;
        (!(watch.is_stopped)()).then(|| (seed, laws::run(&Scenario::new(seed))))
    };
    in_parallel(usize::MAX, count, &work, |finished| {
        if let Some((_, (seed, outcome))) = finished {
            // The sum does not depend on the order in which seeds end.
            digest = digest.wrapping_add(stats::random::mix(outcome.digest ^ seed));
            report.add(&outcome);
            failed.extend(outcome.broken.map(|broken| (seed, broken)));
        }
        let state = format!("{} of {count} seeds, {} failed", report.seeds, failed.len());
        (watch.progress)(Some(&state));
    });
    report.digest = format!("{digest:016x}");
    report.interrupted = (report.seeds as usize) < count;
    failed.sort_unstable();
    for (seed, broken) in failed.into_iter().take(MOST_FAILURES) {
        (watch.progress)(Some(&format!("minimising seed {seed}: {broken}")));
        let (least, broken) = minimise::minimise(&Scenario::new(seed), broken);
        let plan = format!("# Seed {seed} of a campaign: {broken}\n{}", least.text());
        report.failures.push(FailedSeed { seed, broken, plan });
    }
    (watch.progress)(None);
    report
}

impl CampaignReport {
    fn new() -> Self {
        Self {
            schema: 1,
            seeds: 0,
            digest: String::new(),
            faults: Kind::ALL.map(|fault| FaultRow { fault, seeds: 0, count: 0 }).into(),
            conditions: Condition::ALL.map(|condition| ConditionRow { condition, seeds: 0 }).into(),
            failures: Vec::new(),
            interrupted: false,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        for row in &mut self.faults {
            let count = outcome.acted.get(&row.fault).copied().unwrap_or(0);
            row.seeds += u64::from(count > 0);
            row.count += count;
        }
        for row in &mut self.conditions {
            row.seeds += u64::from(outcome.reached.contains(&row.condition));
        }
    }

    /// The conditions that a campaign with enough seeds has not reached.
    pub fn unreached(&self) -> Vec<Condition> {
        let missed = self.conditions.iter().filter(|row| row.seeds == 0 && self.seeds >= ENOUGH);
        missed.map(|row| row.condition).collect()
    }

    /// The outcome of the command.
    pub fn ended(&self) -> Ended {
        match self.failures.is_empty() && self.unreached().is_empty() {
            true => Ended::unless(self.interrupted),
            false => Ended::Missed,
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let faults: [Column<FaultRow>; 3] = [
            ("fault", Left, |row| name(&row.fault)),
            ("seeds", Right, |row| row.seeds.to_string()),
            ("acted", Right, |row| row.count.to_string()),
        ];
        let conditions: [Column<ConditionRow>; 2] = [
            ("condition", Left, |row| name(&row.condition)),
            ("seeds", Right, |row| row.seeds.to_string()),
        ];
        let mut text = format!("{} seeds, digest {}\n\n", self.seeds, self.digest);
        text += &Table::from_rows(&faults, &self.faults).text();
        text += "\n";
        text += &Table::from_rows(&conditions, &self.conditions).text();
        for condition in self.unreached() {
            text += &format!("\nFAIL: no seed reached {}", name(&condition));
        }
        for FailedSeed { seed, broken, .. } in &self.failures {
            text += &format!("\nFAIL: seed {seed}: {broken}");
        }
        if self.interrupted {
            text += &format!("\n{INTERRUPTED}");
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// The name of a kind or condition, as in JSON.
fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => unreachable!("a unit variant"),
    }
}
