//! Where the time of a command goes, as seen at the root port.

use crate::analyse::{Command, Step, StepKind};
use serde::Serialize;
use wire::Instant;

/// One part of a command: from the end of the part before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// What passes.
    pub segment: &'static str,
    /// Nanoseconds in the command of median length.
    pub ns: u64,
}

/// The segments of the command whose length is the median: they add up to it.
pub fn of(commands: &[Command]) -> Vec<Segment> {
    let mut order: Vec<&Command> = commands.iter().filter(|c| c.duration().is_some()).collect();
    order.sort_by_key(|command| command.duration());
    order.get(order.len() / 2).map_or_else(Vec::new, |command| split(command))
}

fn split(command: &Command) -> Vec<Segment> {
    let first = |kinds: &[StepKind]| at(command.steps.iter(), kinds);
    let last = |kinds: &[StepKind]| at(command.steps.iter().rev(), kinds);
    let writes = first(&[StepKind::DataRead]).is_some();
    let marks = if writes {
        [
            ("doorbell to entry fetch: a round trip", first(&[StepKind::SqeFetch])),
            ("entry sent to first data request: a round trip", first(&[StepKind::DataRead])),
            ("all data requested and sent", last(&[StepKind::DataCompletion])),
            ("data sent to completion entry: a round trip", first(&[StepKind::CqeWrite])),
        ]
    } else {
        [
            ("doorbell to entry fetch: a round trip", first(&[StepKind::SqeFetch])),
            ("entry sent to first data: a round trip", first(&[StepKind::DataWrite])),
            ("data written", last(&[StepKind::DataWrite])),
            ("last data to completion entry", first(&[StepKind::CqeWrite])),
        ]
    };
    let rest = [
        ("completion entry to MSI-X", last(&[StepKind::MsiX])),
        ("MSI-X to head doorbell: host software", command.end),
    ];
    let mut before = command.start;
    let mut segments = Vec::new();
    for (segment, mark) in marks.into_iter().chain(rest) {
        let Some(mark) = mark.filter(|mark| *mark >= before) else { continue };
        segments.push(Segment { segment, ns: (mark - before).as_ns() });
        before = mark;
    }
    segments
}

fn at<'a>(mut steps: impl Iterator<Item = &'a Step>, kinds: &[StepKind]) -> Option<Instant> {
    steps.find(|step| kinds.contains(&step.kind)).map(|step| step.at)
}
