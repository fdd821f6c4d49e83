//! What would help if no list meets the deadlines.

use super::{Deadlines, Limits, Search};
use plan::Plan;

/// Changes of a plan to try: a key, its value, and what it is.
const CHANGES: [(&str, &str, &str); 5] = [
    ("host.push", "all", "push"),
    ("link.rate", "2.5G", "a rate of 2.5 Gb/s"),
    ("link.rate", "10G", "a rate of 10 Gb/s"),
    ("workload.iodepth", "1", "one command at a time"),
    ("workload.bs", "4KiB", "transfers of 4 KiB"),
];

/// A change of the plan with which lists meet the deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// `KEY=VALUE`, as for `--set`.
    pub set: String,
    /// What it is.
    pub what: &'static str,
}

/// The changes with which the search finds lists, tried alone, within the limits of each search.
pub fn help(plan: &Plan, deadlines: Deadlines, limits: &Limits<'_>) -> Vec<Help> {
    let feasible = |(key, value, what): &(&str, &str, &'static str)| {
        let planned = plan.with(key, value, "--set").and_then(|plan| plan.build()).ok()?;
        let found = Search::new(&planned, deadlines).ok()?.run(limits);
        found.missed.is_empty().then(|| Help { set: format!("{key}={value}"), what })
    };
    CHANGES.iter().filter_map(feasible).collect()
}
