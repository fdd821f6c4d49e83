//! The reference implements the state machines of 8.6.9 nanosecond by nanosecond.

use std::fmt;
use std::ops::Range;

use proptest::prelude::*;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, LocalTime, Operation};
use wire::{Duration, Instant};

/// The nanoseconds that the reference covers, on the node's clock.
pub const RANGE: Range<i64> = -500..2_000;

/// The lists of a port.
#[derive(Clone)]
pub struct Port {
    pub first: GateControlList,
    /// Later lists, each with the extension of the list before.
    pub changes: Vec<(GateControlList, Duration)>,
    pub class: Option<(GateStates, GateControlList)>,
    pub clock: Clock,
}

/// Prints a short form without the windows that lists compute.
impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |list: &GateControlList| {
            let entry = |entry: &Entry| {
                let letter = entry.operation.letter();
                format!("{letter} {:02x} {}", entry.states.0, entry.interval.as_ns())
            };
            let entries: Vec<_> = list.entries().iter().map(entry).collect();
            format!("{entries:?} {:?} {:?}", list.base_time(), list.cycle_time())
        };
        let changes: Vec<_> = self.changes.iter().map(|(to, more)| (list(to), more)).collect();
        let class = self.class.as_ref().map(|(classes, gates)| (classes, list(gates)));
        write!(f, "{} {changes:?} {class:?} {:?}", list(&self.first), self.clock)
    }
}

impl Port {
    pub fn gates(&self) -> Gates {
        let gates = Gates::new(self.first.clone(), self.clock);
        let then = |gates: Gates, (list, extension): &(_, _)| {
            Gates::then(gates, GateControlList::clone(list), *extension)
        };
        let gates = self.changes.iter().fold(gates, then);
        match &self.class {
            Some((classes, list)) => gates.with_class_list(*classes, list.clone()),
            None => gates,
        }
    }

    /// When the second list and each later list take over, in nanoseconds.
    pub fn takeovers(&self) -> Vec<i64> {
        let mut last = ns(self.first.base_time().as_ns());
        let next = |(list, _): &(GateControlList, Duration)| {
            let mut at = ns(list.base_time().as_ns());
            while at <= last {
                at += ns(list.cycle_time().as_ns());
            }
            last = at;
            at
        };
        self.changes.iter().map(next).collect()
    }

    /// The list and its entry in force at each nanosecond of the range.
    fn entries(&self) -> Vec<(&GateControlList, usize)> {
        let takeovers = self.takeovers();
        let base = ns(self.first.base_time().as_ns());
        let mut all: Vec<_> =
            (RANGE.start..base).map(|at| (&self.first, entry_at(&self.first, at))).collect();
        let mut start = base;
        for index in 0..=takeovers.len() {
            let list = index.checked_sub(1).map_or(&self.first, |at| &self.changes[at].0);
            let end = takeovers.get(index).copied().unwrap_or(RANGE.end);
            let extension = self.changes.get(index).map_or(0, |change| ns(change.1.as_ns()));
            while start < end {
                // SetCycleStartTime, 8.6.9.1.1 c) and d).
                let whole = start + ns(list.cycle_time().as_ns());
                let next = if end > whole + extension { whole } else { end };
                let last = list.entries().len() - 1;
                let entry = |at| if at < whole { entry_at(list, at) } else { last };
                all.extend((start..next).map(|at| (list, entry(at))));
                start = next;
            }
        }
        all.truncate((RANGE.end - RANGE.start) as usize);
        all
    }

    /// Whether the gate of `queue` is open, at each nanosecond of the range.
    pub fn open(&self, queue: usize) -> Vec<bool> {
        if let Some((classes, list)) = &self.class
            && classes.is_open(queue)
        {
            let open = |at| list.entries()[entry_at(list, at)].states.is_open(queue);
            return RANGE.map(open).collect();
        }
        let open = |(list, entry): &(&GateControlList, usize)| list.entries()[*entry].states;
        self.entries().iter().map(|at| open(at).is_open(queue)).collect()
    }

    /// Whether preemptable frames are held, without advance, at each nanosecond of the range.
    pub fn held(&self) -> Vec<bool> {
        let held = |(list, entry): &(&GateControlList, usize)| {
            let (after, before) = (&list.entries()[entry + 1..], &list.entries()[..=*entry]);
            let mut operations = before.iter().rev().chain(after.iter().rev());
            let last = operations.find(|entry| entry.operation != Operation::SetGateStates);
            last.is_some_and(|entry| entry.operation == Operation::SetAndHoldMac)
        };
        self.entries().iter().map(held).collect()
    }

    /// The open windows of `queue` in true time. The last window may end with the range.
    pub fn windows(&self, queue: usize) -> Vec<(Instant, Instant)> {
        let global = |at: i64| self.clock.global(LocalTime::from_ps(at * 1_000));
        runs(&self.open(queue)).into_iter().map(|(from, to)| (global(from), global(to))).collect()
    }

    /// The end of the range in true time.
    pub fn end(&self) -> Instant {
        self.clock.global(LocalTime::from_ps(RANGE.end * 1_000))
    }
}

/// The spans in which `on` is true.
pub fn runs(on: &[bool]) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for at in RANGE.filter(|at| on[(at - RANGE.start) as usize]) {
        match found.last_mut() {
            Some(last) if last.1 == at => last.1 = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

fn ns(ns: u64) -> i64 {
    ns as i64
}

/// The entry in force at `at` in a list that repeats without end.
fn entry_at(list: &GateControlList, at: i64) -> usize {
    let cycle = ns(list.cycle_time().as_ns());
    let mut phase = (at - ns(list.base_time().as_ns())).rem_euclid(cycle);
    let mut over = |entry: &Entry| {
        phase -= ns(entry.interval.as_ns());
        phase >= 0
    };
    let entries = list.entries();
    entries.iter().copied().take_while(|entry| over(entry)).count().min(entries.len() - 1)
}

/// A list with a base of up to `base` ns.
pub fn lists(base: u64) -> impl Strategy<Value = GateControlList> {
    // Most states change few queues, so that some gates stay open or closed for a long time.
    let states = prop_oneof![any::<u8>(), Just(0xff), Just(0), Just(1)];
    let operation = prop_oneof![
        4 => Just(Operation::SetGateStates),
        1 => Just(Operation::SetAndHoldMac),
        1 => Just(Operation::SetAndReleaseMac),
    ];
    let entries = prop::collection::vec((operation, states, 1u64..12), 1..6);
    (entries, 0..base, 0u64..10).prop_map(|(entries, base, rest)| {
        let entry = |&(operation, states, ns)| {
            let (states, interval) = (GateStates(states), Duration::from_ns(ns));
            Entry { operation, states, interval }
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let sum = entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.interval);
        let cycle = sum + Duration::from_ns(rest);
        GateControlList::new(Instant::from_ns(base), cycle, &entries).expect("valid")
    })
}

/// A port with up to three changes, in some cases with a list for a class.
pub fn ports() -> impl Strategy<Value = Port> {
    let changes = prop::collection::vec((lists(700), (0u64..70).prop_map(Duration::from_ns)), 0..4);
    let class = prop::option::weighted(0.2, (any::<u8>().prop_map(GateStates), lists(200)));
    let drift = prop_oneof![Just(0), -1_000_000i32..=1_000_000];
    let clock = (-100_000i64..100_000, drift)
        .prop_map(|(offset, drift)| Clock::new(offset, drift).expect("in range"));
    (lists(200), changes, class, clock).prop_map(|(first, changes, class, clock)| Port {
        first,
        changes,
        class,
        clock,
    })
}
