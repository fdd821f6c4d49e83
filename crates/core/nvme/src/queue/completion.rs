//! Completion queues (NVMe 1.4, sections 4.1, 4.6 and 3.1.18).

use super::distance;
use wire::nvme::{COMPLETION_ENTRY, Completion};

/// The controller side of a completion queue in host memory.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    pub id: u16,
    /// The interrupt vector; `None` without interrupts.
    pub vector: Option<u16>,
    /// Number of submission queues with this completion queue.
    pub users: u16,
    base: u64,
    size: u32,
    head: u32,
    tail: u32,
    /// The phase tag of the next entry.
    pub phase: bool,
    /// Entries reserved for commands under way.
    reserved: u32,
}

impl CompletionQueue {
    /// A queue of `size` entries, 2 to 65536, at `base`.
    pub(crate) fn new(id: u16, vector: Option<u16>, base: u64, size: u32) -> Self {
        Self { id, vector, users: 0, base, size, head: 0, tail: 0, phase: true, reserved: 0 }
    }

    /// A queue whose entries from `head` to `tail` the host has not consumed.
    pub(crate) fn at(self, head: u32, tail: u32, phase: bool) -> Self {
        Self { head, tail, phase, ..self }
    }

    /// Base address and number of entries.
    pub(crate) fn place(&self) -> (u64, u32) {
        (self.base, self.size)
    }

    /// The tail and the phase of the next entry before the last `count` entries were posted.
    pub(crate) fn tail_before(&self, count: u32) -> (u32, bool) {
        let wraps = count > self.tail;
        let tail = if wraps { self.tail + self.size - count } else { self.tail - count };
        (tail, self.phase != wraps)
    }

    /// The last value of the head doorbell.
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// Whether an entry of the queue is at this address.
    pub(crate) fn contains(&self, address: u64) -> bool {
        let bytes = u64::from(self.size) * COMPLETION_ENTRY as u64;
        address.checked_sub(self.base).is_some_and(|offset| offset < bytes)
    }

    /// Number of entries that the host has not consumed.
    pub(crate) fn occupied(&self) -> u32 {
        distance(self.size, self.head, self.tail)
    }

    /// Number of entries that are neither occupied nor reserved. A command is fetched only if there
    /// is room for its completion. So a host that does not consume entries blocks only the commands
    /// of this queue.
    pub(crate) fn room(&self) -> u32 {
        (self.size - 1 - self.occupied()).saturating_sub(self.reserved)
    }

    /// The maximum number of entries that can be in use at the same time.
    pub(crate) fn capacity(&self) -> u32 {
        self.size - 1
    }

    /// Reserves entries; there must be room.
    pub(crate) fn reserve(&mut self, count: u32) {
        assert!(count <= self.room(), "reserved more entries than there are");
        self.reserved += count;
    }

    pub(crate) fn release(&mut self) {
        self.reserved -= 1;
    }

    /// Posts a reserved entry. Returns the address and the bytes to write there.
    pub(crate) fn post(&mut self, mut entry: Completion) -> (u64, [u8; COMPLETION_ENTRY]) {
        self.release();
        assert!(self.occupied() < self.size - 1, "completion queue overrun");
        entry.phase = self.phase;
        let address = self.base + u64::from(self.tail) * COMPLETION_ENTRY as u64;
        self.tail += 1;
        if self.tail == self.size {
            self.tail = 0;
            self.phase = !self.phase;
        }
        (address, entry.encode())
    }

    /// Handles the head doorbell. Returns false for a head outside of the queue, an unchanged head,
    /// and a head beyond the posted entries.
    pub(crate) fn ring(&mut self, head: u32) -> bool {
        let valid = head < self.size
            && head != self.head
            && distance(self.size, self.head, head) <= self.occupied();
        self.head = if valid { head } else { self.head };
        valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_turns_at_the_end_of_the_ring() {
        let mut queue = CompletionQueue::new(1, None, 0x2000, 2);
        let mut seen = Vec::new();
        for head in [1, 0, 1] {
            queue.reserve(1);
            let (address, entry) = queue.post(Completion::default());
            seen.push((address, Completion::decode(&entry).phase));
            assert_eq!(queue.room(), 0);
            assert!(queue.ring(head));
        }
        assert_eq!(seen, [(0x2000, true), (0x2010, true), (0x2000, false)]);
    }

    #[test]
    fn the_largest_queue() {
        let mut queue = CompletionQueue::new(1, None, 0, 65536);
        queue.reserve(65535);
        let last = (0..65535).fold(0, |_, _| queue.post(Completion::default()).0);
        assert_eq!(last, 65534 * 16);
        assert_eq!((queue.occupied(), queue.room()), (65535, 0));
        assert!(queue.ring(65535));
        assert_eq!((queue.occupied(), queue.room()), (0, 65535));
        queue.reserve(1);
        assert!(queue.post(Completion::default()).0 == 65535 * 16 && !queue.phase);
    }

    #[test]
    fn the_head_doorbell_is_checked() {
        let mut queue = CompletionQueue::new(1, None, 0, 8);
        queue.reserve(2);
        assert_eq!(queue.room(), 5);
        queue.post(Completion::default());
        queue.post(Completion::default());
        assert!(!queue.ring(8));
        assert!(!queue.ring(0), "consumes nothing");
        assert!(!queue.ring(3), "consumes more than there is");
        assert!(queue.ring(2));
        assert_eq!((queue.occupied(), queue.room()), (0, 7));
    }
}
