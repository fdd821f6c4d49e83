//! Commands and state changes that the drives recorded, with times on the timeline.

use super::drive::{Access, StateChange};
use super::run::Run;
use crate::commands::{Command, StepKind};
use schemars::JsonSchema;
use serde::Serialize;
use wire::trace::{CommandId, Tap};

/// An access to the media.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MediaAccess {
    /// `read`, `write`, `flush`, `write zeroes` or `discard`.
    pub operation: &'static str,
    /// Namespace identifier.
    pub nsid: u32,
    /// Offset of the first byte in the namespace.
    pub offset: u64,
    /// Bytes of the access.
    pub bytes: u64,
    /// Start of the access, on the timeline.
    pub from_ns: i64,
    /// End of the access, on the timeline; null if the access did not end.
    pub to_ns: Option<i64>,
    /// Whether the access succeeded.
    pub ok: bool,
}

/// A command as its drive recorded it.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct DriveTiming {
    /// Time at which the submission entry had arrived, on the timeline.
    pub fetched_ns: i64,
    /// Time at which the completion entry was posted, on the timeline; null if it was not posted.
    pub completed_ns: Option<i64>,
    /// Accesses to the media, in order.
    pub media: Vec<MediaAccess>,
}

impl Run {
    /// Returns the command as its drive recorded it; `None` without the trace of the drive.
    pub fn in_drive(&self, command: &Command) -> Option<DriveTiming> {
        let first = |kind| command.steps.iter().find(|step| step.kind == kind);
        let (node, from) = self.at_drive(command.entry_arrival()?.number)?;
        let entry = first(StepKind::CqeWrite).and_then(|step| self.at_drive(step.number));
        let to = entry.map_or(u64::MAX, |(_, at)| at);
        let id = CommandId { queue: command.queue, cid: command.entry.cid };
        let (work, accesses) = self.nodes[node].index.drive.find(id, from, to)?;
        let at = |at| self.timeline(node, at);
        let access = |access: &Access| MediaAccess {
            operation: access.operation.name(),
            nsid: access.nsid,
            offset: access.offset,
            bytes: access.length,
            from_ns: at(access.from),
            to_ns: access.to.map(at),
            ok: access.ok,
        };
        Some(DriveTiming {
            fetched_ns: at(work.fetched),
            completed_ns: work.completed.map(at),
            media: accesses.iter().map(access).collect(),
        })
    }

    /// Returns the state changes of all drives: node, time on the timeline, change.
    pub fn state_changes(&self) -> Vec<(usize, i64, StateChange)> {
        let node_changes = |node: usize| {
            let state_changes = self.nodes[node].index.drive.state_changes().iter();
            state_changes.map(move |change| (node, self.timeline(node, change.at), *change))
        };
        let mut state_changes: Vec<_> = (0..self.nodes.len()).flat_map(node_changes).collect();
        state_changes.sort_by_key(|(_, at, _)| *at);
        state_changes
    }

    /// Returns the planned faults that began: node, time on the timeline, place, text form.
    pub fn faults(&self) -> Vec<(usize, i64, Tap, &str)> {
        let of_node = |node: usize| {
            let faults = self.nodes[node].index.faults.iter();
            faults.map(move |(at, tap, text)| (node, self.timeline(node, *at), *tap, &**text))
        };
        let mut faults: Vec<_> = (0..self.nodes.len()).flat_map(of_node).collect();
        faults.sort_by_key(|(_, at, ..)| *at);
        faults
    }
}
