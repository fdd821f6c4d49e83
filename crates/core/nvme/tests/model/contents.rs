//! Possible contents of namespaces: all writes, each with the times of submission and completion.
//!
//! A read may return write A if A was submitted before the read ended. It must not return A if
//! another write began after A had ended, and ended before the read was submitted. A loss of power
//! may undo every write that was not flushed.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a unit. Every write fills it with one token.
pub const UNIT: u64 = 512;
/// The token of units that cannot be read, because Write Uncorrectable has marked them.
pub const UNREADABLE: u32 = u32::MAX;

/// The place of a unit: NSID and number.
pub type Place = (u32, u64);

/// The value that a write puts into a unit.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Token(u32),
    /// Any value that this unit has while the write is outstanding.
    CopyOf(u64),
}

/// A write of one unit.
#[derive(Clone, Debug)]
struct Write {
    id: u64,
    value: Value,
    submitted: u64,
    completed: Option<u64>,
    /// Whether the write succeeded, so that earlier values are impossible.
    done: bool,
    /// Whether a loss of power cannot undo the write.
    durable: bool,
}

/// The contents of all namespaces.
#[derive(Default)]
pub struct Contents {
    units: BTreeMap<Place, Vec<Write>>,
    writes: u64,
}

impl Contents {
    /// Gives a namespace this number of units, filled with zeroes.
    pub fn create(&mut self, nsid: u32, units: u64) {
        self.remove(nsid);
        for unit in 0..units {
            self.settle((nsid, unit), 0);
        }
    }

    pub fn remove(&mut self, nsid: u32) {
        self.units.retain(|(id, _), _| *id != nsid);
    }

    /// Sets the only possible value of a unit without outstanding writes.
    pub fn settle(&mut self, place: Place, token: u32) {
        let (value, id) = (Value::Token(token), 0);
        let write =
            Write { id, value, submitted: 0, completed: Some(0), done: true, durable: true };
        self.units.insert(place, vec![write]);
    }

    /// Begins a write at `now`; returns the identifier.
    pub fn begin(
        &mut self,
        now: u64,
        nsid: u32,
        values: impl IntoIterator<Item = (u64, Value)>,
    ) -> u64 {
        self.writes += 1;
        let id = self.writes;
        for (unit, value) in values {
            if let Some(writes) = self.units.get_mut(&(nsid, unit)) {
                let (completed, done, durable) = (None, false, false);
                writes.push(Write { id, value, submitted: now, completed, done, durable });
            }
        }
        id
    }

    /// Ends a write: with success if `done`, otherwise with an unknown result.
    pub fn end(&mut self, now: u64, id: u64, done: bool, durable: bool) {
        for write in self.units.values_mut().flatten().filter(|write| write.id == id) {
            (write.completed, write.done, write.durable) = (Some(now), done, durable);
        }
    }

    /// Removes a write that had no effect.
    pub fn withdraw(&mut self, id: u64) {
        self.units.values_mut().for_each(|writes| writes.retain(|write| write.id != id));
    }

    /// Makes the writes durable that were completed before `submitted`.
    pub fn flushed(&mut self, nsid: u32, submitted: u64) {
        let units = self.units.iter_mut().filter(|((id, _), _)| *id == nsid);
        for write in units.flat_map(|(_, writes)| writes) {
            write.durable |= write.done && write.completed.is_some_and(|at| at < submitted);
        }
    }

    /// Ends all outstanding writes, with unknown results.
    pub fn reset(&mut self, now: u64) {
        for write in self.units.values_mut().flatten() {
            write.completed.get_or_insert(now);
        }
    }

    /// Handles a loss of power: every write that is not durable may be lost.
    pub fn power_loss(&mut self, now: u64) {
        self.reset(now);
        for write in self.units.values_mut().flatten().filter(|write| !write.durable) {
            write.done = false;
        }
    }

    /// The possible values of a unit in the time from `from` to `to`.
    pub fn possible(&self, place: Place, from: u64, to: u64) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        self.collect(place, from, to, &mut BTreeSet::new(), &mut found);
        found
    }

    fn collect(
        &self,
        place: Place,
        from: u64,
        to: u64,
        seen: &mut BTreeSet<(Place, u64)>,
        found: &mut BTreeSet<u32>,
    ) {
        let writes = self.units.get(&place).map_or(&[][..], |writes| writes);
        let gone = |old: &Write| {
            old.completed.is_some_and(|ended| {
                writes.iter().any(|new| {
                    let before = new.completed.is_some_and(|at| at < from);
                    new.done && before && ended < new.submitted
                })
            })
        };
        for write in writes.iter().filter(|write| write.submitted <= to && !gone(write)) {
            match write.value {
                Value::Token(token) => {
                    found.insert(token);
                }
                Value::CopyOf(unit) => {
                    let source = (place.0, unit);
                    if seen.insert((source, write.id)) {
                        let end = write.completed.unwrap_or(to).min(to);
                        let mut copied = BTreeSet::new();
                        self.collect(source, write.submitted, end, seen, &mut copied);
                        found.extend(copied.into_iter().filter(|token| *token != UNREADABLE));
                    }
                }
            }
        }
    }
}
