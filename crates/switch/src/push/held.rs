//! The bytes kept for one function: intervals of host addresses, each with its command.

use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use wire::push::Queue;

/// Bytes below this are copied out of the frame that brought them: otherwise 64 bytes could keep
/// the memory of a whole frame.
const COPIED: usize = 1024;

/// Submission queue and command identifier.
pub(super) type Command = (u16, u16);

#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    command: Command,
    /// Smaller is older.
    order: u64,
}

/// The bytes kept for one function. No address is kept twice.
#[derive(Debug, Default)]
pub(super) struct Held {
    segments: BTreeMap<u64, Segment>,
    by_command: BTreeSet<(Command, u64)>,
    pub queues: BTreeMap<u16, Queue>,
    /// Lengths of the completion queues by their addresses.
    completion_queues: BTreeMap<u64, u64>,
    pub bytes: usize,
}

impl Held {
    /// Pieces.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    /// The order of the oldest bytes, with their range.
    pub fn oldest(&self) -> Option<(u64, Range<u64>)> {
        let (start, oldest) = self.segments.iter().min_by_key(|(_, segment)| segment.order)?;
        Some((oldest.order, *start..start + oldest.bytes.len() as u64))
    }

    /// Keeps bytes, where none are.
    pub fn insert(&mut self, start: u64, bytes: Bytes, command: Command, order: u64) {
        let bytes = if bytes.len() < COPIED { Bytes::copy_from_slice(&bytes) } else { bytes };
        self.put(start, Segment { bytes, command, order });
    }

    fn put(&mut self, start: u64, segment: Segment) {
        self.bytes += segment.bytes.len();
        self.by_command.insert((segment.command, start));
        self.segments.insert(start, segment);
    }

    fn take(&mut self, start: u64) -> Option<Segment> {
        let segment = self.segments.remove(&start)?;
        self.bytes -= segment.bytes.len();
        self.by_command.remove(&(segment.command, start));
        Some(segment)
    }

    /// Removes what is kept of a range; yields how many bytes.
    pub fn remove(&mut self, range: Range<u64>) -> usize {
        let before = self.bytes;
        let first =
            self.segments.range(..range.start).next_back().map_or(range.start, |(at, _)| *at);
        while let Some((&start, segment)) = self
            .segments
            .range(first..range.end)
            .find(|(at, segment)| **at + segment.bytes.len() as u64 > range.start)
        {
            let end = start + segment.bytes.len() as u64;
            let Some(Segment { bytes, command, order }) = self.take(start) else { break };
            if start < range.start {
                let bytes = bytes.slice(..(range.start - start) as usize);
                self.put(start, Segment { bytes, command, order });
            }
            if end > range.end {
                let bytes = bytes.slice((range.end - start) as usize..);
                self.put(range.end, Segment { bytes, command, order });
            }
        }
        before - self.bytes
    }

    /// Removes what is kept of a command; yields how many bytes.
    pub fn end_command(&mut self, command: Command) -> usize {
        self.end_commands(command..=command)
    }

    /// Removes what is kept of the commands of a queue; yields how many bytes.
    pub fn end_queue(&mut self, queue: u16) -> usize {
        self.end_commands((queue, 0)..=(queue, u16::MAX))
    }

    fn end_commands(&mut self, commands: std::ops::RangeInclusive<Command>) -> usize {
        let before = self.bytes;
        let range = (*commands.start(), 0)..=(*commands.end(), u64::MAX);
        while let Some(&(_, start)) = self.by_command.range(range.clone()).next() {
            self.take(start);
        }
        before - self.bytes
    }

    /// All bytes of a range, if all are there. They stay.
    pub fn get(&self, range: Range<u64>) -> Option<Bytes> {
        let (first, segment) = self.segments.range(..=range.start).next_back()?;
        let from = (range.start - first) as usize;
        let length = (range.end - range.start) as usize;
        if from >= segment.bytes.len() {
            return None;
        }
        if from + length <= segment.bytes.len() {
            return Some(segment.bytes.slice(from..from + length));
        }
        let mut all = BytesMut::with_capacity(length);
        all.extend_from_slice(&segment.bytes[from..]);
        for (start, segment) in self.segments.range(range.start + 1..range.end) {
            if *start != range.start + all.len() as u64 {
                return None;
            }
            let wanted = segment.bytes.len().min(length - all.len());
            all.extend_from_slice(&segment.bytes[..wanted]);
        }
        (all.len() == length).then(|| all.freeze())
    }

    /// Follows a queue, or forgets it with `None`.
    pub fn set_queue(&mut self, id: u16, queue: Option<Queue>) {
        match queue {
            Some(queue) => self.queues.insert(id, queue),
            None => self.queues.remove(&id),
        };
        self.completion_queues.clear();
        for queue in self.queues.values() {
            let length = (u64::from(queue.completion_last) + 1) * ENTRY;
            let longest = self.completion_queues.entry(queue.completion_base).or_default();
            *longest = length.max(*longest);
        }
    }

    /// Whether `address` is in a completion queue.
    pub fn completes(&self, address: u64) -> bool {
        let queue = self.completion_queues.range(..=address).next_back();
        queue.is_some_and(|(base, length)| address - base < *length)
    }

    /// Takes note of the SQ head pointer of a completion entry: the slots from the head before up
    /// to it are consumed (NVM Express 1.4, section 4.1). Yields their addresses,
    /// in two parts.
    pub fn consumed(&mut self, queue: u16, head: u16) -> [Range<u64>; 2] {
        let Some(queue) = self.queues.get_mut(&queue) else { return [0..0, 0..0] };
        // A slot that the queue does not have: trust nothing of it.
        let head = if head > queue.last { queue.head } else { head };
        let (from, to) = (u64::from(std::mem::replace(&mut queue.head, head)), u64::from(head));
        let slot = |slot: u64| queue.base + slot * SLOT;
        match from <= to {
            true => [slot(from)..slot(to), 0..0],
            false => [slot(from)..slot(u64::from(queue.last) + 1), slot(0)..slot(to)],
        }
    }
}

/// Bytes of a completion queue entry.
const ENTRY: u64 = wire::nvme::COMPLETION_ENTRY as u64;
/// Bytes of a submission queue entry.
const SLOT: u64 = wire::nvme::SUBMISSION_ENTRY as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, usize, u16),
        Remove(u64, u64),
        End(u16),
        Get(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = || (0..64u64, 1..24u64);
        prop_oneof![
            (0..64u64, 1..24usize, 0..3u16)
                .prop_map(|(at, length, id)| Step::Insert(at, length, id)),
            range().prop_map(|(at, length)| Step::Remove(at, length)),
            (0..3u16).prop_map(Step::End),
            range().prop_map(|(at, length)| Step::Get(at, length)),
        ]
    }

    proptest! {
        /// As a map from each address to its byte and command.
        #[test]
        fn intervals_are_bytes(steps in prop::collection::vec(step(), 0..60)) {
            let mut held = Held::default();
            let mut model: BTreeMap<u64, (u8, u16)> = BTreeMap::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(at, length, id) => {
                        held.remove(at..at + length as u64);
                        let bytes: Vec<u8> = (0..length).map(|i| (number * 7 + i) as u8).collect();
                        model.extend((at..).zip(bytes.iter().map(|byte| (*byte, id))));
                        held.insert(at, bytes.into(), (0, id), number as u64);
                    }
                    Step::Remove(at, length) => {
                        let before = model.len();
                        model.retain(|address, _| !(at..at + length).contains(address));
                        prop_assert_eq!(held.remove(at..at + length), before - model.len());
                    }
                    Step::End(id) => {
                        let before = model.len();
                        model.retain(|_, (_, command)| *command != id);
                        prop_assert_eq!(held.end_command((0, id)), before - model.len());
                    }
                    Step::Get(at, length) => {
                        let range = at..at + length;
                        let all: Option<Vec<u8>> =
                            range.clone().map(|a| model.get(&a).map(|(byte, _)| *byte)).collect();
                        prop_assert_eq!(held.get(range).map(|bytes| bytes.to_vec()), all);
                    }
                }
                prop_assert_eq!(held.bytes, model.len());
                prop_assert_eq!(held.by_command.len(), held.count());
            }
        }
    }

    #[test]
    fn the_head_goes_round() {
        let mut held = Held::default();
        let queue = Queue {
            id: 1,
            last: 7,
            head: 6,
            completion_last: 3,
            base: 0x1000,
            completion_base: 0x3000,
        };
        held.set_queue(1, Some(queue));
        assert_eq!(held.consumed(1, 7), [0x1180..0x11c0, 0..0]);
        assert_eq!(held.consumed(1, 2), [0x11c0..0x1200, 0x1000..0x1080]);
        assert_eq!(held.consumed(1, 2), [0x1080..0x1080, 0..0]);
        assert_eq!(held.consumed(1, 8), [0x1080..0x1080, 0..0], "no slot of the queue");
        assert_eq!(held.consumed(2, 1), [0..0, 0..0], "no such queue");
        assert!(held.completes(0x3000) && held.completes(0x303f));
        assert!(!held.completes(0x2fff) && !held.completes(0x3040));
        held.set_queue(1, None);
        assert!(!held.completes(0x3000));
    }
}
