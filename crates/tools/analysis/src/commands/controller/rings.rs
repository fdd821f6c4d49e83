//! Emits ring positions as events, if the settings follow rings.

use super::Controller;
use crate::commands::Event;
use crate::commands::rings::{Ring, RingState};
use crate::commands::shared::Shared;
use std::collections::BTreeSet;
use wire::nvme::Completion;

impl Controller {
    pub(super) fn emit_ring(&self, queue: u16, ring: Ring, shared: &mut Shared) {
        if shared.settings.follow_rings {
            let (at, device) = (shared.at, self.device);
            shared.emit(Event::Ring(RingState { at, device, queue, ring }));
        }
    }

    pub(super) fn emit_submission_ring(&self, id: u16, shared: &mut Shared) {
        let ring = self.queues.submission.get(&id).map(|queue| queue.ring_state());
        ring.into_iter().for_each(|ring| self.emit_ring(id, ring, shared));
    }

    pub(super) fn emit_completion_ring(&self, id: u16, shared: &mut Shared) {
        let ring = self.queues.completion.get(&id).map(|queue| queue.ring_state());
        ring.into_iter().for_each(|ring| self.emit_ring(id, ring, shared));
    }

    /// Emits all rings again after missing TLPs.
    pub(super) fn emit_all_rings(&self, shared: &mut Shared) {
        self.queues.submission.keys().for_each(|id| self.emit_submission_ring(*id, shared));
        self.queues.completion.keys().for_each(|id| self.emit_completion_ring(*id, shared));
    }

    /// Emits `Ring::Gone` for every queue.
    pub(super) fn emit_gone(&self, shared: &mut Shared) {
        let ids = self.queues.submission.keys().chain(self.queues.completion.keys());
        let ids: BTreeSet<u16> = ids.copied().collect();
        ids.into_iter().for_each(|id| self.emit_ring(id, Ring::Gone, shared));
    }

    /// Handles a completion entry that the drive writes to `cq`, for any command.
    pub(super) fn ring_entry(&mut self, cq: u16, entry: &Completion, at: u64, shared: &mut Shared) {
        if let Some(queue) = self.queues.completion.get_mut(&cq) {
            queue.written(at, entry.phase);
        }
        if let Some(queue) = self.queues.submission.get_mut(&entry.sq_id) {
            queue.head(entry.sq_head);
        }
        self.emit_completion_ring(cq, shared);
        self.emit_submission_ring(entry.sq_id, shared);
    }
}
