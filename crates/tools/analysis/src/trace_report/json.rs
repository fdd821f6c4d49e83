//! The JSON document of `--json`.

use super::{Report, Shown};
use crate::commands::intervals::{self, Segment};
use crate::commands::json::Transaction;
use crate::commands::{AnalyserCounters, Traffic};
use crate::trace::rings::{Point, Queue, QueueDepth, RingSummary, Series};
use crate::trace::{
    Anomalies, ClockOffset, CommandType, DriveTiming, Leg, PartTime, PushTotals, Run, StageTime,
    StateChange, by_part, by_stage,
};
use schemars::JsonSchema;
use serde::Serialize;
use wire::Bdf;

/// Version of the document.
const SCHEMA: u32 = 1;

/// The records of nodes (docs/trace.md). Times are nanoseconds on the timeline: the clock of the
/// node nearest to the host, since that node's start.
#[derive(JsonSchema, Serialize)]
pub struct TraceDocument<'a> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// One element per file, from the host on.
    nodes: Vec<Node<'a>>,
    /// The commands that fit the filters, in the order of `--sort` (default: by their ends); at
    /// most `--limit` (default 1000).
    commands: Vec<TracedCommand<'a>>,
    /// State changes of the controllers, by time.
    lifecycle: Vec<StateEntry>,
    /// Number of commands that fit the filters.
    selected: u64,
    /// Commands in the traces.
    total: u64,
    /// Statistics of all commands that fit the filters, by type.
    stats: Vec<CommandType>,
    /// Depth and rings of each queue over time. Of the filters only `--drive`, `--queue`, `--from`
    /// and `--to` apply.
    queues: Vec<TracedQueue<'a>>,
    /// The sum of the I/O queues.
    all_queues: AllQueues,
    /// Pushed bytes and their use, in the whole trace.
    push: PushTotals,
    /// Counters of the analyser, for the whole trace.
    counters: &'a AnalyserCounters,
    /// TLPs that could not be decoded.
    unreadable: u64,
    #[serde(flatten)]
    anomalies: &'a Anomalies,
}

/// A node and its trace.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TraceNode")]
struct Node<'a> {
    /// Path of the file as it was given.
    file: String,
    /// `host`, `switch` or `device`.
    role: String,
    /// Number that is unique among traces: 16 hexadecimal digits.
    instance: String,
    /// Time 0 of the node's clock, in nanoseconds since 1970 (UTC), by the node's wall clock.
    start_unix_ns: u64,
    /// Times of the first and the last record, by the node's own clock; null without records.
    span_ns: Option<(u64, u64)>,
    /// Number of TLPs at the node's port.
    tlps: usize,
    /// Number of frames with TLPs on all links of the node.
    frames: usize,
    /// Records that are missing, as far as they were counted.
    lost: u64,
    /// Places where records are missing.
    gaps: u64,
    /// Whether the file ends in the middle of a chunk.
    cut: bool,
    /// Bytes that belong to no chunk, or to a damaged one.
    damaged_bytes: u64,
    /// Index in `nodes` of the node at the other end of the link towards the host; null for the
    /// first node.
    parent: Option<usize>,
    /// Downstream port of the parent; null for the first node.
    link: Option<usize>,
    /// Offset of the node's clock from the parent's clock; null for the first node.
    clock: Option<&'a ClockOffset>,
    /// Maximum error of the node's times on the timeline, in either direction.
    uncertainty_ns: u64,
}

/// A command of a recording. `duration_ns` is null if the command did not end.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TracedCommand")]
struct TracedCommand<'a> {
    /// Number among all commands, from 1, as for `--command`.
    number: u64,
    /// Time of the submission doorbell, or of the first push in front of it.
    start_ns: u64,
    #[serde(flatten)]
    transaction: Transaction,
    /// The time of the command by segment, seen at one point. The sum of the `ns` is `duration_ns`.
    #[serde(rename = "segments")]
    intervals: Vec<Segment>,
    /// The time of the command by stage. The sum of the `ns` is `duration_ns`.
    #[serde(rename = "lanes")]
    stages: Vec<StageTime>,
    /// The legs whose times `lanes` sums up, in order and without gaps.
    path: &'a [Leg],
    #[serde(flatten)]
    traffic: Traffic,
    /// The time in the stage `drive` by part. The sum of the `ns` is the time in that stage. Empty
    /// if the trace has no events of the drive.
    parts: Vec<PartTime>,
    /// The drive's record of the command; null if there is none.
    in_drive: &'a Option<DriveTiming>,
}

/// A queue pair over time (docs/trace.md#queues).
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "TracedQueue")]
struct TracedQueue<'a> {
    /// BDF of the drive.
    drive: String,
    /// Number of the queue; 0 is the admin queue.
    queue: u16,
    /// Commands outstanding.
    depth: QueueDepth,
    /// The ring of the submission queue.
    submission: RingSummary,
    /// The ring of the completion queue.
    completion: RingSummary,
    #[serde(flatten)]
    series: &'a Series,
}

/// The sum of the I/O queues.
#[derive(JsonSchema, Serialize)]
struct AllQueues {
    /// Commands outstanding.
    depth: QueueDepth,
    /// 0 if every change has a point; otherwise the time for which each point stands.
    interval_ns: u64,
    /// The points over time, at most 2048.
    points: Vec<DepthPoint>,
}

/// Commands outstanding at one time.
#[derive(JsonSchema, Serialize)]
struct DepthPoint {
    /// Time of the change, or of the first one in the interval.
    at_ns: u64,
    /// Commands outstanding, at the end of the interval.
    outstanding: u64,
    /// The most commands outstanding in the interval.
    peak: u64,
}

fn queue((drive, queue, all): (Bdf, u16, &Queue)) -> TracedQueue<'_> {
    let [submission, completion] = all.rings;
    let (drive, depth, series) = (drive.to_string(), all.depth(), &all.series);
    TracedQueue { drive, queue, depth, submission, completion, series }
}

fn all_queues(all: &Queue) -> AllQueues {
    let point =
        |&Point { at_ns, outstanding, peak, .. }: &Point| DepthPoint { at_ns, outstanding, peak };
    let points = all.series.points.iter().map(point);
    AllQueues { depth: all.depth(), interval_ns: all.series.interval_ns, points: points.collect() }
}

/// A change of a controller's state.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "StateChange")]
struct StateEntry {
    /// Index of the node in `nodes`.
    node: usize,
    /// Time at which the state changed.
    at_ns: i64,
    /// `enabled`, `ready`, `controller reset`, `function level reset`, `hot reset or link down`,
    /// `shutdown begun`, `shutdown complete` or `fatal status (CSTS.CFS)`.
    state: &'static str,
    /// Number of commands in flight, without Asynchronous Event Requests.
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

fn entry(shown: &Shown) -> TracedCommand<'_> {
    let stages = by_stage(&shown.path).into_iter().map(|(stage, ns)| StageTime { stage, ns });
    let parts = by_part(&shown.path).into_iter().map(|(part, ns)| PartTime { part, ns });
    TracedCommand {
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

/// Returns the JSON document of a run.
pub fn document(report: &Report) -> impl Serialize + '_ {
    TraceDocument {
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
