//! Cyclic queuing and forwarding: two classes alternate: one is filled while the other is sent
//! (IEEE 802.1Q-2022, annex T; formerly 802.1Qch).

use thiserror::Error;
use wire::{Duration, Instant};

use crate::{Clock, Entry, GateControlList, GateStates, Gates, ListError, QUEUES};

/// Two classes and their common cycle, the same at all bridges of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqf {
    /// The class that is filled during the cycle beginning at `base` and every second one, and the
    /// class of the other cycles.
    pub classes: [u8; 2],
    /// How long a cycle lasts, T in annex T.
    pub cycle: Duration,
    /// The start of a cycle, on the clocks of the bridges.
    pub base: Instant,
}

/// An error in these values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CqfError {
    /// The classes are equal.
    #[error("class {0} is given twice; cyclic queuing needs two different classes")]
    SameClass(u8),
    /// There is no such class.
    #[error("invalid class '{0}': expected 0 to {most}", most = QUEUES - 1)]
    NoClass(u8),
    /// The times are not possible as a list, whose cycle is 2 T.
    #[error("invalid gates for cyclic queuing: {0}")]
    Times(#[from] ListError),
}

impl Cqf {
    /// Checks that the values are possible. Call this first; the other functions panic on invalid
    /// values.
    ///
    /// # Errors
    /// Equal or unknown classes; a cycle of zero, of a fraction of a nanosecond or above half of
    /// [`GateControlList::MAX_CYCLE`]; a base time that is not a whole number of nanoseconds.
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

    /// Adds the gates of the two classes at an egress port to `gates`: in each cycle the class that
    /// is not being filled is open (T.3.2).
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
