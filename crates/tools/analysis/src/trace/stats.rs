//! Latency statistics by type of command.

use super::path::{Leg, Part, Stage, by_part, by_stage, listed};
use crate::commands::intervals::{self, Segment};
use crate::commands::{Command, Transfer};
use report::latency::{Latency, Summary};
use report::span::{micros, size};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Counts;
use std::collections::BTreeMap;
use wire::Duration;

/// Maximum number of types with statistics of their own, each with up to 3 MiB of distributions.
/// Further types share one entry.
const MOST_KINDS: usize = 64;

/// Times by key, in the order of first use.
type Times<K> = Vec<(K, Latency)>;

fn add<K: PartialEq>(times: &mut Times<K>, key: K, ns: u64) {
    let span = Duration::from_ns(ns);
    match times.iter_mut().find(|(known, _)| *known == key) {
        Some((_, latency)) => latency.record(span),
        None => times.push((key, [span].into_iter().collect())),
    }
}

fn medians<K: Copy, T>(times: &Times<K>, median: impl Fn(K, u64) -> T) -> Vec<T> {
    times.iter().map(|(key, latency)| median(*key, latency.quantile_ns(0.5))).collect()
}

/// All commands of one type.
#[derive(Clone, Debug, Default)]
struct Group {
    latency: Latency,
    intervals: Times<&'static str>,
    stages: Times<Stage>,
    parts: Times<Part>,
    tlps: Counts,
    bytes: Counts,
    commands: u64,
    failed: u64,
    lost: u64,
    unacknowledged: u64,
    from_push: FromPush,
}

/// Bytes that device nodes returned from push, for commands of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct FromPush {
    /// Number of commands for which at least one byte was answered from push.
    pub commands: u64,
    /// Bytes answered from push.
    pub bytes: u64,
    /// Bytes pushed for the commands; 0 in the trace of a device node alone.
    pub pushed_bytes: u64,
}

/// Statistics of the commands of one type.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CommandType {
    /// The command's name and its number of bytes, such as `Read 4 KiB`.
    pub kind: String,
    /// Number of commands of the type, however they ended.
    pub commands: u64,
    /// Latency of the commands whose head doorbell was rung.
    pub latency: Summary,
    /// Number of commands with a status other than success.
    pub failed: u64,
    /// Number of commands without a completion entry.
    pub lost: u64,
    /// Number of commands with a completion entry for which the host wrote no head doorbell.
    pub unacknowledged: u64,
    /// Use of push by the commands.
    pub from_push: FromPush,
    /// TLPs per ended command, in both directions together.
    pub tlps: Spread,
    /// Header and payload bytes of the TLPs per ended command.
    pub link_bytes: Spread,
    /// Median of each segment; medians do not add up.
    #[serde(rename = "segments_p50")]
    pub intervals_p50: Vec<Segment>,
    /// Median time in each stage.
    #[serde(rename = "lanes_p50")]
    pub stages_p50: Vec<StageTime>,
    /// Median time in each part of the drive; empty without the trace of the drive.
    pub drive_p50: Vec<PartTime>,
}

/// The distribution of a count over commands; all zero without commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Spread {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

impl From<&Counts> for Spread {
    fn from(counts: &Counts) -> Self {
        Self { p50: counts.quantile(0.5), p99: counts.quantile(0.99), max: counts.max() }
    }
}

/// The time in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "LaneTime")]
pub struct StageTime {
    /// The stage.
    #[serde(rename = "lane")]
    pub stage: Stage,
    /// Time in the stage.
    pub ns: u64,
}

/// The time in a part of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "DriveTime")]
pub struct PartTime {
    /// The part.
    pub part: Part,
    /// Time in the part.
    pub ns: u64,
}

/// Latencies of all commands, by type.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    groups: BTreeMap<String, Group>,
}

/// Returns the type of a command: its name and its number of bytes.
pub fn kind(command: &Command) -> String {
    let name = command.name();
    match command.transfer {
        Transfer::None => name.into_owned(),
        Transfer::ToDevice(bytes) | Transfer::ToHost(bytes) => format!("{name} {}", size(bytes)),
    }
}

impl Statistics {
    /// Adds a command, and its path if there is one. Returns the command's type.
    pub fn add(&mut self, command: &Command, path: &[Leg]) -> String {
        let mut name = kind(command);
        if self.groups.len() >= MOST_KINDS && !self.groups.contains_key(&name) {
            name = "other".to_owned();
        }
        let group = self.groups.entry(name.clone()).or_default();
        group.commands += 1;
        group.lost += u64::from(command.status.is_none());
        group.unacknowledged += u64::from(command.is_unacknowledged());
        group.failed += u64::from(command.status.is_some_and(|status| !status.is_success()));
        let answered = command.answered_from_push().sum();
        group.from_push.commands += u64::from(answered > 0);
        group.from_push.bytes += answered;
        group.from_push.pushed_bytes += command.push.pushed.sum();
        let Some(total) = command.duration_ns() else { return name };
        group.latency.record(Duration::from_ns(total));
        group.tlps.record(command.traffic.tlps(), 1);
        group.bytes.record(command.traffic.bytes(), 1);
        for Segment { name, ns } in intervals::split(command) {
            add(&mut group.intervals, name, ns);
        }
        by_stage(path).into_iter().for_each(|(stage, ns)| add(&mut group.stages, stage, ns));
        by_part(path).into_iter().for_each(|(part, ns)| add(&mut group.parts, part, ns));
        group.stages.sort_by_key(|(stage, _)| *stage);
        group.parts.sort_by_key(|(part, _)| *part);
        name
    }

    /// Returns the latencies of the commands of a type, named as by [`kind`]; `None` without such
    /// commands.
    pub fn latency(&self, kind: &str) -> Option<&Latency> {
        self.groups.get(kind).map(|group| &group.latency)
    }

    /// Returns the statistics by type.
    pub fn kinds(&self) -> Vec<CommandType> {
        let kind = |(name, group): (&String, &Group)| CommandType {
            kind: name.clone(),
            latency: Summary::from(&group.latency),
            failed: group.failed,
            commands: group.commands,
            lost: group.lost,
            unacknowledged: group.unacknowledged,
            from_push: group.from_push,
            tlps: Spread::from(&group.tlps),
            link_bytes: Spread::from(&group.bytes),
            intervals_p50: medians(&group.intervals, |name, ns| Segment { name, ns }),
            stages_p50: medians(&group.stages, |stage, ns| StageTime { stage, ns }),
            drive_p50: medians(&group.parts, |part, ns| PartTime { part, ns }),
        };
        self.groups.iter().map(kind).collect()
    }

    /// Formats the statistics as a table, in microseconds.
    pub fn table(&self) -> String {
        let kinds = self.kinds();
        let name = |kind: &CommandType| kind.kind.chars().count();
        let width = kinds.iter().map(name).max().unwrap_or(0).max(7);
        let mut out = format!(
            "{:width$} {:>8} {:>10} {:>10} {:>10} {:>7} {:>6} {:>7}\n",
            "command", "n", "p50 us", "p99 us", "max us", "failed", "lost", "unacked"
        );
        for entry in &kinds {
            let CommandType { kind, commands, latency, failed, lost, unacknowledged, .. } = entry;
            let CommandType { intervals_p50, stages_p50, drive_p50, .. } = entry;
            let [p50, p99, max] = [latency.p50_ns, latency.p99_ns, latency.max_ns].map(micros);
            out += &format!(
                "{kind:width$} {commands:>8} {p50:>10} {p99:>10} {max:>10} {failed:>7} {lost:>6} \
                 {unacknowledged:>7}\n"
            );
            let CommandType { tlps, link_bytes, .. } = entry;
            out += &format!(
                "{:width$} {:>8} TLPs p50 {}, p99 {}; bytes p50 {}, p99 {}\n",
                "", "", tlps.p50, tlps.p99, link_bytes.p50, link_bytes.p99
            );
            let FromPush { commands: pushed, bytes, pushed_bytes } = entry.from_push;
            if pushed + pushed_bytes > 0 {
                let of_all = match pushed_bytes {
                    0 => String::new(),
                    all => format!(" of {all} pushed"),
                };
                out += &format!(
                    "{:width$} {:>8} answered from push: {pushed} of {commands} commands, {bytes} \
                     bytes{of_all}\n",
                    "", ""
                );
            }
            for Segment { name, ns } in intervals_p50 {
                out += &format!("{:width$} {:>8} {:>10}  {name}\n", "", "", micros(*ns));
            }
            if !stages_p50.is_empty() {
                let stages: Vec<_> = stages_p50.iter().map(|at| (at.stage, at.ns)).collect();
                let stages = listed(&stages, ", ");
                out += &format!("{:width$} {:>8} by stage: {stages}\n", "", "");
            }
            let parts: Vec<_> = drive_p50.iter().map(|at| (at.part, at.ns)).collect();
            if !parts.is_empty() {
                let parts = listed(&parts, ", ");
                out += &format!("{:width$} {:>8} in the drive: {parts}\n", "", "");
            }
        }
        out
    }
}
