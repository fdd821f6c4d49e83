//! The far side's rule: which pushed bytes a controller's own writes invalidate.

use super::Ending;
use follow::{Places, Ring, completion_entries};
use std::collections::BTreeMap;
use switch::push::{Invalid, Rule};
use wire::push::Queue;
use wire::tlp::{MemoryRequest, Tlp};

/// A submission queue, as its host announced it.
#[derive(Clone, Copy, Debug)]
struct Submission {
    ring: Ring,
    completions: Ring,
    /// As the last completion entry reported.
    head: u16,
}

/// The queues of one controller. Of its writes to a completion queue, each entry invalidates the
/// bytes of its command, and the slots that its SQ head pointer has passed.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    queues: BTreeMap<u16, Submission>,
    /// The completion queues.
    places: Places<()>,
    without: Option<Ending>,
}

impl Completions {
    /// Leaves one ending out, for tests: stale bytes stay.
    pub fn leave_out(ending: Ending) -> Self {
        Self { without: Some(ending), ..Self::default() }
    }

    /// The slots from the last head pointer of a queue up to this one: consumed entries (NVM Express
    /// 1.4, section 4.1).
    fn consumed(&mut self, queue: u16, head: u16) -> [std::ops::Range<u64>; 2] {
        let Some(queue) = self.queues.get_mut(&queue) else { return [0..0, 0..0] };
        // A slot that the queue does not have: trust nothing of it.
        let head = if head > queue.ring.last() { queue.head } else { head };
        queue.ring.between(std::mem::replace(&mut queue.head, head), head)
    }
}

impl Rule for Completions {
    fn queues(&self) -> usize {
        self.queues.len()
    }

    fn follows(&self, queue: u16) -> bool {
        self.queues.contains_key(&queue)
    }

    fn set_queue(&mut self, id: u16, queue: Option<Queue>) {
        self.queues.remove(&id);
        if let Some(Queue { last, head, completion_last, base, completion_base, .. }) = queue {
            let ring = Ring::submission(base, last);
            let completions = Ring::completion(completion_base, completion_last);
            self.queues.insert(id, Submission { ring, completions, head });
        }
        let mut rings: Vec<Ring> = self.queues.values().map(|queue| queue.completions).collect();
        // Of two that begin at one address, the longer one counts.
        rings.sort_by_key(Ring::last);
        self.places = rings.iter().map(|ring| (ring.range(), ())).collect();
    }

    fn write(&mut self, tlp: &Tlp, request: MemoryRequest, mut invalid: impl FnMut(Invalid)) {
        let ends = |ending| self.without != Some(ending);
        let [completion, head, partial, write] =
            [Ending::Completion, Ending::Head, Ending::PartialEntry, Ending::Write].map(ends);
        let address = request.address;
        if self.places.at(address).is_some() {
            match completion_entries(tlp, request) {
                Some(entries) => {
                    for entry in entries {
                        if completion {
                            invalid(Invalid::Command((entry.sq_id, entry.cid)));
                        }
                        let consumed = self.consumed(entry.sq_id, entry.sq_head);
                        let consumed = consumed.into_iter().filter(|_| head);
                        consumed.for_each(|range| invalid(Invalid::Range(range)));
                    }
                }
                None if partial => invalid(Invalid::Range(0..u64::MAX)),
                None => {}
            }
        }
        if write {
            let end = address.saturating_add(tlp.data.len() as u64);
            invalid(Invalid::Range(address..end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::{Bdf, nvme};

    const QUEUE: Queue = Queue {
        id: 1,
        last: 7,
        head: 0,
        completion_last: 7,
        base: 0x1000,
        completion_base: 0x2000,
    };

    fn completions() -> Completions {
        let mut completions = Completions::default();
        completions.set_queue(1, Some(QUEUE));
        completions
    }

    fn entry(cid: u16, sq_head: u16) -> Bytes {
        let completion = nvme::Completion { sq_head, sq_id: 1, cid, ..Default::default() };
        Bytes::copy_from_slice(&completion.encode())
    }

    /// What a write invalidates beyond the bytes that it covers.
    fn invalid(completions: &mut Completions, address: u64, data: &Bytes) -> Vec<Invalid> {
        let tlp = Tlp::write_bytes(Bdf::new(3, 0, 0), address, data).unwrap();
        let wire::tlp::Packet::MemoryWrite(request) = tlp.packet else { unreachable!() };
        let mut all = Vec::new();
        completions.write(&tlp, request, |one| all.push(one));
        let covered = Invalid::Range(address..address + data.len() as u64);
        assert_eq!(all.pop(), Some(covered));
        all.retain(|one| *one != Invalid::Range(0..0));
        all
    }

    #[test]
    fn a_completion_entry_ends_its_command_and_the_slots_up_to_its_head() {
        let mut completions = completions();
        let found = invalid(&mut completions, 0x2000, &entry(0, 2));
        assert_eq!(found, [Invalid::Command((1, 0)), Invalid::Range(0x1000..0x1080)]);
        let found = invalid(&mut completions, 0x2010, &entry(5, 1));
        let around = [Invalid::Range(0x1080..0x1200), Invalid::Range(0x1000..0x1040)];
        assert_eq!(found[1..], around);
        let found = invalid(&mut completions, 0x2020, &entry(6, 8));
        assert_eq!(found[1..], [Invalid::Range(0x1040..0x1040)], "no slot of the queue");
        assert!(invalid(&mut completions, 0x2080, &entry(3, 4)).is_empty(), "no completion queue");
    }

    #[test]
    fn an_entry_in_pieces_ends_everything() {
        let found = invalid(&mut completions(), 0x2008, &entry(7, 1).slice(8..));
        assert_eq!(found, [Invalid::Range(0..u64::MAX)]);
    }

    #[test]
    fn the_longer_one_of_two_completion_queues_at_one_address_counts() {
        let mut completions = completions();
        completions.set_queue(2, Some(Queue { id: 2, completion_last: 3, ..QUEUE }));
        assert_eq!(invalid(&mut completions, 0x2070, &entry(0, 0)).len(), 2);
        completions.set_queue(1, None);
        assert!(invalid(&mut completions, 0x2070, &entry(0, 0)).is_empty());
        assert!(completions.follows(2) && !completions.follows(1));
    }
}
