//! Blocks in use by steps that access data and metadata.
//!
//! The media store data and metadata separately, so such a step has two media requests. Another
//! command must find a block written completely or not at all (AWUN, NVMe 1.4, section 6.4). So a
//! step claims its blocks for both requests. Steps get their blocks in order; reads share blocks.

use crate::slots::Key;
use std::ops::Range;

/// The blocks of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub nsid: u32,
    pub range: Range<u64>,
    /// Whether the step only reads the blocks.
    pub shared: bool,
}

impl Blocks {
    fn conflicts(&self, other: &Self) -> bool {
        self.nsid == other.nsid
            && self.range.start < other.range.end
            && other.range.start < self.range.end
            && !(self.shared && other.shared)
    }
}

#[derive(Debug)]
struct Claim {
    /// CNTLID and command. A command has one claim at a time.
    owner: (u16, Key),
    blocks: Blocks,
    granted: bool,
}

/// All claims in the order of creation, at most one per command.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    claims: Vec<Claim>,
    /// Whether a claim was released since [`next_granted`](Self::next_granted) last returned
    /// `None`.
    released: bool,
}

impl Claims {
    /// Claims blocks for a step of a command; a repeated call has no effect. Returns whether the
    /// command has the blocks. If not, [`next_granted`](Self::next_granted) returns the command
    /// later.
    pub(crate) fn take(&mut self, owner: (u16, Key), blocks: impl FnOnce() -> Blocks) -> bool {
        if let Some(claim) = self.claims.iter().find(|claim| claim.owner == owner) {
            return claim.granted;
        }
        let blocks = blocks();
        let granted = !self.claims.iter().any(|earlier| earlier.blocks.conflicts(&blocks));
        self.claims.push(Claim { owner, blocks, granted });
        granted
    }

    /// Releases the blocks of a command, if it has any.
    pub(crate) fn release(&mut self, owner: (u16, Key)) {
        self.retain(|other| other != owner);
    }

    /// Releases all claims of a controller, whose commands were dropped.
    pub(crate) fn release_all(&mut self, controller: u16) {
        self.retain(|(other, _)| other != controller);
    }

    fn retain(&mut self, stays: impl Fn((u16, Key)) -> bool) {
        let before = self.claims.len();
        self.claims.retain(|claim| stays(claim.owner));
        self.released |= self.claims.len() < before;
    }

    /// The next command that has got its blocks after a wait.
    pub(crate) fn next_granted(&mut self) -> Option<(u16, Key)> {
        if !self.released {
            return None;
        }
        let free = |at: &usize| {
            let claim = &self.claims[*at];
            let earlier = &self.claims[..*at];
            !claim.granted && !earlier.iter().any(|one| one.blocks.conflicts(&claim.blocks))
        };
        let found = (0..self.claims.len()).find(free);
        self.released = found.is_some();
        let claim = &mut self.claims[found?];
        claim.granted = true;
        Some(claim.owner)
    }

    /// Whether a command of this controller has blocks or waits for blocks.
    pub(crate) fn has(&self, controller: u16) -> bool {
        self.claims.iter().any(|claim| claim.owner.0 == controller)
    }

    /// Whether no command has blocks or waits for blocks.
    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u64) -> (u16, Key) {
        (1, Key::from_u64(1 << 32 | number))
    }

    fn blocks(range: Range<u64>, shared: bool) -> Blocks {
        Blocks { nsid: 1, range, shared }
    }

    #[test]
    fn reads_share_blocks_and_writes_wait_in_order() {
        let mut claims = Claims::default();
        let take = |claims: &mut Claims, number, range, shared| {
            claims.take(owner(number), || blocks(range, shared))
        };
        assert!(take(&mut claims, 1, 0..8, true));
        assert!(take(&mut claims, 2, 4..5, true));
        assert!(!take(&mut claims, 3, 7..9, false), "1 reads block 7");
        assert!(!take(&mut claims, 4, 8..9, true), "3 was earlier");
        assert!(take(&mut claims, 5, 9..10, false));
        assert!(claims.take(owner(6), || Blocks { nsid: 2, ..blocks(0..8, false) }));
        assert!(!take(&mut claims, 3, 7..9, false), "it asks again");
        assert_eq!(claims.next_granted(), None);
        claims.release(owner(2));
        assert_eq!(claims.next_granted(), None);
        claims.release(owner(1));
        assert_eq!((claims.next_granted(), claims.next_granted()), (Some(owner(3)), None));
        assert!(take(&mut claims, 3, 7..9, false));
        claims.release(owner(3));
        assert_eq!((claims.next_granted(), claims.next_granted()), (Some(owner(4)), None));
        claims.release_all(1);
        assert!(claims.is_empty() && claims.next_granted().is_none());
    }
}
