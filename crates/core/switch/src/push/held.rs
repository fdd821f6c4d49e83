//! The bytes kept for one function: intervals of host addresses, each with its command.

use super::Command;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use wire::Arena;

/// Bytes below this are copied out of the frame that brought them: otherwise 64 bytes could keep
/// the memory of a whole frame.
const COPIED: usize = 1024;
/// Bytes below this are those of an entry or of a short list: no others follow them.
const SMALL: usize = 64;
/// Pieces do not grow beyond multiples of this: no read crosses them (PCIe Base 4.0, section 2.2.7).
const PAGE: u64 = 4096;

/// Bytes in one piece.
#[derive(Debug)]
enum Piece {
    /// In the memory of the frame that brought them.
    Frame(Bytes),
    /// In memory to which more can be added.
    Own(BytesMut),
}

impl Piece {
    /// Memory is for a page if `more` bytes of it may follow.
    fn new(bytes: Bytes, more: bool, arena: &mut Arena) -> Self {
        if bytes.len() >= COPIED {
            return Self::Frame(bytes);
        }
        let mut own = arena.buffer(if more { PAGE as usize } else { bytes.len() });
        own.extend_from_slice(&bytes);
        Self::Own(own)
    }

    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Frame(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }

    /// Adds bytes behind the last.
    fn append(&mut self, more: &[u8]) {
        match self {
            Self::Frame(bytes) => {
                let mut own = BytesMut::with_capacity(PAGE as usize);
                own.extend_from_slice(bytes);
                own.extend_from_slice(more);
                *self = Self::Own(own);
            }
            Self::Own(own) => {
                if own.capacity() < own.len() + more.len() {
                    own.reserve(PAGE as usize - own.len().min(PAGE as usize / 2));
                }
                own.extend_from_slice(more);
            }
        }
    }

    /// Removes the first `length` bytes, and yields them.
    fn split_to(&mut self, length: usize) -> Self {
        match self {
            Self::Frame(bytes) => Self::Frame(bytes.split_to(length)),
            Self::Own(bytes) => Self::Own(bytes.split_to(length)),
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::Frame(bytes) => bytes,
            Self::Own(bytes) => bytes.freeze(),
        }
    }
}

#[derive(Debug)]
struct Segment {
    bytes: Piece,
    command: Command,
    /// Smaller is older.
    order: u64,
}

/// The bytes kept for one function. No address is kept twice.
#[derive(Debug)]
pub(super) struct Held {
    segments: BTreeMap<u64, Segment>,
    /// Where the piece begins that was added to last, its end, and the next piece behind it, as long
    /// as nothing else has changed.
    last: Option<(u64, Range<u64>)>,
    /// For what is copied out of frames.
    arena: Arena,
    by_command: BTreeSet<(Command, u64)>,
    pub bytes: usize,
}

impl Default for Held {
    fn default() -> Self {
        let (segments, by_command) = (BTreeMap::new(), BTreeSet::new());
        Self { segments, last: None, arena: Arena::new(16 * PAGE as usize), by_command, bytes: 0 }
    }
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

    /// Keeps bytes behind those that were added last, if they belong to the same command and page and
    /// nothing is kept there. Returns whether it has.
    pub fn append(&mut self, start: u64, bytes: &[u8], command: Command) -> bool {
        let Some((first, room)) = &mut self.last else { return false };
        let end = start + bytes.len() as u64;
        if room.start != start || end > room.end {
            return false;
        }
        let Some(segment) = self.segments.get_mut(first) else { return false };
        if segment.command != command {
            return false;
        }
        segment.bytes.append(bytes);
        self.bytes += bytes.len();
        room.start = end;
        true
    }

    /// Keeps bytes, where none are.
    pub fn insert(&mut self, mut start: u64, mut bytes: Bytes, command: Command, order: u64) {
        let before = self.segments.range_mut(..start).next_back();
        if let Some((first, segment)) = before
            && segment.command == command
            && first + segment.bytes.len() as u64 == start
            && !start.is_multiple_of(PAGE)
        {
            let rest = (PAGE - start % PAGE) as usize;
            let part = bytes.split_to(bytes.len().min(rest));
            self.bytes += part.len();
            start += part.len() as u64;
            segment.bytes.append(&part);
            self.last = None;
        }
        if !bytes.is_empty() {
            let end = start + bytes.len() as u64;
            let more = bytes.len() > SMALL;
            let bytes = Piece::new(bytes, more, &mut self.arena);
            self.put(start, Segment { bytes, command, order });
            let next = self.segments.range(end..).next().map_or(u64::MAX, |(next, _)| *next);
            self.last = Some((start, end..next.min(end.next_multiple_of(PAGE))));
        }
    }

    fn put(&mut self, start: u64, segment: Segment) {
        self.last = None;
        self.bytes += segment.bytes.len();
        self.by_command.insert((segment.command, start));
        self.segments.insert(start, segment);
    }

    fn take(&mut self, start: u64) -> Option<Segment> {
        let segment = self.segments.remove(&start)?;
        self.last = None;
        self.bytes -= segment.bytes.len();
        self.by_command.remove(&(segment.command, start));
        Some(segment)
    }

    /// Removes what is kept of a range; yields how many bytes.
    pub fn remove(&mut self, range: Range<u64>) -> usize {
        let before = self.bytes;
        while let Some((&start, segment)) = self.segments.range(..range.end).next_back() {
            let end = start + segment.bytes.len() as u64;
            if end <= range.start {
                break;
            }
            self.cut(start, start.max(range.start)..end.min(range.end));
        }
        before - self.bytes
    }

    /// Removes a range of the piece at `start`; yields its bytes.
    fn cut(&mut self, start: u64, range: Range<u64>) -> Option<Piece> {
        let Segment { mut bytes, command, order } = self.take(start)?;
        if start < range.start {
            let bytes = bytes.split_to((range.start - start) as usize);
            self.put(start, Segment { bytes, command, order });
        }
        let wanted = bytes.split_to((range.end - range.start) as usize);
        if bytes.len() > 0 {
            self.put(range.end, Segment { bytes, command, order });
        }
        Some(wanted)
    }

    /// Removes all bytes of a range, and yields them; nothing if one of them is not there.
    pub fn take_range(&mut self, range: Range<u64>) -> Option<Bytes> {
        let (&start, segment) = self.segments.range(..=range.start).next_back()?;
        let end = start + segment.bytes.len() as u64;
        if range.end <= end {
            return self.cut(start, range).map(Piece::freeze);
        }
        let bytes = self.get(range.clone())?;
        self.remove(range);
        Some(bytes)
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
    fn get(&self, range: Range<u64>) -> Option<Bytes> {
        let (first, _) = self.segments.range(..=range.start).next_back()?;
        let length = (range.end - range.start) as usize;
        let mut all = BytesMut::with_capacity(length);
        for (start, segment) in self.segments.range(*first..range.end) {
            let (bytes, next) = (segment.bytes.as_slice(), range.start + all.len() as u64);
            let from = next.checked_sub(*start).map_or(bytes.len(), |from| from as usize);
            if from >= bytes.len() {
                return None;
            }
            all.extend_from_slice(&bytes[from..bytes.len().min(from + length - all.len())]);
        }
        (all.len() == length).then(|| all.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, usize, u16),
        Remove(u64, u64),
        End(u16),
        Take(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = || (0..64u64, 1..24u64);
        prop_oneof![
            (0..64u64, 1..24usize, 0..3u16)
                .prop_map(|(at, length, id)| Step::Insert(at, length, id)),
            // Often behind one another.
            (0..8u64, 0..2u16).prop_map(|(at, id)| Step::Insert(at * 8, 8, id)),
            range().prop_map(|(at, length)| Step::Remove(at, length)),
            (0..3u16).prop_map(Step::End),
            range().prop_map(|(at, length)| Step::Take(at, length)),
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
                        let bytes: Vec<u8> = (0..length).map(|i| (number * 7 + i) as u8).collect();
                        let free = (at..at + length as u64).all(|at| !model.contains_key(&at));
                        model.extend((at..).zip(bytes.iter().map(|byte| (*byte, id))));
                        let appended = held.append(at, &bytes, (0, id));
                        prop_assert!(free || !appended);
                        if !appended {
                            held.remove(at..at + length as u64);
                            held.insert(at, bytes.into(), (0, id), number as u64);
                        }
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
                    Step::Take(at, length) => {
                        let range = at..at + length;
                        let all: Option<Vec<u8>> =
                            range.clone().map(|a| model.get(&a).map(|(byte, _)| *byte)).collect();
                        let taken = held.take_range(range.clone()).map(|bytes| bytes.to_vec());
                        if taken.is_some() {
                            model.retain(|address, _| !range.contains(address));
                        }
                        prop_assert_eq!(taken, all);
                    }
                }
                prop_assert_eq!(held.bytes, model.len());
                prop_assert_eq!(held.by_command.len(), held.count());
            }
        }
    }
}
