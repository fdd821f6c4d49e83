//! The bytes kept for one function: ranges of host addresses, each with a command.

use super::Command;
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::ops::Range;
use wire::{Arena, Table};

/// Pieces with fewer bytes are copied out of their frame. Otherwise 64 bytes could keep the memory
/// of a whole frame alive.
const COPIED: usize = 1024;
/// Pushed bytes of at most this length are a queue entry or a short list. No bytes are appended to
/// such a piece.
const SMALL: usize = 64;
/// No piece crosses a multiple of this number of bytes, because no read does (PCIe Base 4.0,
/// section 2.2.7).
const PAGE: u64 = 4096;

/// The bytes of one piece.
#[derive(Debug)]
enum Piece {
    /// In the memory of the frame.
    Frame(Bytes),
    /// In memory with room for more bytes.
    Own(BytesMut),
}

impl Piece {
    /// A piece with these bytes. Short pieces are copied, to memory for a whole page if `more`
    /// bytes may follow.
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

    /// Appends bytes.
    fn append(&mut self, more: &[u8], arena: &mut Arena) {
        match self {
            Self::Frame(bytes) => {
                let mut own = arena.buffer(PAGE as usize);
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

    /// Removes the first `length` bytes and returns them.
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

/// Contiguous bytes in one page.
#[derive(Debug)]
struct Segment {
    start: u64,
    bytes: Piece,
    command: Command,
    /// Age of the bytes: a smaller number is older.
    order: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// The segments of a page in the order of their addresses.
type Page = SmallVec<[Segment; 1]>;

/// The bytes kept for one function. No address is kept twice.
#[derive(Debug)]
pub(super) struct Held {
    /// The kept bytes, by page number.
    pages: Table<u64, Page>,
    /// Memory that is reused for the segments of the next new page.
    spare: Page,
    /// Number of segments of each command.
    commands: Table<Command, usize>,
    segments: usize,
    /// The segment that was added last: its start, and the range of free addresses from its end to
    /// the limit of growth. `None` after any other change.
    last: Option<(u64, Range<u64>)>,
    /// Memory for bytes copied out of frames.
    arena: Arena,
    pub bytes: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            pages: Table::default(),
            spare: Page::new(),
            commands: Table::default(),
            segments: 0,
            last: None,
            arena: Arena::new(16 * PAGE as usize),
            bytes: 0,
        }
    }
}

impl Held {
    /// Number of segments.
    pub(super) fn count(&self) -> usize {
        self.segments
    }

    /// The age and the address range of the oldest segment.
    pub(super) fn oldest(&self) -> Option<(u64, Range<u64>)> {
        let oldest = self.pages.values().flatten().min_by_key(|segment| segment.order)?;
        Some((oldest.order, oldest.start..oldest.end()))
    }

    /// Appends bytes to the segment that was added last, if command and page are the same and the
    /// addresses are free. Returns whether the bytes were appended.
    pub(super) fn append(&mut self, start: u64, bytes: &[u8], command: Command) -> bool {
        let Some((first, room)) = &mut self.last else { return false };
        let end = start + bytes.len() as u64;
        if room.start != start || end > room.end {
            return false;
        }
        let Some(page) = self.pages.get_mut(&(*first / PAGE)) else { return false };
        let Some(segment) = page.iter_mut().find(|segment| segment.start == *first) else {
            return false;
        };
        if segment.command != command {
            return false;
        }
        segment.bytes.append(bytes, &mut self.arena);
        self.bytes += bytes.len();
        room.start = end;
        true
    }

    /// Adds bytes. No byte may be kept at their addresses.
    pub(super) fn insert(
        &mut self,
        mut start: u64,
        mut bytes: Bytes,
        command: Command,
        order: u64,
    ) {
        while !bytes.is_empty() {
            let rest = (PAGE - start % PAGE) as usize;
            let part = bytes.split_to(bytes.len().min(rest));
            let more = part.len() > SMALL && part.len() < rest;
            let bytes = Piece::new(part, more, &mut self.arena);
            start = self.put(Segment { start, bytes, command, order });
        }
    }

    /// Adds a segment; returns its end.
    fn put(&mut self, segment: Segment) -> u64 {
        let (start, end) = (segment.start, segment.end());
        self.bytes += segment.bytes.len();
        self.segments += 1;
        *self.commands.entry(segment.command).or_default() += 1;
        let spare = &mut self.spare;
        let page = self.pages.entry(start / PAGE).or_insert_with(|| std::mem::take(spare));
        let at = page.partition_point(|other| other.start < start);
        let next = page.get(at).map_or(u64::MAX, |next| next.start);
        page.insert(at, segment);
        self.last = Some((start, end..next.min((start | (PAGE - 1)).saturating_add(1))));
        end
    }

    /// Removes the kept bytes of a range; returns their number.
    pub(super) fn remove(&mut self, range: Range<u64>) -> usize {
        let before = self.bytes;
        if range.is_empty() || self.segments == 0 {
            return 0;
        }
        let numbers = range.start / PAGE..=(range.end - 1) / PAGE;
        if numbers.end() - numbers.start() < self.pages.len() as u64 {
            numbers.for_each(|number| self.take_from(number, &range, |_| ()));
        } else {
            let kept: Vec<u64> = self.pages.keys().copied().collect();
            kept.into_iter()
                .filter(|number| numbers.contains(number))
                .for_each(|number| self.take_from(number, &range, |_| ()));
        }
        before - self.bytes
    }

    /// Removes the kept bytes of a range in one page, and passes the pieces to `each` in order.
    fn take_from(&mut self, number: u64, range: &Range<u64>, mut each: impl FnMut(Piece)) {
        let Some(page) = self.pages.get_mut(&number) else { return };
        self.last = None;
        for at in [range.start, range.end] {
            if let Some(command) = split(page, at) {
                self.segments += 1;
                *self.commands.entry(command).or_default() += 1;
            }
        }
        let [first, last] =
            [range.start, range.end].map(|at| page.partition_point(|one| one.start < at));
        for segment in page.drain(first..last) {
            self.bytes -= segment.bytes.len();
            self.segments -= 1;
            forget(&mut self.commands, segment.command);
            each(segment.bytes);
        }
        if page.is_empty() {
            self.spare = self.pages.remove(&number).unwrap_or_default();
        }
    }

    /// Removes and returns all bytes of a range. `None` if a byte is missing, or if the range
    /// crosses pages.
    pub(super) fn take_range(&mut self, range: Range<u64>) -> Option<Bytes> {
        let number = range.start / PAGE;
        let page = self.pages.get(&number).filter(|_| (range.end - 1) / PAGE == number)?;
        let before = page.partition_point(|segment| segment.start <= range.start).checked_sub(1)?;
        let mut at = range.start;
        for segment in &page[before..] {
            if segment.start > at || at >= range.end {
                break;
            }
            at = at.max(segment.end());
        }
        if at < range.end {
            return None;
        }
        let (mut whole, mut first) = (BytesMut::new(), None);
        let length = (range.end - range.start) as usize;
        let mut arena = std::mem::replace(&mut self.arena, Arena::new(0));
        self.take_from(number, &range, |piece| {
            if piece.len() == length {
                first = Some(piece);
                return;
            }
            if whole.capacity() == 0 {
                whole = arena.buffer(length);
            }
            whole.extend_from_slice(piece.as_slice());
        });
        self.arena = arena;
        Some(first.map_or_else(|| whole.freeze(), Piece::freeze))
    }

    /// Removes the bytes of a command; returns their number.
    pub(super) fn end_command(&mut self, command: Command) -> usize {
        if self.commands.contains_key(&command) { self.end(|held| held == command) } else { 0 }
    }

    /// Removes the bytes of all commands of a queue; returns their number.
    pub(super) fn end_queue(&mut self, queue: u16) -> usize {
        self.end(|(held_queue, _)| held_queue == queue)
    }

    /// Removes the bytes of the commands for which `ends` is true; returns their number.
    fn end(&mut self, ends: impl Fn(Command) -> bool) -> usize {
        let before = self.bytes;
        self.last = None;
        self.pages.retain(|_, page| {
            page.retain(|segment| {
                let ends = ends(segment.command);
                self.bytes -= if ends { segment.bytes.len() } else { 0 };
                self.segments -= usize::from(ends);
                !ends
            });
            !page.is_empty()
        });
        self.commands.retain(|command, _| !ends(*command));
        before - self.bytes
    }
}

/// Splits the segment that has bytes on both sides of `at`, if there is one; returns its command.
fn split(page: &mut Page, at: u64) -> Option<Command> {
    let behind = page.partition_point(|segment| segment.start < at);
    let segment = page.get_mut(behind.checked_sub(1)?).filter(|segment| segment.end() > at)?;
    let front = Segment {
        bytes: segment.bytes.split_to((at - segment.start) as usize),
        start: segment.start,
        ..*segment
    };
    segment.start = at;
    let command = front.command;
    page.insert(behind - 1, front);
    Some(command)
}

/// Decrements the number of segments of a command.
fn forget(commands: &mut Table<Command, usize>, command: Command) {
    if let Entry::Occupied(mut left) = commands.entry(command) {
        *left.get_mut() -= 1;
        if *left.get() == 0 {
            left.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, usize, u16),
        Remove(u64, u64),
        End(u16),
        Take(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        // Addresses on both sides of the end of a page.
        let range = || (PAGE - 32..PAGE + 32, 1..24u64);
        prop_oneof![
            (PAGE - 32..PAGE + 32, 1..24usize, 0..3u16)
                .prop_map(|(at, length, id)| Step::Insert(at, length, id)),
            // Pieces that are often adjacent.
            (0..8u64, 0..2u16).prop_map(|(at, id)| Step::Insert(PAGE - 32 + at * 8, 8, id)),
            range().prop_map(|(at, length)| Step::Remove(at, length)),
            (0..3u16).prop_map(Step::End),
            range().prop_map(|(at, length)| Step::Take(at, length)),
        ]
    }

    proptest! {
        /// Compares with a map from each address to its byte and command.
        #[test]
        fn held_bytes_match_map_of_single_bytes(steps in prop::collection::vec(step(), 0..60)) {
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
                        // No read crosses a page.
                        let crosses = at < PAGE && at + length > PAGE;
                        prop_assert_eq!(taken, all.filter(|_| !crosses));
                    }
                }
                prop_assert_eq!(held.bytes, model.len());
                prop_assert_eq!(held.commands.values().sum::<usize>(), held.count());
                prop_assert_eq!(held.pages.values().map(|page| page.len()).sum::<usize>(), held.count());
                prop_assert!(held.pages.values().all(|page| page.is_sorted_by_key(|one| one.start)));
            }
        }
    }
}
