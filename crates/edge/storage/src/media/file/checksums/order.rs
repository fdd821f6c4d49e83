//! The order of requests for the same units: a unit and its checksum change together, so changes of
//! a unit wait for each other, and reads wait for changes.

use super::layout::INTENTS;
use super::units_around;
use nvme::block::{Operation, Request};
use std::collections::VecDeque;
use std::ops::Range;

/// Every such flush waits for all changes and removes the marks. A region that is written all the
/// time is marked again after it, which costs a durable write.
const CLEARING: u32 = 32;

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::media::file) enum Turn {
    /// Read, or flush.
    Free,
    /// Change units with the intent of this number.
    Change(u64),
    /// Flush while no change is under way.
    Alone,
}

impl Turn {
    /// The number of the intent.
    ///
    /// # Panics
    /// If the request changes nothing.
    pub(in crate::media::file) fn intent(self) -> u64 {
        match self {
            Self::Change(intent) => intent,
            Self::Free | Self::Alone => unreachable!("changes have an intent"),
        }
    }
}

#[derive(Debug)]
struct Active {
    id: u64,
    units: Range<u64>,
    turn: Turn,
}

/// The requests under way, and the requests that wait for them.
#[derive(Debug, Default)]
pub(in crate::media::file) struct Order {
    active: Vec<Active>,
    waiting: VecDeque<(Request, bool)>,
    /// Intents in use, one bit each.
    intents: u64,
    flushes: u32,
}

impl Order {
    /// Adds a request; [`next`](Self::next) returns it in its turn. `marked` states whether there
    /// are marks to remove.
    pub(in crate::media::file) fn add(&mut self, request: Request, marked: bool) {
        let flush = matches!(request.operation, Operation::Flush);
        self.flushes += u32::from(flush);
        let alone = flush && marked && self.flushes >= CLEARING;
        if alone {
            self.flushes = 0;
        }
        self.waiting.push_back((request, alone));
    }

    /// The next request whose turn it is.
    pub(in crate::media::file) fn next(&mut self) -> Option<(Request, Turn)> {
        let index = (0..self.waiting.len()).find(|index| self.is_free(*index))?;
        let (request, alone) = self.waiting.remove(index).expect("found");
        let turn = match (alone, changes(&request.operation)) {
            (true, _) => Turn::Alone,
            (false, false) => Turn::Free,
            (false, true) => {
                let intent = (!self.intents).trailing_zeros();
                self.intents |= 1 << intent;
                Turn::Change(intent.into())
            }
        };
        let units = units_of(&request, alone);
        self.active.push(Active { id: request.id, units, turn });
        Some((request, turn))
    }

    /// Handles the end of a request.
    pub(in crate::media::file) fn finish(&mut self, id: u64) {
        if let Some(index) = self.active.iter().position(|one| one.id == id)
            && let Turn::Change(intent) = self.active.swap_remove(index).turn
        {
            self.intents &= !(1 << intent);
        }
    }

    /// Whether no request is under way or waits.
    pub(in crate::media::file) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// Whether a waiting request conflicts with no earlier request.
    fn is_free(&self, index: usize) -> bool {
        let (request, alone) = &self.waiting[index];
        let (units, change) = (units_of(request, *alone), changes(&request.operation));
        if change && self.intents.count_ones() as u64 == INTENTS {
            return false;
        }
        let conflicts = |other: &Range<u64>, other_change: bool| {
            (change || other_change) && units.start < other.end && other.start < units.end
        };
        let active = |one: &Active| conflicts(&one.units, matches!(one.turn, Turn::Change(_)));
        let earlier = |(other, alone): &(Request, bool)| {
            conflicts(&units_of(other, *alone), changes(&other.operation))
        };
        !self.active.iter().any(active) && !self.waiting.range(..index).any(earlier)
    }
}

fn changes(operation: &Operation) -> bool {
    !matches!(operation, Operation::Read { .. } | Operation::Flush)
}

/// The units of a request. A flush alone has all units; another flush has none.
fn units_of(request: &Request, alone: bool) -> Range<u64> {
    let (offset, length) = request.operation.range();
    if alone { 0..u64::MAX } else { units_around(&(offset..offset + length)) }
}
