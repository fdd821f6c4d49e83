//! What would help if no list meets the deadlines.

use super::{Deadlines, Limits, Search, windows};
use plan::{Plan, Planned};
use schemars::JsonSchema;
use serde::Serialize;
use sim::network::CableEnd;

/// A change of the plan with which lists meet the deadlines.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Help {
    /// The values to change, each as for `--set`.
    pub set: Vec<String>,
    /// What it is.
    pub what: &'static str,
}

/// Rates to try.
const RATES: [(&str, &str); 2] =
    [("link.rate=2.5G", "a rate of 2.5 Gb/s"), ("link.rate=10G", "a rate of 10 Gb/s")];

/// Changes to try for commands.
const CHANGES: [(&str, &str); 3] = [
    ("host.push=all", "push"),
    ("workload.iodepth=1", "one command at a time"),
    ("workload.bs=4KiB", "transfers of 4 KiB"),
];

impl Help {
    fn one((set, what): (&str, &'static str)) -> Self {
        Self { set: vec![set.to_owned()], what }
    }

    /// The change in words, with the options.
    pub fn words(&self) -> String {
        let set: Vec<String> = self.set.iter().map(|set| format!("--set '{set}'")).collect();
        format!("{} ({})", self.what, set.join(" "))
    }

    /// The plan with the change; `None` if it does not fit the plan.
    pub fn apply(&self, plan: &Plan) -> Option<(Plan, Planned)> {
        let set = |plan: Plan, set: &String| {
            let (key, value) = set.split_once('=')?;
            plan.with(key, value, "--set").ok()
        };
        let plan = self.set.iter().try_fold(plan.clone(), set)?;
        let planned = plan.build().ok()?;
        Some((plan, planned))
    }
}

/// The changes to try for commands.
fn changes(planned: &Planned) -> impl Iterator<Item = Help> {
    let [push, depth, size] = CHANGES.map(Help::one);
    [push].into_iter().chain(rates()).chain(preemption(planned)).chain([depth, size])
}

/// The changes, each alone, with which a search can begin: the end of the sentence that says why it
/// cannot.
pub fn to_begin((plan, planned): (&Plan, &Planned), deadlines: Deadlines) -> String {
    let begins = |help: &Help| {
        let changed = help.apply(plan);
        changed.is_some_and(|(_, planned)| Search::new(&planned, deadlines).is_ok())
    };
    let all: Vec<String> = changes(planned).filter(begins).map(|help| help.words()).collect();
    if all.is_empty() { String::new() } else { format!("; it might do with {}", all.join(", or ")) }
}

/// The changes, tried alone, with which the search finds lists for commands within the limits.
pub fn for_commands(
    (plan, planned): (&Plan, &Planned),
    deadlines: Deadlines,
    limits: &Limits<'_>,
) -> Vec<Help> {
    helpful(changes(planned), plan, limits, |_, planned| {
        let found = Search::new(planned, deadlines).and_then(|search| search.run(limits));
        found.is_ok_and(|found| found.missed.is_empty())
    })
}

/// The changes of which `helps` is true, until the limits are reached.
pub fn helpful(
    all: impl IntoIterator<Item = Help>,
    plan: &Plan,
    limits: &Limits<'_>,
    helps: impl Fn(&Plan, &Planned) -> bool,
) -> Vec<Help> {
    let helps = |help: &Help| {
        !(limits.is_over)()
            && help.apply(plan).is_some_and(|(plan, planned)| helps(&plan, &planned))
    };
    all.into_iter().filter(helps).collect()
}

/// The rates to try.
pub fn rates() -> impl Iterator<Item = Help> {
    RATES.into_iter().map(Help::one)
}

/// Preemption by commands and streams with a deadline, unless a port has preemption.
fn preemption(planned: &Planned) -> Option<Help> {
    let network = &planned.config.network;
    if windows::all_ports(network).any(|port| port.preemption.is_some()) {
        return None;
    }
    let ports = windows::ports(planned);
    let due = planned.streams.iter().map(|(_, id)| *id).filter(|id| {
        network.stream(*id).listeners.iter().any(|listener| listener.deadline.is_some())
    });
    let codes: Vec<u8> =
        due.map(|id| network.stream_tag(id).map_or(0, |tag| tag.pcp & 7)).collect();
    let express = |port: &CableEnd| {
        let classes = network.port(*port).queue_of_priority;
        let due = codes.iter().map(|code| 1 << classes[usize::from(*code)]);
        due.fold(windows::commands(planned, *port), |mask, class: u8| mask | class)
    };
    let mask = ports.iter().map(express).fold(0, |mask, port| mask | port);
    let classes: Vec<u8> = (0..8).filter(|class| mask >> class & 1 != 0).collect();
    let owners = planned.bridges.iter().map(|name| format!("bridges.{name}"));
    let set = |owner: String| format!("{owner}.express={classes:?}");
    let set = std::iter::once("link".to_owned()).chain(owners).map(set).collect();
    Some(Help { set, what: "preemption" })
}
