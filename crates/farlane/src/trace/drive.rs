//! What a device node's drive told of itself, and which command it was.

use super::run::Run;
use crate::analyse::{Command, StepKind};
use serde::Serialize;
use std::collections::HashMap;
use wire::nvme::opcode::admin::ASYNC_EVENT_REQUEST;
use wire::trace::{CommandId, ControllerState, MediaOperation, NvmeEvent};

/// Commands of a drive that are looked at, about 100 bytes each.
const MOST_COMMANDS: usize = 4 << 20;
/// Turns in the life of a controller that are kept.
const MOST_STATES: usize = 1000;

/// A turn in the life of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Nanoseconds of the node's clock.
    pub at: u64,
    /// What it is now.
    pub state: ControllerState,
    /// Commands that were on their way, asynchronous event requests left out.
    pub open: usize,
}

/// A command in the drive, by the node's clock.
#[derive(Clone, Copy, Debug)]
struct Work {
    fetched: u64,
    completed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Access {
    work: u32,
    from: u64,
    to: Option<u64>,
    ok: bool,
    operation: MediaOperation,
    nsid: u32,
    offset: u64,
    length: u64,
}

/// Events of one drive.
#[derive(Debug, Default)]
pub(super) struct Drive {
    works: Vec<Work>,
    by_id: HashMap<CommandId, Vec<u32>>,
    accesses: Vec<Access>,
    /// Commands on their way: the work, its access, and whether it counts.
    open: HashMap<CommandId, (u32, Option<u32>, bool)>,
    turns: Vec<Turn>,
    /// Turns in all.
    pub all_turns: u64,
    /// Commands beyond the limit.
    pub beyond: u64,
}

impl Drive {
    pub fn event(&mut self, at: u64, event: NvmeEvent) {
        match event {
            NvmeEvent::Fetched { id, opcode, .. } => self.fetched(at, id, opcode),
            NvmeEvent::MediaBegun { id: Some(id), operation, nsid, offset, length } => {
                let Some((work, access, _)) = self.open.get_mut(&id) else { return };
                *access = Some(self.accesses.len() as u32);
                let (work, from, to, ok) = (*work, at, None, false);
                let access = Access { work, from, to, ok, operation, nsid, offset, length };
                self.accesses.push(access);
            }
            NvmeEvent::MediaEnded { id: Some(id), ok, .. } => {
                let open = self.open.get_mut(&id);
                let Some(access) = open.and_then(|(_, access, _)| access.take()) else { return };
                let access = &mut self.accesses[access as usize];
                (access.to, access.ok) = (Some(at), ok);
            }
            NvmeEvent::Completed { id, .. } => {
                if let Some((work, ..)) = self.open.remove(&id) {
                    self.works[work as usize].completed = Some(at);
                }
            }
            // Flushes of a shutdown.
            NvmeEvent::MediaBegun { id: None, .. } | NvmeEvent::MediaEnded { id: None, .. } => {}
            NvmeEvent::State(state) => self.turn(at, state),
        }
    }

    fn fetched(&mut self, at: u64, id: CommandId, opcode: u8) {
        if self.works.len() >= MOST_COMMANDS {
            self.beyond += 1;
            return;
        }
        let work = self.works.len() as u32;
        self.works.push(Work { fetched: at, completed: None });
        self.by_id.entry(id).or_default().push(work);
        let waits = id.queue == 0 && opcode == ASYNC_EVENT_REQUEST;
        self.open.insert(id, (work, None, !waits));
    }

    fn turn(&mut self, at: u64, state: ControllerState) {
        let open = self.open.values().filter(|(_, _, counts)| *counts).count();
        self.all_turns += 1;
        if self.turns.len() < MOST_STATES {
            self.turns.push(Turn { at, state, open });
        }
        if state.is_reset() {
            self.open.clear();
        }
    }

    /// Events are missing here.
    pub fn gap(&mut self) {
        self.open.clear();
    }

    /// All events are there.
    pub fn finish(&mut self) {
        self.accesses.sort_by_key(|access| access.work);
        self.open = HashMap::new();
    }

    /// The turns that are kept.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The command that was fetched first between `from` and `to`.
    fn find(&self, id: CommandId, from: u64, to: u64) -> Option<(Work, &[Access])> {
        let works = self.by_id.get(&id)?;
        let at = works.partition_point(|work| self.works[*work as usize].fetched < from);
        let number = *works.get(at)?;
        let work = self.works[number as usize];
        let first = self.accesses.partition_point(|access| access.work < number);
        let last = self.accesses.partition_point(|access| access.work <= number);
        (work.fetched <= to).then_some((work, &self.accesses[first..last]))
    }
}

/// One access to the media, on the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MediaAccess {
    /// What.
    pub operation: &'static str,
    /// On which namespace.
    pub nsid: u32,
    /// First byte of the namespace.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// When it began, in nanoseconds.
    pub from_ns: i64,
    /// When it ended, if it did.
    pub to_ns: Option<i64>,
    /// Whether it succeeded.
    pub ok: bool,
}

/// A command as its drive saw it, on the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InDrive {
    /// When its entry had come, in nanoseconds.
    pub fetched_ns: i64,
    /// When its completion entry was posted, if it was.
    pub completed_ns: Option<i64>,
    /// What it asked of the media, in order.
    pub media: Vec<MediaAccess>,
}

impl Run {
    /// What the drive told of a command, if its trace is here.
    pub fn in_drive(&self, command: &Command) -> Option<InDrive> {
        let first = |kind| command.steps.iter().find(|step| step.kind == kind);
        let (node, from) = self.at_drive(first(StepKind::SqeData)?.number)?;
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
        Some(InDrive {
            fetched_ns: at(work.fetched),
            completed_ns: work.completed.map(at),
            media: accesses.iter().map(access).collect(),
        })
    }

    /// The lives of all drives: node, time on the timeline, and what.
    pub fn turns(&self) -> Vec<(usize, i64, Turn)> {
        let of = |node: usize| {
            let turns = self.nodes[node].index.drive.turns().iter();
            turns.map(move |turn| (node, self.timeline(node, turn.at), *turn))
        };
        let mut turns: Vec<_> = (0..self.nodes.len()).flat_map(of).collect();
        turns.sort_by_key(|(_, at, _)| *at);
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: CommandId = CommandId { queue: 1, cid: 7 };

    fn begun(nsid: u32, offset: u64) -> NvmeEvent {
        let operation = MediaOperation::Read;
        NvmeEvent::MediaBegun { id: Some(ID), operation, nsid, offset, length: 512 }
    }

    #[test]
    fn identifiers_are_used_again_and_resets_end_commands() {
        let mut drive = Drive::default();
        let done = NvmeEvent::Completed { id: ID, status: wire::nvme::Status::SUCCESS };
        for (at, event) in [
            (10, NvmeEvent::Fetched { id: ID, opcode: 2, nsid: 1 }),
            (12, begun(1, 0)),
            (15, NvmeEvent::MediaEnded { id: Some(ID), nsid: 1, ok: true }),
            (16, done),
            (20, NvmeEvent::Fetched { id: ID, opcode: 2, nsid: 1 }),
            (22, begun(1, 4096)),
            (23, NvmeEvent::State(ControllerState::HotReset)),
            (24, NvmeEvent::MediaEnded { id: None, nsid: 1, ok: true }),
            (30, NvmeEvent::State(ControllerState::Enabled)),
        ] {
            drive.event(at, event);
        }
        drive.finish();
        let (work, accesses) = drive.find(ID, 9, 16).unwrap();
        assert_eq!((work.fetched, work.completed, accesses.len()), (10, Some(16), 1));
        assert_eq!((accesses[0].from, accesses[0].to, accesses[0].ok), (12, Some(15), true));
        let (work, accesses) = drive.find(ID, 17, u64::MAX).unwrap();
        assert_eq!((work.completed, accesses[0].offset, accesses[0].to), (None, 4096, None));
        assert!(drive.find(ID, 17, 19).is_none() && drive.find(ID, 21, 99).is_none());
        let open: Vec<usize> = drive.turns().iter().map(|turn| turn.open).collect();
        assert_eq!(open, [1, 0], "the reset ended one");
    }
}
