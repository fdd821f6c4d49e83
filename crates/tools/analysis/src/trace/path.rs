//! The path of a command through the stages, and the time in each.
//!
//! The path follows only the last of consecutive TLPs in one direction to the other side, because
//! the sender waits for nothing between these TLPs. The legs of a path are adjacent, so their sum
//! is the command's duration.

use super::drive_timing::MediaAccess;
use super::locations::{Location, Point};
use super::run::Run;
use crate::commands::{Command, Direction, Step, StepKind, Transfer};
use report::span::micros;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

wire::named! {
    /// A stage of the path: the place where time passes.
    #[derive(JsonSchema, Serialize)]
    #[schemars(rename = "Lane")]
    #[serde(rename_all = "snake_case")]
    pub enum Stage {
        /// Above the root port: software, memory.
        Host "host",
        /// Between root port and network, on the host node.
        Upstream "upstream",
        /// Between two nodes.
        Network "network",
        /// In a switch node.
        Switch "switch",
        /// Between network and drive, on the device node.
        Downstream "downstream",
        /// In the drive.
        Drive "drive",
        /// Stages without a trace.
        NotObserved "not observed",
    }
}

impl Stage {
    /// Returns the stage between two adjacent points.
    pub(super) const fn between(near: Location, far: Location) -> Self {
        use Location::{
            DownstreamLink, Function, RootPort, SwitchLink, SwitchPort, SwitchUplink, UpstreamLink,
        };
        match (near, far) {
            (RootPort, UpstreamLink) => Self::Upstream,
            (UpstreamLink, SwitchUplink | DownstreamLink)
            | (SwitchLink, SwitchUplink | DownstreamLink) => Self::Network,
            (SwitchUplink, SwitchPort) | (SwitchPort, SwitchLink) => Self::Switch,
            (DownstreamLink, Function) => Self::Downstream,
            _ => Self::NotObserved,
        }
    }
}

wire::named! {
    /// A part of the drive in which time passes.
    #[derive(JsonSchema, Serialize)]
    #[schemars(rename = "DrivePart")]
    #[serde(rename_all = "snake_case")]
    pub enum Part {
        /// The controller.
        Controller "controller",
        /// The media.
        Media "media",
    }
}

/// A leg of a path: the time of one TLP in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Leg {
    /// The stage.
    #[serde(rename = "lane")]
    pub stage: Stage,
    /// The part of the drive; null outside the drive, or without the trace of the drive.
    pub part: Option<Part>,
    /// The TLP that travels or for which the receiver waits.
    pub step: StepKind,
    /// Start of the leg on the timeline.
    pub from_ns: i64,
    /// End of the leg on the timeline.
    pub to_ns: i64,
}

fn chain(command: &Command) -> Vec<Step> {
    use StepKind::{
        CqDoorbell, CqeWrite, DataCompletion, DataRead, DataWrite, MsiX, Push, SqDoorbell, SqeData,
        SqeFetch,
    };
    let first = |kind| command.steps.iter().find(|step| step.kind == kind);
    let last = |kind| command.steps.iter().rev().find(|step| step.kind == kind);
    let data = match command.transfer {
        Transfer::ToDevice(_) => [first(DataRead), last(DataCompletion)],
        Transfer::ToHost(_) => [first(DataWrite), last(DataWrite)],
        Transfer::None => [None, None],
    };
    let entry = [first(Push), first(SqDoorbell), first(SqeFetch), first(SqeData)];
    let all = entry.into_iter().chain(data).chain([
        first(CqeWrite),
        last(MsiX),
        command.end.and(last(CqDoorbell)),
    ]);
    let mut chain: Vec<Step> = Vec::new();
    for step in all.flatten() {
        if chain.last().is_none_or(|before| before.number < step.number) {
            chain.push(*step);
        }
    }
    chain
}

/// Returns the path of a command from its doorbell to its head doorbell, or to its last step.
pub fn path(run: &Run, command: &Command) -> Vec<Leg> {
    let chain = chain(command);
    let (Some(first), Some(end)) = (chain.first(), chain.last()) else { return Vec::new() };
    let mut builder =
        PathBuilder { legs: Vec::new(), now: first.at.as_ns() as i64, end: end.at.as_ns() as i64 };
    for (i, step) in chain.iter().enumerate() {
        let mut points = run.locations(step.number);
        let crosses = chain.get(i + 1).is_some_and(|next| next.direction != step.direction);
        if step.direction == Direction::Up {
            points.reverse();
        }
        let Some(start) = points.first() else { continue };
        builder.wait(step, start);
        if crosses || (i + 1 == chain.len() && step.direction == Direction::Up) {
            builder.cross(step, &points);
        } else if i + 1 == chain.len() {
            // The path ends at the point at which the command is seen.
            let seen = points.iter().position(|point| point.location == run.location());
            builder.cross(step, &points[..=seen.unwrap_or(0)]);
        }
    }
    builder.legs.retain(|leg| leg.from_ns < leg.to_ns);
    match run.in_drive(command) {
        Some(timing) => builder.legs.iter().flat_map(|leg| divide(*leg, &timing.media)).collect(),
        None => builder.legs,
    }
}

/// Splits a leg in the drive into times of controller and media.
fn divide(leg: Leg, media: &[MediaAccess]) -> Vec<Leg> {
    if leg.stage != Stage::Drive {
        return vec![leg];
    }
    let mut legs = Vec::new();
    let mut now = leg.from_ns;
    let mut until = |part, to: i64| {
        let (from_ns, to_ns) = (now, to.clamp(now, leg.to_ns));
        legs.push(Leg { part: Some(part), from_ns, to_ns, ..leg });
        now = to_ns;
    };
    for access in media {
        until(Part::Controller, access.from_ns);
        until(Part::Media, access.to_ns.unwrap_or(i64::MAX));
    }
    until(Part::Controller, i64::MAX);
    legs.retain(|leg| leg.from_ns < leg.to_ns);
    legs
}

struct PathBuilder {
    legs: Vec<Leg>,
    now: i64,
    end: i64,
}

impl PathBuilder {
    /// Adds a leg that ends at `to`. Clocks of different nodes may disagree a little, so time is
    /// kept from decreasing and from exceeding the end.
    fn leg(&mut self, stage: Stage, step: StepKind, to: i64) {
        let to = to.min(self.end).max(self.now);
        match self.legs.last_mut() {
            Some(last) if last.stage == stage && last.step == step => last.to_ns = to,
            _ => self.legs.push(Leg { stage, part: None, step, from_ns: self.now, to_ns: to }),
        }
        self.now = to;
    }

    /// Adds the wait until the sender sends `step`.
    fn wait(&mut self, step: &Step, start: &Point) {
        let stage = match start.location {
            Location::RootPort => Stage::Host,
            Location::Function => Stage::Drive,
            _ => Stage::NotObserved,
        };
        self.leg(stage, step.kind, start.at);
    }

    fn cross(&mut self, step: &Step, points: &[Point]) {
        for pair in points.windows(2) {
            let (near, far) = match step.direction {
                Direction::Down => (pair[0].location, pair[1].location),
                Direction::Up => (pair[1].location, pair[0].location),
            };
            self.leg(Stage::between(near, far), step.kind, pair[1].at);
        }
    }
}

/// Returns the nanoseconds of a path by stage, without stages of 0 ns.
pub fn by_stage(path: &[Leg]) -> Vec<(Stage, u64)> {
    sums(path, &Stage::ALL, |leg| Some(leg.stage))
}

/// Returns the nanoseconds of a path in the drive by part; empty without the drive's trace.
pub fn by_part(path: &[Leg]) -> Vec<(Part, u64)> {
    sums(path, &Part::ALL, |leg| leg.part)
}

fn sums<K: Copy + PartialEq>(
    path: &[Leg],
    all: &[K],
    key_of: fn(&Leg) -> Option<K>,
) -> Vec<(K, u64)> {
    let sum = |key| {
        let legs = path.iter().filter(|leg| key_of(leg) == Some(key));
        legs.map(|leg| leg.to_ns.abs_diff(leg.from_ns)).sum()
    };
    all.iter().map(|key| (*key, sum(*key))).filter(|(_, ns)| *ns > 0).collect()
}

/// Formats a list of names, each with its time in microseconds.
pub fn listed<K: fmt::Display>(times: &[(K, u64)], between: &str) -> String {
    let each = times.iter().map(|(name, ns)| format!("{name} {}", micros(*ns)));
    each.collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(from_ns: i64, to_ns: Option<i64>) -> MediaAccess {
        let (operation, nsid, offset, bytes, ok) = ("read", 1, 0, 512, true);
        MediaAccess { operation, nsid, offset, bytes, from_ns, to_ns, ok }
    }

    #[test]
    fn the_time_in_the_drive_is_divided_exactly() {
        let (stage, part, step) = (Stage::Drive, None, StepKind::DataWrite);
        let leg = Leg { stage, part, step, from_ns: 100, to_ns: 200 };
        let divided = |media: &[MediaAccess]| {
            let legs = divide(leg, media);
            assert!(legs.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns), "{legs:?}");
            assert_eq!(by_stage(&legs), [(Stage::Drive, 100)]);
            by_part(&legs)
        };
        use Part::{Controller, Media};
        assert_eq!(divided(&[]), [(Controller, 100)]);
        assert_eq!(divided(&[access(120, Some(150))]), [(Controller, 70), (Media, 30)]);
        let two = [access(120, Some(150)), access(160, Some(165))];
        assert_eq!(divided(&two), [(Controller, 65), (Media, 35)]);
        assert_eq!(divided(&[access(180, None)]), [(Controller, 80), (Media, 20)], "never ended");
        assert_eq!(divided(&[access(50, Some(300))]), [(Media, 100)]);
        assert_eq!(divided(&[access(20, Some(30)), access(300, Some(310))]), [(Controller, 100)]);
        let host = Leg { stage: Stage::Host, ..leg };
        assert_eq!(divide(host, &two), [host]);
    }
}
