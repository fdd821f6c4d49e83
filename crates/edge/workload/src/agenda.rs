//! A queue of actions, ordered by due time, and CPUs that do one thing at a time.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use wire::{Duration, Instant};

/// Actions with due times. Actions with the same due time keep the order in which they were
/// scheduled.
#[derive(Debug)]
pub struct Agenda<A> {
    actions: BinaryHeap<Reverse<(Instant, u64, A)>>,
    scheduled: u64,
}

impl<A: Ord> Default for Agenda<A> {
    fn default() -> Self {
        Self { actions: BinaryHeap::new(), scheduled: 0 }
    }
}

impl<A: Ord> Agenda<A> {
    /// Adds an action that is due at `at`.
    pub fn schedule(&mut self, at: Instant, action: A) {
        self.scheduled += 1;
        self.actions.push(Reverse((at, self.scheduled, action)));
    }

    /// The due time of the next action; `None` if there is no action.
    pub fn next(&self) -> Option<Instant> {
        self.actions.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next action if its due time is not after `now`; otherwise `None`.
    pub fn due(&mut self, now: Instant) -> Option<A> {
        self.next().filter(|at| *at <= now)?;
        self.actions.pop().map(|Reverse((.., action))| action)
    }

    /// Drops the actions for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&A) -> bool) {
        self.actions.retain(|Reverse((.., action))| keep(action));
    }
}

/// A CPU that does one thing at a time. Clones are the same CPU.
#[derive(Clone, Debug, Default)]
pub struct Cpu(Rc<Cell<Instant>>);

impl Cpu {
    /// The time from which the CPU is free.
    pub fn free_at(&self) -> Instant {
        self.0.get()
    }

    /// Occupies the CPU for the time `span`, from `now` or from the time at which the CPU becomes
    /// free. Returns the end.
    pub fn occupy(&self, now: Instant, span: Duration) -> Instant {
        self.0.set(self.0.get().max(now) + span);
        self.0.get()
    }
}
