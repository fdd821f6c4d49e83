//! What happened inside, told to the owner: for traces.

use super::Controller;
use crate::slots::Key;
use std::collections::VecDeque;
use wire::trace::{CommandId, ControllerState, NvmeEvent};

/// Events that wait at most. An owner that asks after every call finds a few.
const MAX_EVENTS: usize = 4096;
/// Events there is room for at first. A queue goes round in its memory: one
/// with room for the most would touch all of it, again and again.
const INITIAL_EVENTS: usize = 16;

/// Events that wait.
#[derive(Debug, Default)]
pub(super) struct ReportedState {
    wanted: bool,
    events: VecDeque<NvmeEvent>,
    lost: u64,
}

impl ReportedState {
    pub fn add(&mut self, event: NvmeEvent) {
        if !self.wanted {
            return;
        }
        if self.events.len() >= MAX_EVENTS {
            self.lost += 1;
            return;
        }
        self.events.push_back(event);
    }
}

impl Controller {
    /// Whether what happens is told by [`poll_event`](Self::poll_event); not
    /// before this was called. What has not been taken is forgotten when it is
    /// no longer wanted.
    pub fn set_events(&mut self, wanted: bool) {
        self.told = ReportedState { wanted, ..ReportedState::default() };
        if wanted {
            self.told.events.reserve(INITIAL_EVENTS);
        }
    }

    /// The next thing that happened, oldest first. Take them after each call
    /// that may have made some: they carry no time, and of those that wait
    /// beyond 4096 the new ones are lost.
    ///
    /// The media were asked for something when
    /// [`poll_block`](Self::poll_block) yields the request.
    pub fn poll_event(&mut self) -> Option<NvmeEvent> {
        self.told.events.pop_front()
    }

    /// Events lost so far because nobody took them.
    pub fn lost_events(&self) -> u64 {
        self.told.lost
    }

    pub(super) fn tell_ended(&mut self, id: Option<CommandId>, nsid: u32, ok: bool) {
        self.told.add(NvmeEvent::MediaEnded { id, nsid, ok });
    }

    pub(super) fn tell_state(&mut self, state: ControllerState) {
        self.told.add(NvmeEvent::State(state));
    }

    /// The name of a command under way; none of one that a reset forgot.
    pub(super) fn command_id(&self, key: Key) -> Option<CommandId> {
        let execution = self.commands.get(key)?;
        Some(CommandId { queue: execution.sq, cid: execution.command.cid })
    }
}
