//! The sequence diagram of one command as SVG (figure 8 of the NVMe/TSN paper). Time runs downwards
//! and is to scale. Each stage is a column. Each TLP is a line through every point at which it was
//! seen. Frames are in the network's column.

mod draw;
mod labels;
mod layout;

use super::index::Frame;
use super::locations::{Location, Point};
use super::path::{Stage, by_part, by_stage, listed, path};
use super::run::Run;
use crate::commands::{Command, Direction, Step};
use report::span::{micros, size};
use std::collections::BTreeMap;

/// Maximum length of a run of TLPs whose lines are all drawn.
const MOST_LINES: usize = 64;

/// A column.
#[derive(Clone, Debug)]
struct Column {
    stage: Stage,
    left: f64,
    right: f64,
    /// Whether the column's sides were seen; an outer column has one side.
    seen: bool,
}

/// Consecutive TLPs of one kind.
#[derive(Clone, Debug)]
struct Group {
    first: Step,
    /// For each TLP the points that it passed, with times since the start of the command.
    lines: Vec<Vec<Point>>,
    bytes: Vec<u32>,
}

/// A frame on the network.
#[derive(Clone, Debug)]
struct Band {
    from: Point,
    to: Point,
    frame: Frame,
}

/// A time in which a closed gate blocks one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedGate {
    /// Start in nanoseconds on the timeline.
    pub from: i64,
    /// End in nanoseconds on the timeline.
    pub to: i64,
    /// Whether the gate blocks the direction towards the host.
    pub up: bool,
}

/// The contents of the diagram.
#[derive(Clone, Debug)]
struct Chart {
    title: String,
    subtitle: String,
    footer: Vec<String>,
    columns: Vec<Column>,
    groups: Vec<Group>,
    bands: Vec<Band>,
    gates: Vec<ClosedGate>,
    /// Accesses to the media: start, end, name.
    media: Vec<(i64, i64, String)>,
    /// First time shown, in nanoseconds since the start of the command.
    first: i64,
    last: i64,
    /// Duration of the command in nanoseconds.
    total: Option<i64>,
}

/// Draws the diagram of `command` as an SVG document.
pub fn chart(run: &Run, command: &Command) -> String {
    chart_with_gates(run, command, Vec::new())
}

/// Draws the same diagram with times at which gates are closed.
pub fn chart_with_gates(run: &Run, command: &Command, gates: Vec<ClosedGate>) -> String {
    let mut chart = Chart::new(run, command);
    let start = command.start.as_ns() as i64;
    let own = |time: i64| (time - start).clamp(chart.first, chart.last);
    let gates = gates.into_iter().map(|s| ClosedGate { from: own(s.from), to: own(s.to), ..s });
    chart.gates = gates.filter(|closed| closed.from < closed.to).collect();
    draw::svg(&chart)
}

impl Chart {
    fn new(run: &Run, command: &Command) -> Self {
        let start = command.start.as_ns() as i64;
        let groups = groups(run, command, start);
        let bands = bands(run, &groups);
        let points = || groups.iter().flat_map(|group| group.lines.iter().flatten());
        let first = points().map(|point| point.at).min().unwrap_or(0).min(0);
        let last = points().map(|point| point.at).max().unwrap_or(0).max(first + 1);
        let columns = layout::columns(points().map(|point| point.location));
        let (title, subtitle) = titles(command);
        let footer = footer(run, command);
        let total = command.duration_ns().map(|total| total as i64);
        let gates = Vec::new();
        let media = media(run, command, start);
        Self { title, subtitle, footer, columns, groups, bands, gates, media, first, last, total }
    }

    /// Returns the position of a location, on the line between two columns.
    fn x(&self, location: Location) -> f64 {
        layout::x(&self.columns, location)
    }
}

fn groups(run: &Run, command: &Command, start: i64) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for step in &command.steps {
        let mut points = run.locations(step.number);
        points.iter_mut().for_each(|point| point.at -= start);
        if step.direction == Direction::Up {
            points.reverse();
        }
        let alike = |group: &&mut Group| alike(&group.first, step);
        match groups.iter_mut().rev().find(|g| g.first.direction == step.direction).filter(alike) {
            Some(group) => {
                group.lines.push(points);
                group.bytes.push(step.bytes);
            }
            None => {
                groups.push(Group { first: *step, lines: vec![points], bytes: vec![step.bytes] })
            }
        }
    }
    groups
}

fn alike(first: &Step, step: &Step) -> bool {
    let looks = |step: &Step| (step.kind, step.tlp, step.from_push, is_bad(step));
    looks(first) == looks(step)
}

fn is_bad(step: &Step) -> bool {
    step.status != wire::tlp::Status::Success
}

/// Returns the frames of the TLPs of `groups` that were seen on both sides of the network.
fn bands(run: &Run, groups: &[Group]) -> Vec<Band> {
    let mut bands = BTreeMap::new();
    for line in groups.iter().flat_map(|group| &group.lines) {
        for pair in line.windows(2) {
            let (Some((node, frame)), Some(_)) = (pair[0].frame, pair[1].frame) else { continue };
            let seen = run.nodes[node].index.frames()[frame as usize];
            let band = Band { from: pair[0], to: pair[1], frame: seen };
            bands.entry((pair[0].at, node, frame)).or_insert(band);
        }
    }
    bands.into_values().collect()
}

fn media(run: &Run, command: &Command, start: i64) -> Vec<(i64, i64, String)> {
    let timing = run.in_drive(command);
    let accesses = timing.iter().flat_map(|timing| &timing.media);
    let bar = |access: &super::drive_timing::MediaAccess| {
        let words = format!("media {}, {} B", access.operation, access.bytes);
        Some((access.from_ns - start, access.to_ns? - start, words))
    };
    accesses.filter_map(bar).collect()
}

fn titles(command: &Command) -> (String, String) {
    let bytes = command.transfer.bytes();
    let mut title = command.name().into_owned();
    if bytes > 0 {
        title += &format!(", {}", size(bytes));
    }
    let total = command.duration_ns().map(|total| format!("{} us", micros(total)));
    title += &format!(": {}", total.unwrap_or_else(|| "not finished".to_owned()));
    let status = command.status.map(|status| status.code.to_string());
    let status = status.unwrap_or_else(|| "no completion entry".to_owned());
    (title, format!("{}{}; {status}", command.place(), command.range()))
}

fn footer(run: &Run, command: &Command) -> Vec<String> {
    let path = path(run, command);
    let stages = by_stage(&path);
    let total: u64 = stages.iter().map(|(_, ns)| ns).sum();
    let sum = listed(&stages, " + ");
    let mut lines =
        vec![format!("Time on the critical path by stage: {sum} = {} us", micros(total))];
    let parts = by_part(&path);
    if !parts.is_empty() {
        let parts = listed(&parts, " + ");
        lines.push(format!("Time in the drive, in us: {parts}"));
    }
    let pushed = command.push_texts().join("; ");
    if let Some((first, rest)) = pushed.split_at_checked(1) {
        lines.push(first.to_uppercase() + rest);
    }
    let uncertainty = (0..run.nodes.len()).map(|node| run.uncertainty_ns(node)).max().unwrap_or(0);
    if uncertainty > 0 {
        lines.push(format!(
            "Clocks of the nodes brought together by the frames between them, ±{} us",
            micros(uncertainty)
        ));
    }
    lines
}
