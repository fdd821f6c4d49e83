//! The time of a command, divided into intervals between TLPs at one point.

use super::{Command, StepKind, Transfer};
use schemars::JsonSchema;
use serde::Serialize;
use wire::Instant;

const PUSHED: &str = "pushed in front of the doorbell";
const TO_FETCH: &str = "doorbell to entry fetch: a round trip";
const TO_DATA_REQUEST: &str = "entry sent to first data request: a round trip";
const DATA_SENT: &str = "all data requested and sent";
const DATA_TO_CQE: &str = "data sent to completion entry: a round trip";
const TO_DATA: &str = "entry sent to first data: a round trip";
const DATA_WRITTEN: &str = "data written";
const LAST_DATA_TO_CQE: &str = "last data to completion entry";
const TO_CQE: &str = "entry sent to completion entry: a round trip";
const TO_INTERRUPT: &str = "completion entry to MSI-X";
const TO_HEAD: &str = "MSI-X to head doorbell: host software";

/// The names of all intervals, in the order in which they occur in a command.
pub const ALL: [&str; 11] = [
    PUSHED,
    TO_FETCH,
    TO_DATA_REQUEST,
    DATA_SENT,
    DATA_TO_CQE,
    TO_DATA,
    DATA_WRITTEN,
    LAST_DATA_TO_CQE,
    TO_CQE,
    TO_INTERRUPT,
    TO_HEAD,
];

/// A segment of a command: the time between two TLPs.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Segment {
    /// Name of the segment: its first and its last TLP.
    #[serde(rename = "segment")]
    pub name: &'static str,
    /// Time since the end of the previous segment.
    pub ns: u64,
}

impl Segment {
    /// Returns whether the segment contains a dependent network round trip: the host waits for the
    /// drive, or the drive for the host.
    pub fn is_round_trip(&self) -> bool {
        [TO_FETCH, TO_DATA_REQUEST, DATA_TO_CQE, TO_DATA, TO_CQE].contains(&self.name)
    }
}

/// Returns the intervals of the command with the median duration; empty without finished commands.
/// The sum of the intervals is this duration.
pub fn median(commands: &[Command]) -> Vec<Segment> {
    let mut order: Vec<&Command> = commands.iter().filter(|c| c.duration_ns().is_some()).collect();
    order.sort_by_key(|command| command.duration_ns());
    order.get(order.len() / 2).map_or_else(Vec::new, |command| split(command))
}

/// Divides a command into intervals. The sum of the intervals is the command's duration. If the
/// command did not end, the sum is the time until its last TLP that ends an interval.
pub fn split(command: &Command) -> Vec<Segment> {
    let first = |kind: StepKind| command.steps.iter().find(|step| step.kind == kind);
    let last = |kind: StepKind| command.steps.iter().rev().find(|step| step.kind == kind);
    let doorbell = first(StepKind::Push).and(first(StepKind::SqDoorbell));
    let begin = [(PUSHED, doorbell), (TO_FETCH, first(StepKind::SqeFetch))];
    let cqe = first(StepKind::CqeWrite);
    let middle = match command.transfer {
        Transfer::ToDevice(_) => vec![
            (TO_DATA_REQUEST, first(StepKind::DataRead)),
            (DATA_SENT, last(StepKind::DataCompletion)),
            (DATA_TO_CQE, cqe),
        ],
        Transfer::ToHost(_) => vec![
            (TO_DATA, first(StepKind::DataWrite)),
            (DATA_WRITTEN, last(StepKind::DataWrite)),
            (LAST_DATA_TO_CQE, cqe),
        ],
        Transfer::None => vec![(TO_CQE, cqe)],
    };
    let end = command.end.and(last(StepKind::CqDoorbell));
    let rest = [(TO_INTERRUPT, last(StepKind::MsiX)), (TO_HEAD, end)];
    let all = begin.into_iter().chain(middle).chain(rest);
    // Differences of whole nanoseconds since the start have an exact sum.
    let ns = |at: Instant| at.ns_since(command.start);
    let mut before = command.start;
    let mut intervals = Vec::new();
    for (name, step) in all {
        // Leaves out TLPs that are earlier than the previous one, so that no interval is negative.
        let Some(step) = step.filter(|step| step.at >= before) else { continue };
        intervals.push(Segment { name, ns: ns(step.at) - ns(before) });
        before = step.at;
    }
    intervals
}
