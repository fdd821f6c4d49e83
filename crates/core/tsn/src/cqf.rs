//! Cyclic queuing and forwarding: in each cycle a bridge fills the queue of one class and sends the
//! queue of another class; then they swap (IEEE 802.1Q-2022, annex T; formerly 802.1Qch).

use thiserror::Error;
use wire::{Duration, Instant};

use crate::{Clock, Entry, GateControlList, GateStates, Gates, ListError, QUEUES};

/// Two classes and their common cycle, the same at all bridges of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqf {
    /// The class that is filled in the cycle from `base` and in every second cycle, and the class
    /// that is filled in the other cycles.
    pub classes: [u8; 2],
    /// Length of a cycle, T in annex T.
    pub cycle: Duration,
    /// The start of a cycle, on the clocks of the bridges.
    pub base: Instant,
}

/// Why the values of a [`Cqf`] are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CqfError {
    /// The classes are equal.
    #[error("class {0} is given twice; cyclic queuing needs two different classes")]
    SameClass(u8),
    /// A class above 7.
    #[error("invalid class '{0}': expected 0 to {most}", most = QUEUES - 1)]
    NoClass(u8),
    /// The cycle or the base time is invalid for a gate control list with a cycle of 2 T.
    #[error("invalid gates for cyclic queuing: {0}")]
    Times(#[from] ListError),
}

impl Cqf {
    /// Checks the values. Call this first; the other functions may panic on invalid values.
    ///
    /// # Errors
    /// Equal classes; a class above 7; a cycle that is zero, not a whole number of nanoseconds or
    /// above half of [`GateControlList::MAX_CYCLE`]; a base time that is not a whole number of
    /// nanoseconds.
    pub fn check(&self) -> Result<(), CqfError> {
        let [first, second] = self.classes;
        if let Some(&class) = self.classes.iter().find(|class| usize::from(**class) >= QUEUES) {
            return Err(CqfError::NoClass(class));
        }
        if first == second {
            return Err(CqfError::SameClass(first));
        }
        self.list()?;
        Ok(())
    }

    /// The class for a frame received at `received`: the internal priority value of the stream gate
    /// (8.6.5.4; T.3.1).
    pub fn queue_at(&self, clock: &Clock, received: Instant) -> u8 {
        let since = i128::from(clock.local(received).as_ps()) - i128::from(self.base.as_ps());
        let cycle = since.div_euclid(i128::from(self.cycle.as_ps()));
        self.classes[cycle.rem_euclid(2) as usize]
    }

    /// Adds the gates of the two classes at an egress port to `gates`. In each cycle the gate of
    /// the class that is not filled is open (T.3.2).
    ///
    /// # Panics
    /// If [`Self::check`] finds an error.
    pub fn gates(&self, gates: Gates) -> Gates {
        let list = self.list().expect("values that were checked");
        let [first, second] = self.classes.map(|class| self.states(class));
        gates.with_class_list(GateStates(first.0 | second.0), list)
    }

    fn list(&self) -> Result<GateControlList, ListError> {
        let open = |class| Entry::set(self.states(class), self.cycle);
        let [first, second] = self.classes;
        GateControlList::of_entries(self.base, &[open(second), open(first)])
    }

    fn states(&self, class: u8) -> GateStates {
        GateStates(1 << class)
    }
}
