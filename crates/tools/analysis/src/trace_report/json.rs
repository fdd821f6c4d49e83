//! The document of `--json`.

use super::{Report, Shown};
use crate::commands::intervals::{self, Interval};
use crate::commands::json::Transaction;
use crate::commands::{Counters, Traffic};
use crate::trace::rings::{DepthSummary, Point, Queue, RingSummary, Series};
use crate::trace::{
    Anomalies, DriveTiming, Kind, Leg, Offset, PartTime, PushTotals, Run, StageTime, StateChange,
    by_part, by_stage,
};
use serde::Serialize;
use wire::Bdf;

/// Version of the document.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    nodes: Vec<Node<'a>>,
    commands: Vec<Entry<'a>>,
    lifecycle: Vec<StateEntry>,
    /// Commands that fit the filters, and commands there are.
    selected: u64,
    total: u64,
    stats: Vec<Kind>,
    queues: Vec<QueueEntry<'a>>,
    all_queues: AllQueues,
    push: PushTotals,
    counters: &'a Counters,
    unreadable: u64,
    #[serde(flatten)]
    anomalies: &'a Anomalies,
}

#[derive(Serialize)]
struct Node<'a> {
    file: String,
    role: String,
    instance: String,
    start_unix_ns: u64,
    /// Of the first and the last record, by its own clock.
    span_ns: Option<(u64, u64)>,
    tlps: usize,
    frames: usize,
    lost: u64,
    gaps: u64,
    cut: bool,
    damaged_bytes: u64,
    /// Index of the node on the host's side.
    parent: Option<usize>,
    link: Option<usize>,
    clock: Option<&'a Offset>,
    /// How wrong its times may be on the timeline.
    uncertainty_ns: u64,
}

#[derive(Serialize)]
struct Entry<'a> {
    number: u64,
    start_ns: u64,
    #[serde(flatten)]
    transaction: Transaction,
    #[serde(rename = "segments")]
    intervals: Vec<Interval>,
    #[serde(rename = "lanes")]
    stages: Vec<StageTime>,
    path: &'a [Leg],
    #[serde(flatten)]
    traffic: Traffic,
    /// Time in the drive by part; empty if it did not tell.
    parts: Vec<PartTime>,
    in_drive: &'a Option<DriveTiming>,
}

/// A queue pair along time.
#[derive(Serialize)]
struct QueueEntry<'a> {
    drive: String,
    queue: u16,
    depth: DepthSummary,
    submission: RingSummary,
    completion: RingSummary,
    #[serde(flatten)]
    series: &'a Series,
}

/// The sum of the I/O queues, which has no positions.
#[derive(Serialize)]
struct AllQueues {
    depth: DepthSummary,
    interval_ns: u64,
    points: Vec<DepthPoint>,
}

#[derive(Serialize)]
struct DepthPoint {
    at_ns: u64,
    outstanding: u64,
    peak: u64,
}

fn queue((drive, queue, all): (Bdf, u16, &Queue)) -> QueueEntry<'_> {
    let [submission, completion] = all.rings;
    let (drive, depth, series) = (drive.to_string(), all.depth(), &all.series);
    QueueEntry { drive, queue, depth, submission, completion, series }
}

fn all_queues(all: &Queue) -> AllQueues {
    let point =
        |&Point { at_ns, outstanding, peak, .. }: &Point| DepthPoint { at_ns, outstanding, peak };
    let points = all.series.points.iter().map(point);
    AllQueues { depth: all.depth(), interval_ns: all.series.interval_ns, points: points.collect() }
}

/// A state change of a controller.
#[derive(Serialize)]
struct StateEntry {
    /// Index of its node.
    node: usize,
    at_ns: i64,
    state: &'static str,
    /// Commands in flight.
    open: usize,
}

fn state_entries(run: &Run) -> Vec<StateEntry> {
    let entry = |(node, at_ns, change): (usize, i64, StateChange)| StateEntry {
        node,
        at_ns,
        state: change.state.name(),
        open: change.open,
    };
    run.state_changes().into_iter().map(entry).collect()
}

fn node(run: &Run, number: usize) -> Node<'_> {
    let node = &run.nodes[number];
    let parent = node.parent.as_ref();
    Node {
        file: node.file.path.display().to_string(),
        role: node.file.header.role.to_string(),
        instance: format!("{:016x}", node.file.header.instance),
        start_unix_ns: node.file.header.start_unix_ns,
        span_ns: node.index.span,
        tlps: node.index.tlps(),
        frames: node.index.frames().len(),
        lost: node.index.lost,
        gaps: node.index.gaps,
        cut: node.file.cut,
        damaged_bytes: node.file.damaged,
        parent: parent.map(|parent| parent.node),
        link: parent.and_then(|parent| parent.tap.port()),
        clock: parent.map(|parent| &parent.clock),
        uncertainty_ns: run.uncertainty_ns(number),
    }
}

fn entry(shown: &Shown) -> Entry<'_> {
    let stages = by_stage(&shown.path).into_iter().map(|(stage, ns)| StageTime { stage, ns });
    let parts = by_part(&shown.path).into_iter().map(|(part, ns)| PartTime { part, ns });
    Entry {
        number: shown.number,
        start_ns: shown.command.start.as_ns(),
        transaction: Transaction::from(&shown.command),
        intervals: intervals::split(&shown.command),
        stages: stages.collect(),
        path: &shown.path,
        traffic: shown.command.traffic,
        parts: parts.collect(),
        in_drive: &shown.timing,
    }
}

/// The document of a run.
pub fn document(report: &Report) -> impl Serialize + '_ {
    Document {
        schema: SCHEMA,
        nodes: (0..report.run.nodes.len()).map(|number| node(&report.run, number)).collect(),
        commands: report.shown.iter().map(entry).collect(),
        lifecycle: state_entries(&report.run),
        selected: report.selected,
        total: report.all,
        stats: report.statistics.kinds(),
        queues: report.rings.queues().map(queue).collect(),
        all_queues: all_queues(report.rings.all()),
        push: report.run.push_totals(&report.counters),
        counters: &report.counters,
        unreadable: report.unreadable,
        anomalies: &report.anomalies,
    }
}
