//! The measures of a command. Tables and comparisons use the same list.

use super::path::{Leg, Part, Stage, by_part, by_stage};
use crate::commands::Command;
use crate::commands::intervals;
use schemars::JsonSchema;
use serde::Serialize;

wire::named! {
    /// Kinds of measures.
    #[derive(JsonSchema, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MeasureKind {
        /// The whole duration in nanoseconds.
        Duration "whole",
        /// The time of a segment in nanoseconds.
        Segment "segment",
        /// The time in a stage in nanoseconds.
        Stage "stage",
        /// The time in a part of the drive in nanoseconds.
        Part "in the drive",
        /// Number of TLPs.
        Tlps "TLPs",
        /// Number of bytes of TLPs.
        Bytes "bytes",
    }
}

impl Measure {
    /// Returns kind and name in words.
    pub fn words(&self) -> String {
        let name = self.name;
        match self.kind {
            MeasureKind::Duration => self.kind.to_string(),
            MeasureKind::Segment => name.to_owned(),
            MeasureKind::Part => format!("{name} {}", self.kind),
            MeasureKind::Stage | MeasureKind::Tlps | MeasureKind::Bytes => {
                format!("{} {name}", self.kind)
            }
        }
    }
}

impl MeasureKind {
    /// Returns whether the measure is a time in nanoseconds.
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Tlps | Self::Bytes)
    }
}

/// A measure of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Kind of the measure.
    pub kind: MeasureKind,
    /// Name of the measure within its kind; empty for the whole duration.
    pub name: &'static str,
    /// Name of the measure's column in tables.
    pub column: &'static str,
}

const fn measure(kind: MeasureKind, name: &'static str, column: &'static str) -> Measure {
    Measure { kind, name, column }
}

/// Number of measures.
pub const COUNT: usize = 25;

const SEGMENTS: usize = 1;
const STAGES: usize = SEGMENTS + intervals::ALL.len();
const PARTS: usize = STAGES + Stage::ALL.len();
const TRAFFIC: usize = PARTS + Part::ALL.len();

/// All measures: duration, segments, stages, parts of the drive, TLPs and bytes.
pub const ALL: [Measure; COUNT] = {
    use MeasureKind::{Bytes, Duration, Part as InDrive, Segment, Stage as Place, Tlps};
    let segment = intervals::ALL;
    [
        measure(Duration, "", "duration_ns"),
        measure(Segment, segment[0], "segment_pushed_ns"),
        measure(Segment, segment[1], "segment_to_fetch_ns"),
        measure(Segment, segment[2], "segment_to_data_request_ns"),
        measure(Segment, segment[3], "segment_data_sent_ns"),
        measure(Segment, segment[4], "segment_data_to_cqe_ns"),
        measure(Segment, segment[5], "segment_to_data_ns"),
        measure(Segment, segment[6], "segment_data_written_ns"),
        measure(Segment, segment[7], "segment_last_data_to_cqe_ns"),
        measure(Segment, segment[8], "segment_to_cqe_ns"),
        measure(Segment, segment[9], "segment_to_msix_ns"),
        measure(Segment, segment[10], "segment_to_head_doorbell_ns"),
        measure(Place, Stage::ALL[0].name(), "stage_host_ns"),
        measure(Place, Stage::ALL[1].name(), "stage_upstream_ns"),
        measure(Place, Stage::ALL[2].name(), "stage_network_ns"),
        measure(Place, Stage::ALL[3].name(), "stage_switch_ns"),
        measure(Place, Stage::ALL[4].name(), "stage_downstream_ns"),
        measure(Place, Stage::ALL[5].name(), "stage_drive_ns"),
        measure(Place, Stage::ALL[6].name(), "stage_not_observed_ns"),
        measure(InDrive, Part::ALL[0].name(), "drive_controller_ns"),
        measure(InDrive, Part::ALL[1].name(), "drive_media_ns"),
        measure(Tlps, "from the host", "tlps_down"),
        measure(Tlps, "from the drive", "tlps_up"),
        measure(Bytes, "from the host", "bytes_down"),
        measure(Bytes, "from the drive", "bytes_up"),
    ]
};

/// Returns the measures of a command, in the order of [`ALL`]. `None` for a measure that the
/// command lacks: the duration if the command did not end, segments of other types, stages and
/// parts without records.
pub fn values(command: &Command, path: &[Leg]) -> [Option<u64>; COUNT] {
    let mut values = [None; COUNT];
    values[0] = command.duration_ns();
    for interval in intervals::split(command) {
        let place = intervals::ALL.iter().position(|name| *name == interval.name);
        values[SEGMENTS + place.expect("one of them")] = Some(interval.ns);
    }
    if !path.is_empty() {
        values[STAGES..PARTS].fill(Some(0));
        by_stage(path).into_iter().for_each(|(at, ns)| values[STAGES + at as usize] = Some(ns));
    }
    if path.iter().any(|leg| leg.part.is_some()) {
        values[PARTS..TRAFFIC].fill(Some(0));
        by_part(path).into_iter().for_each(|(at, ns)| values[PARTS + at as usize] = Some(ns));
    }
    let traffic = &command.traffic;
    let counts = [traffic.tlps_down, traffic.tlps_up, traffic.bytes_down, traffic.bytes_up];
    values[TRAFFIC..].copy_from_slice(&counts.map(Some));
    values
}
