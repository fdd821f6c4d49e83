//! Tells where the rings are, if anybody wants to know.

use super::Controller;
use crate::commands::Event;
use crate::commands::rings::{Ring, RingState};
use crate::commands::shared::Shared;
use std::collections::BTreeSet;
use wire::nvme::Completion;

impl Controller {
    pub(super) fn tell(&self, queue: u16, ring: Ring, shared: &mut Shared) {
        if shared.settings.follow_rings {
            let (at, device) = (shared.at, self.device);
            shared.emit(Event::Ring(RingState { at, device, queue, ring }));
        }
    }

    pub(super) fn tell_submission(&self, id: u16, shared: &mut Shared) {
        let ring = self.queues.submission.get(&id).map(|queue| queue.ring_state());
        ring.into_iter().for_each(|ring| self.tell(id, ring, shared));
    }

    pub(super) fn tell_completion(&self, id: u16, shared: &mut Shared) {
        let ring = self.queues.completion.get(&id).map(|queue| queue.ring_state());
        ring.into_iter().for_each(|ring| self.tell(id, ring, shared));
    }

    /// All rings, after TLPs were missing.
    pub(super) fn tell_all(&self, shared: &mut Shared) {
        self.queues.submission.keys().for_each(|id| self.tell_submission(*id, shared));
        self.queues.completion.keys().for_each(|id| self.tell_completion(*id, shared));
    }

    /// That no queue is left.
    pub(super) fn tell_gone(&self, shared: &mut Shared) {
        let ids = self.queues.submission.keys().chain(self.queues.completion.keys());
        let ids: BTreeSet<u16> = ids.copied().collect();
        ids.into_iter().for_each(|id| self.tell(id, Ring::Gone, shared));
    }

    /// The drive writes a completion entry to `cq`, whatever command it is of.
    pub(super) fn ring_entry(&mut self, cq: u16, entry: &Completion, at: u64, shared: &mut Shared) {
        if let Some(queue) = self.queues.completion.get_mut(&cq) {
            queue.written(at, entry.phase);
        }
        if let Some(queue) = self.queues.submission.get_mut(&entry.sq_id) {
            queue.head(entry.sq_head);
        }
        self.tell_completion(cq, shared);
        self.tell_submission(entry.sq_id, shared);
    }
}
