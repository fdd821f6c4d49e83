//! Events of the controller, reported to the owner of the subsystem for traces.

use super::Controller;
use crate::slots::Key;
use std::collections::VecDeque;
use wire::trace::{CommandId, ControllerState, NvmeEvent};

/// The maximum number of queued events; further events are lost. With a poll after every call, only
/// a few events are queued.
const MAX_EVENTS: usize = 4096;
/// The initial capacity. A ring buffer with the capacity `MAX_EVENTS` would use all of its memory
/// in turns.
const INITIAL_EVENTS: usize = 16;

/// The queue of events to report.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    enabled: bool,
    events: VecDeque<NvmeEvent>,
}

impl EventQueue {
    pub(super) fn add(&mut self, event: NvmeEvent) {
        if self.enabled && self.events.len() < MAX_EVENTS {
            self.events.push_back(event);
        }
    }
}

impl Controller {
    /// Enables or disables events. Drops queued events.
    pub(crate) fn set_events(&mut self, enabled: bool) {
        self.reported = EventQueue { enabled, ..EventQueue::default() };
        if enabled {
            self.reported.events.reserve(INITIAL_EVENTS);
        }
    }

    /// The next event, oldest first.
    pub(crate) fn poll_event(&mut self) -> Option<NvmeEvent> {
        self.reported.events.pop_front()
    }

    pub(super) fn report_media_ended(&mut self, id: Option<CommandId>, nsid: u32, ok: bool) {
        self.reported.add(NvmeEvent::MediaEnded { id, nsid, ok });
    }

    pub(super) fn report_state(&mut self, state: ControllerState) {
        self.reported.add(NvmeEvent::State(state));
    }

    /// The ID of a command under way; `None` if a reset dropped it.
    pub(super) fn command_id(&self, key: Key) -> Option<CommandId> {
        let execution = self.commands.get(key)?;
        Some(CommandId { queue: execution.sq, cid: execution.command.cid })
    }
}
