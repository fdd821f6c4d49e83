//! A controller's queues, found by number and by address.

use crate::{Places, Ring};
use std::collections::BTreeMap;
use std::ops::Range;

/// A queue by its kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// A submission queue.
    Submission(u16),
    /// A completion queue.
    Completion(u16),
}

/// The queues of a controller, each with a state of the caller: `S` per submission queue, `C` per
/// completion queue.
#[derive(Clone, Debug, Default)]
pub struct Queues<S, C> {
    /// Submission queues by number.
    pub submission: BTreeMap<u16, S>,
    /// Completion queues by number.
    pub completion: BTreeMap<u16, C>,
    places: Places<Queue>,
}

impl<S, C> Queues<S, C> {
    /// Adds a submission queue; replaces one with the same number.
    pub fn add_submission(&mut self, id: u16, ring: Ring, queue: S) {
        self.remove_submission(id);
        self.places.add(ring.range(), Queue::Submission(id));
        self.submission.insert(id, queue);
    }

    /// Adds a completion queue; replaces one with the same number.
    pub fn add_completion(&mut self, id: u16, ring: Ring, queue: C) {
        self.remove_completion(id);
        self.places.add(ring.range(), Queue::Completion(id));
        self.completion.insert(id, queue);
    }

    /// Removes a submission queue; returns its state.
    pub fn remove_submission(&mut self, id: u16) -> Option<S> {
        self.places.remove(|queue| *queue == Queue::Submission(id));
        self.submission.remove(&id)
    }

    /// Removes a completion queue; returns its state.
    pub fn remove_completion(&mut self, id: u16) -> Option<C> {
        self.places.remove(|queue| *queue == Queue::Completion(id));
        self.completion.remove(&id)
    }

    /// Whether `range` overlaps a queue's memory.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        self.places.touches(range)
    }

    /// The queue whose memory contains `address`.
    pub fn at(&self, address: u64) -> Option<Queue> {
        self.places.at(address).map(|(_, queue)| *queue)
    }
}
