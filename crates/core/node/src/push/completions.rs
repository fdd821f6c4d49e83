//! The receiver's rule: which pushed bytes a controller's own writes invalidate.

use follow::{Places, Ring, completion_entries};
use std::collections::BTreeMap;
use switch::push_store::{Invalid, Rule};
use wire::push::Queue;
use wire::tlp::{MemoryRequest, Packet, Tlp};

/// A submission queue, as its host announced it.
#[derive(Clone, Copy, Debug)]
struct Submission {
    /// As announced, with the SQ head of the last completion entry.
    queue: Queue,
    ring: Ring,
    completions: Ring,
}

/// The queues of one controller. Each entry that the controller writes to a completion queue
/// invalidates the bytes of its command, and the slots that its SQ head pointer has passed.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    queues: BTreeMap<u16, Submission>,
    /// The completion queues.
    places: Places<()>,
}

impl Completions {
    /// The slots from the last head pointer of a queue to `head`: consumed entries (NVM Express
    /// 1.4, section 4.1).
    fn consumed(&mut self, queue: u16, head: u16) -> [std::ops::Range<u64>; 2] {
        let Some(queue) = self.queues.get_mut(&queue) else { return [0..0, 0..0] };
        // The queue has no such slot, so the head is not used.
        let head = if head > queue.ring.last() { queue.queue.head } else { head };
        queue.ring.between(std::mem::replace(&mut queue.queue.head, head), head)
    }
}

impl Rule for Completions {
    fn queues(&self) -> usize {
        self.queues.len()
    }

    fn follows(&self, queue: u16) -> bool {
        self.queues.contains_key(&queue)
    }

    fn followed(&self) -> Vec<Queue> {
        self.queues.values().map(|followed| followed.queue).collect()
    }

    fn set_queue(&mut self, id: u16, queue: Option<Queue>) {
        self.queues.remove(&id);
        if let Some(queue) = queue {
            let Queue { last, completion_last, base, completion_base, .. } = queue;
            let ring = Ring::submission(base, last);
            let completions = Ring::completion(completion_base, completion_last);
            self.queues.insert(id, Submission { queue, ring, completions });
        }
        let rings = self.queues.values().map(|queue| queue.completions.range());
        self.places = rings.map(|range| (range, ())).collect();
    }

    fn write(&mut self, tlp: &Tlp, request: MemoryRequest, invalid: &mut dyn FnMut(Invalid)) {
        let written = request.address..request.address.saturating_add(tlp.payload() as u64);
        if tlp.run.is_some() && self.places.touches(&written) {
            for single in tlp.clone().singles() {
                if let Packet::MemoryWrite(request) = single.packet {
                    self.write(&single, request, invalid);
                }
            }
            return;
        }
        if self.places.at(request.address).is_some() {
            match completion_entries(tlp, request) {
                Some(entries) => entries.for_each(|entry| {
                    invalid(Invalid::Command((entry.sq_id, entry.cid)));
                    for range in self.consumed(entry.sq_id, entry.sq_head) {
                        invalid(Invalid::Range(range));
                    }
                }),
                None => invalid(Invalid::Range(0..u64::MAX)),
            }
        }
        invalid(Invalid::Range(written));
    }
}
