//! Commands that are not pushed, or only in part.

use wire::push::Reason;

/// Commands that were not pushed, or only in part, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotPushed([u64; Reason::ALL.len()]);

impl NotPushed {
    /// Counts commands.
    pub(super) fn add(&mut self, reason: Reason, commands: u64) {
        self.0[place(reason)] += commands;
    }

    /// The number of commands with a reason.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[place(reason)]
    }

    /// The reasons that occurred, with their numbers of commands.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().zip(self.0).filter(|(_, commands)| *commands > 0)
    }

    /// Combines two sets of counters, reason by reason.
    #[must_use]
    pub fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|reason| combine(self.0[reason], other.0[reason])))
    }
}

/// The index of a reason; the numbers of reasons begin at 1.
fn place(reason: Reason) -> usize {
    usize::from(reason as u8) - 1
}
