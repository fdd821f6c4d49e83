//! Events that a device node recorded about its drive.

use std::collections::HashMap;
use wire::nvme::opcode::admin::ASYNC_EVENT_REQUEST;
use wire::trace::{CommandId, ControllerState, MediaOperation, NvmeEvent};

/// Maximum number of commands of a drive that are stored, about 100 bytes each.
const MOST_COMMANDS: usize = 4 << 20;
/// Maximum number of stored state changes of a controller.
const MOST_STATES: usize = 1000;

/// A state change of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Time of the node's clock in nanoseconds.
    pub at: u64,
    /// The new state.
    pub state: ControllerState,
    /// Number of commands in flight, without Asynchronous Event Requests.
    pub open: usize,
}

/// A command in the drive, with times of the node's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub fetched: u64,
    pub completed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    work: u32,
    pub from: u64,
    pub to: Option<u64>,
    pub ok: bool,
    pub operation: MediaOperation,
    pub nsid: u32,
    pub offset: u64,
    pub length: u64,
}

/// Events of one drive.
#[derive(Debug, Default)]
pub(super) struct Drive {
    works: Vec<Work>,
    by_id: HashMap<CommandId, Vec<u32>>,
    accesses: Vec<Access>,
    /// Commands in flight: index of the work, index of the open access, and whether the command
    /// counts.
    open: HashMap<CommandId, (u32, Option<u32>, bool)>,
    state_changes: Vec<StateChange>,
    /// Number of all state changes, also those that are not stored.
    pub all_state_changes: u64,
    /// Number of commands beyond the limit.
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
            // Flushes of a shutdown belong to no command.
            NvmeEvent::MediaBegun { id: None, .. } | NvmeEvent::MediaEnded { id: None, .. } => {}
            NvmeEvent::State(state) => self.change(at, state),
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

    fn change(&mut self, at: u64, state: ControllerState) {
        let open = self.open.values().filter(|(_, _, counts)| *counts).count();
        self.all_state_changes += 1;
        if self.state_changes.len() < MOST_STATES {
            self.state_changes.push(StateChange { at, state, open });
        }
        if state.is_reset() {
            self.open.clear();
        }
    }

    /// Records that events are missing.
    pub fn gap(&mut self) {
        self.open.clear();
    }

    /// Ends the recording.
    pub fn finish(&mut self) {
        self.accesses.sort_by_key(|access| access.work);
        self.open = HashMap::new();
    }

    /// Returns the stored state changes.
    pub fn state_changes(&self) -> &[StateChange] {
        &self.state_changes
    }

    /// Returns the command with this `id` that was fetched first between `from` and `to`, and the
    /// accesses of the command to the media; `None` if there is no such command.
    pub fn find(&self, id: CommandId, from: u64, to: u64) -> Option<(Work, &[Access])> {
        let works = self.by_id.get(&id)?;
        let at = works.partition_point(|work| self.works[*work as usize].fetched < from);
        let number = *works.get(at)?;
        let work = self.works[number as usize];
        let first = self.accesses.partition_point(|access| access.work < number);
        let last = self.accesses.partition_point(|access| access.work <= number);
        (work.fetched <= to).then_some((work, &self.accesses[first..last]))
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
        let open: Vec<usize> = drive.state_changes().iter().map(|change| change.open).collect();
        assert_eq!(open, [1, 0], "the reset ended one");
    }
}
