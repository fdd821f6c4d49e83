//! Submission queues (NVMe 1.4, sections 4.1 and 3.1.17).

use super::arbiter::Priority;
use super::distance;
use crate::slots::Key;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::nvme::{Command, SUBMISSION_ENTRY};

/// Entries being fetched from host memory.
#[derive(Debug)]
struct Fetch {
    read: Key,
    count: u16,
    data: Option<Bytes>,
}

/// The controller side of a submission queue in host memory.
#[derive(Debug, Default)]
pub(crate) struct SubmissionQueue {
    pub id: u16,
    /// ID of the completion queue.
    pub cq: u16,
    pub priority: Priority,
    base: u64,
    size: u32,
    /// Index of the next entry to take; completions report this index.
    pub head: u32,
    /// Index of the next entry to fetch.
    fetched: u32,
    tail: u32,
    fetches: VecDeque<Fetch>,
    /// Number of taken entries whose commands have not begun.
    taken: u16,
    /// Identifiers of commands without a completion.
    outstanding: Vec<u16>,
    /// The first command of a fused operation whose second command has not arrived.
    pub first: Option<Command>,
    /// Whether no resources are reserved for `first`, because no second command is being fetched.
    parked: bool,
    /// The Delete command that waits for the queue to drain.
    pub deleting: Option<Key>,
}

impl SubmissionQueue {
    /// A queue of `size` entries, 2 to 65536, at `base`.
    pub(crate) fn new(id: u16, cq: u16, base: u64, size: u32) -> Self {
        Self { id, cq, base, size, ..Self::default() }
    }

    /// A queue whose entries up to `head` were taken, and that the host has filled up to `tail`.
    pub(crate) fn at(self, head: u32, tail: u32) -> Self {
        Self { head, fetched: head, tail, ..self }
    }

    /// Base address and number of entries.
    pub(crate) fn place(&self) -> (u64, u32) {
        (self.base, self.size)
    }

    /// Holds the parked first command of a fused operation.
    pub(crate) fn park_again(&mut self, first: Command) {
        (self.first, self.parked) = (Some(first), true);
    }

    /// Takes an entry that an earlier process had taken.
    pub(crate) fn take_again(&mut self) {
        self.taken += 1;
    }

    /// This queue with another priority.
    pub(crate) fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Handles the tail doorbell. Returns false for a tail outside of the queue, an unchanged tail,
    /// and more entries than the queue has room for.
    pub(crate) fn ring(&mut self, tail: u32) -> bool {
        let used = distance(self.size, self.head, self.tail);
        let valid = tail < self.size
            && tail != self.tail
            && used + distance(self.size, self.tail, tail) < self.size;
        self.tail = if valid { tail } else { self.tail };
        valid
    }

    /// The last value of the tail doorbell.
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// Number of entries that are not yet being fetched.
    pub(crate) fn pending(&self) -> u32 {
        distance(self.size, self.fetched, self.tail)
    }

    pub(crate) fn fetches(&self) -> usize {
        self.fetches.len()
    }

    /// Address and count of the next contiguous entries, at most `limit`.
    pub(crate) fn next_batch(&self, limit: u16) -> (u64, u16) {
        let count = self.pending().min(limit.into()).min(self.size - self.fetched) as u16;
        (self.base + u64::from(self.fetched) * SUBMISSION_ENTRY as u64, count)
    }

    /// Records that `read` fetches the next `count` entries.
    pub(crate) fn fetching(&mut self, read: Key, count: u16) {
        self.fetched = self.advance(self.fetched, count);
        self.fetches.push_back(Fetch { read, count, data: None });
    }

    /// Stores the bytes that `read` has returned.
    pub(crate) fn arrived(&mut self, read: Key, data: Bytes) {
        let fetch = self.fetches.iter_mut().find(|fetch| fetch.read == read);
        let fetch = fetch.expect("every fetch in flight is noted");
        assert_eq!(data.len(), usize::from(fetch.count) * SUBMISSION_ENTRY);
        fetch.data = Some(data);
    }

    /// Takes the next arrived entries in queue order, and moves the head past them.
    pub(crate) fn take_arrived(&mut self) -> Option<Bytes> {
        self.fetches.front()?.data.as_ref()?;
        let fetch = self.fetches.pop_front().expect("looked at above");
        self.head = self.advance(self.head, fetch.count);
        self.taken += fetch.count;
        fetch.data
    }

    /// Begins a taken command; `false` if its identifier is in use.
    pub(crate) fn begin(&mut self, cid: u16) -> bool {
        self.taken -= 1;
        let unique = !self.outstanding.contains(&cid);
        self.outstanding.push(cid);
        unique
    }

    /// Whether the [`first`](Self::first) command of a fused operation has no reserved resources.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Parks the first command of a fused operation if no further entries are being fetched.
    /// Returns whether the command was parked; then the caller frees its reservation.
    pub(crate) fn park(&mut self) -> bool {
        let parks = self.first.is_some() && !self.parked && self.fetches.is_empty();
        if parks {
            self.parked = true;
            self.taken -= 1;
        }
        parks
    }

    /// Unparks the first command, because the caller has reserved resources for it.
    pub(crate) fn unpark(&mut self) {
        self.parked = false;
        self.taken += 1;
    }

    /// Whether no entry is being fetched and no command is under way.
    pub(crate) fn is_drained(&self) -> bool {
        self.fetches.is_empty() && self.taken == 0 && self.outstanding.is_empty()
    }

    /// Removes a completed command.
    pub(crate) fn finished(&mut self, cid: u16) {
        if let Some(at) = self.outstanding.iter().position(|outstanding| *outstanding == cid) {
            self.outstanding.swap_remove(at);
        }
    }

    fn advance(&self, index: u32, count: u16) -> u32 {
        (index + u32::from(count)) % self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_doorbell_is_checked() {
        let mut queue = SubmissionQueue::new(1, 1, 0x1000, 4);
        assert!(!queue.ring(4));
        assert!(!queue.ring(0), "adds nothing");
        assert!(queue.ring(2));
        assert!(!queue.ring(2), "the same again");
        assert!(!queue.ring(1), "more than the room left");
        assert!(queue.ring(3));
        assert!(!queue.ring(0), "a full queue has size - 1");
        assert_eq!(queue.pending(), 3);
    }

    #[test]
    fn the_largest_queue() {
        let mut queue = SubmissionQueue::new(1, 1, 0, 65536);
        assert!(!queue.ring(65536));
        assert!(queue.ring(65535));
        assert_eq!(queue.pending(), 65535);
        queue.fetching(Key::from_u64(1), 65535);
        assert_eq!(queue.next_batch(8), (65535 * 64, 0));
        queue.arrived(Key::from_u64(1), Bytes::from(vec![0; 65535 * 64]));
        assert_eq!(queue.take_arrived().unwrap().len(), 65535 * 64);
        assert!(queue.ring(3));
        assert_eq!(queue.next_batch(8), (65535 * 64, 1), "up to the end of the ring");
    }

    #[test]
    fn batches_end_at_the_ring_and_arrive_in_order() {
        let keys = |index| Key::from_u64(index);
        let mut queue = SubmissionQueue::new(1, 1, 0x1000, 4);
        assert!(queue.ring(3));
        assert_eq!(queue.next_batch(2), (0x1000, 2));
        queue.fetching(keys(1), 2);
        assert_eq!(queue.next_batch(8), (0x1080, 1));
        queue.fetching(keys(2), 1);
        assert_eq!(queue.head, 0);
        queue.arrived(keys(2), Bytes::from(vec![2; 64]));
        assert_eq!(queue.take_arrived(), None);
        queue.arrived(keys(1), Bytes::from(vec![1; 128]));
        assert_eq!(queue.take_arrived().unwrap().len(), 128);
        assert_eq!(queue.take_arrived().unwrap()[0], 2);
        assert_eq!(queue.head, 3);
        assert!(queue.ring(2));
        assert_eq!(queue.next_batch(8), (0x10c0, 1), "up to the end of the ring");
        queue.fetching(keys(3), 1);
        assert_eq!(queue.next_batch(8), (0x1000, 2));
    }
}
