//! The time of a command in intervals, as seen at one point.

use super::{Command, StepKind, Transfer};
use serde::Serialize;
use wire::Instant;

/// One interval of a command: from the end of the interval before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its name: from which TLP to which.
    #[serde(rename = "segment")]
    pub name: &'static str,
    /// Nanoseconds.
    pub ns: u64,
}

/// The intervals of the command whose length is the median: they add up to it.
pub fn of(commands: &[Command]) -> Vec<Interval> {
    let mut order: Vec<&Command> = commands.iter().filter(|c| c.duration().is_some()).collect();
    order.sort_by_key(|command| command.duration());
    order.get(order.len() / 2).map_or_else(Vec::new, |command| split(command))
}

/// The intervals of a command: they add up to its duration exactly, or, if it
/// has none, to the time until the last mark that was seen.
pub fn split(command: &Command) -> Vec<Interval> {
    let first = |kind: StepKind| command.steps.iter().find(|step| step.kind == kind);
    let last = |kind: StepKind| command.steps.iter().rev().find(|step| step.kind == kind);
    let fetch = ("doorbell to entry fetch: a round trip", first(StepKind::SqeFetch));
    let cqe = first(StepKind::CqeWrite);
    let middle = match command.transfer {
        Transfer::ToDevice(_) => vec![
            ("entry sent to first data request: a round trip", first(StepKind::DataRead)),
            ("all data requested and sent", last(StepKind::DataCompletion)),
            ("data sent to completion entry: a round trip", cqe),
        ],
        Transfer::ToHost(_) => vec![
            ("entry sent to first data: a round trip", first(StepKind::DataWrite)),
            ("data written", last(StepKind::DataWrite)),
            ("last data to completion entry", cqe),
        ],
        Transfer::None => vec![("entry sent to completion entry: a round trip", cqe)],
    };
    let end = command.end.and(last(StepKind::CqDoorbell));
    let rest = [
        ("completion entry to MSI-X", last(StepKind::MsiX)),
        ("MSI-X to head doorbell: host software", end),
    ];
    let all = std::iter::once(fetch).chain(middle).chain(rest);
    // Differences of whole nanoseconds since the start, so that they add up.
    let ns = |at: Instant| at.since(command.start).as_ns();
    let mut before = command.start;
    let mut intervals = Vec::new();
    for (name, step) in all {
        // Times do not go back.
        let Some(step) = step.filter(|step| step.at >= before) else { continue };
        intervals.push(Interval { name, ns: ns(step.at) - ns(before) });
        before = step.at;
    }
    intervals
}
