//! Actions by due time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wire::{Duration, Instant};

/// Actions with due times. Actions of the same time keep the order of scheduling.
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
    /// Adds an action.
    pub fn schedule(&mut self, at: Instant, action: A) {
        self.scheduled += 1;
        self.actions.push(Reverse((at, self.scheduled, action)));
    }

    /// The time of the next action.
    pub fn next(&self) -> Option<Instant> {
        self.actions.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next action if it is due.
    pub fn due(&mut self, now: Instant) -> Option<A> {
        self.next().filter(|at| *at <= now)?;
        self.actions.pop().map(|Reverse((.., action))| action)
    }

    /// Drops the actions for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&A) -> bool) {
        self.actions.retain(|Reverse((.., action))| keep(action));
    }
}

/// Occupies a CPU for `span` as soon as it is free; returns the end.
pub fn occupy(cpu: &mut Instant, now: Instant, span: Duration) -> Instant {
    *cpu = (*cpu).max(now) + span;
    *cpu
}
