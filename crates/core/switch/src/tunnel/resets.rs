//! Numbered hot resets at both ends (`docs/protocol.md`, "Reset"). Lost, duplicate or late resets
//! and answers do not desynchronise the ends.

/// The host's side: the resets requested on this connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestedResets {
    /// Number of requested resets. The latest reset has this number, modulo 2^32.
    count: u64,
    /// Whether the latest reset is not yet answered.
    pending: bool,
}

impl RequestedResets {
    /// Requests one more reset; returns its number.
    pub(super) fn next(&mut self) -> u32 {
        self.count += 1;
        self.pending = true;
        self.count as u32
    }

    /// Counts `count` resets as requested and answered.
    #[cfg(test)]
    pub fn skip(&mut self, count: u64) {
        self.count += count;
    }

    /// Whether received TLPs precede the latest reset.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Handles the answer to the reset with this number. Answers to earlier resets have no effect.
    pub(super) fn done(&mut self, number: u32) -> Result<(), &'static str> {
        let behind = (self.count as u32).wrapping_sub(number);
        if u64::from(behind) >= self.count {
            return Err("ResetDone without a reset");
        }
        self.pending &= behind != 0;
        Ok(())
    }
}

/// The device's side: the resets that the host requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceivedResets {
    /// The number of the latest reset; 0 before the first reset.
    latest: u32,
    /// Whether the latest reset is not yet done.
    pending: bool,
}

/// The reaction to a received reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Drop received TLPs. If `first`, also reset the function; otherwise the reset that is already
    /// under way counts for this request too.
    Reset {
        /// Whether no reset was under way.
        first: bool,
    },
    /// The reset is done, but the answer may be lost: send the answer again.
    Answer,
    /// The reset is under way, or a later reset was received.
    Ignore,
}

impl ReceivedResets {
    /// The number of the latest reset.
    pub(super) fn latest(&self) -> u32 {
        self.latest
    }

    /// Goes on after the reset with this number, which is done.
    pub(super) fn after(latest: u32) -> Self {
        Self { latest, pending: false }
    }

    /// Whether a requested reset is not done yet.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Handles the request of the reset with this number.
    pub(super) fn receive(&mut self, number: u32) -> Step {
        let ahead = number.wrapping_sub(self.latest);
        if ahead == 0 {
            return if self.pending { Step::Ignore } else { Step::Answer };
        }
        // A number that is ahead by 2^31 or more counts as behind.
        if ahead >= 1 << 31 {
            return Step::Ignore;
        }
        self.latest = number;
        let first = !std::mem::replace(&mut self.pending, true);
        Step::Reset { first }
    }

    /// Marks the requested resets as done. Returns the number for the answer; `None` if no reset
    /// was requested.
    pub(super) fn done(&mut self) -> Option<u32> {
        std::mem::take(&mut self.pending).then_some(self.latest)
    }
}
