//! Hot resets by number, as seen from both ends (`docs/protocol.md`,
//! "Reset"): a reset or its answer that is lost, comes twice or comes late
//! does not make the ends disagree.

/// The host's side: resets that it asked for on this connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestedResets {
    /// How many; the latest has this number, modulo 2^32.
    count: u64,
    /// The latest is not done.
    pending: bool,
}

impl RequestedResets {
    /// The number of one more reset.
    pub fn next(&mut self) -> u32 {
        self.count += 1;
        self.pending = true;
        self.count as u32
    }

    /// As if so many had been asked for, and done.
    #[cfg(test)]
    pub fn skip(&mut self, count: u64) {
        self.count += count;
    }

    /// Whether what arrives is of before the latest reset.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// The far side has done the reset of this number. Only the latest counts;
    /// an answer to an earlier one is late or came twice.
    pub fn done(&mut self, number: u32) -> Result<(), &'static str> {
        let behind = (self.count as u32).wrapping_sub(number);
        if u64::from(behind) >= self.count {
            return Err("a reset that nobody asked for is done");
        }
        self.pending &= behind != 0;
        Ok(())
    }
}

/// The device's side: resets that the far side wants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceivedResets {
    /// The number of the latest; 0 before the first.
    latest: u32,
    /// It is not done.
    pending: bool,
}

/// What to do about a reset that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Drop what was received, and reset; `first` if no earlier one is under
    /// way, which would do for this one too.
    Reset {
        /// Whether none is under way.
        first: bool,
    },
    /// It has been done, and the answer may be lost: answer again.
    Answer,
    /// It is under way, or a later one has come.
    Ignore,
}

impl ReceivedResets {
    /// Whether a reset is to be done.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// A reset of this number arrives.
    pub fn take(&mut self, number: u32) -> Step {
        let ahead = number.wrapping_sub(self.latest);
        if ahead == 0 {
            return if self.pending { Step::Ignore } else { Step::Answer };
        }
        // Numbers that are not ahead by less than half of all are behind.
        if ahead >= 1 << 31 {
            return Step::Ignore;
        }
        self.latest = number;
        let first = !std::mem::replace(&mut self.pending, true);
        Step::Reset { first }
    }

    /// What was wanted is done: the number to answer.
    pub fn done(&mut self) -> Option<u32> {
        std::mem::take(&mut self.pending).then_some(self.latest)
    }
}
