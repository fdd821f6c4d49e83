//! Host memory to which the pointers of open commands point.

use super::queues::Uid;
use std::collections::BTreeMap;

/// Maximum number of claims of one controller.
const MOST_CLAIMS: usize = 1 << 18;
/// Maximum number of claims that are compared with one TLP.
const MOST_CHECKED: usize = 256;

/// Claims do not cross multiples of this number of bytes, because memory requests do not (PCIe Base
/// 4.0, section 2.2.7).
pub(super) const PAGE: u64 = 4096;

/// The contents of claimed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Data from byte `offset` of the command's transfer on. The drive writes them if `to_host`.
    Data { offset: u64, to_host: bool },
    /// PRP entries. The first entry points to byte `offset` of the transfer.
    List { offset: u64 },
    /// SGL descriptors.
    Segment,
}

#[derive(Debug)]
struct Claim {
    start: u64,
    length: u64,
    purpose: Use,
    /// One bit for each double word that was transferred.
    moved: [u64; 16],
    /// Number of pushed bytes, from the start of the claim.
    pushed: u64,
}

/// The claim that a part of a TLP matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub uid: Uid,
    pub purpose: Use,
    /// Bytes from the start of the claim to the part of the TLP. `left` is the number of bytes from
    /// there to the end of the claim.
    pub offset: u64,
    pub left: u64,
    /// Whether the same bytes were transferred before.
    pub again: bool,
    /// Whether the bytes were pushed.
    pub pushed: bool,
}

/// Key of a claim: page, command, and number of the claim in the command.
pub(super) type Key = (u64, Uid, u32);

/// All claims of a controller, sorted by page, then by age of the command.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_page: BTreeMap<Key, Claim>,
}

/// Returns the words of `moved`, and in each the bits of the double words that `length` bytes at
/// `address` touch.
fn dwords(address: u64, length: u64) -> impl Iterator<Item = (usize, u64)> {
    let first = (address % PAGE) / 4;
    let last = (address % PAGE + length.max(1) - 1).min(PAGE - 1) / 4;
    (first / 64..=last / 64).map(move |word| {
        let from = if word == first / 64 { first % 64 } else { 0 };
        let to = if word == last / 64 { last % 64 } else { 63 };
        (word as usize, !0 << from & !0 >> (63 - to))
    })
}

impl Claims {
    /// Claims `length` bytes at `start`, within one page, as claim `owner.1` of command `owner.0`.
    /// Returns `None` if there are too many claims.
    pub fn add(&mut self, owner: (Uid, u32), start: u64, length: u64, purpose: Use) -> Option<Key> {
        if self.by_page.len() >= MOST_CLAIMS {
            return None;
        }
        let key = (start / PAGE, owner.0, owner.1);
        self.by_page.insert(key, Claim { start, length, purpose, moved: [0; 16], pushed: 0 });
        Some(key)
    }

    pub fn remove(&mut self, key: Key) {
        self.by_page.remove(&key);
    }

    /// Finds the claim for a transfer of `length` bytes at `address`, and marks the bytes as
    /// transferred. Among several claims, selects the claim of the oldest command that has not
    /// transferred these bytes, otherwise of the oldest command. Returns `None` without a claim.
    pub fn find(&mut self, address: u64, length: u64, to_host: bool) -> Option<Match> {
        let page = address / PAGE;
        let range = (page, Uid::MIN, 0)..=(page, Uid::MAX, u32::MAX);
        let mut repeated = None;
        for (key, claim) in self.by_page.range_mut(range).take(MOST_CHECKED) {
            let fits = match claim.purpose {
                Use::Data { to_host: wanted, .. } => wanted == to_host,
                Use::List { .. } | Use::Segment => !to_host,
            };
            let Some(offset) = address.checked_sub(claim.start).filter(|o| *o < claim.length)
            else {
                continue;
            };
            if !fits {
                continue;
            }
            let left = claim.length - offset;
            let length = length.min(left);
            let pushed = offset + length <= claim.pushed;
            let found =
                Match { uid: key.1, purpose: claim.purpose, offset, left, again: false, pushed };
            if dwords(address, length).all(|(word, bits)| claim.moved[word] & bits == bits) {
                repeated.get_or_insert(Match { again: true, ..found });
                continue;
            }
            dwords(address, length).for_each(|(word, bits)| claim.moved[word] |= bits);
            return Some(found);
        }
        repeated
    }

    /// Finds the claim of command `uid` for `length` pushed bytes at `address`; `None` if the
    /// command has no claim there. The claim may end before the last of the pushed bytes.
    pub fn push(&mut self, uid: Uid, address: u64, length: u64) -> Option<Match> {
        let page = address / PAGE;
        let own = self.by_page.range_mut((page, uid, 0)..=(page, uid, u32::MAX));
        let mut own = own.map(|(_, claim)| claim).filter(|claim| {
            let to_drive = !matches!(claim.purpose, Use::Data { to_host: true, .. });
            to_drive && address.checked_sub(claim.start).is_some_and(|o| o < claim.length)
        });
        let claim = own.next()?;
        let offset = address - claim.start;
        let left = claim.length - offset;
        let end = offset + length.min(left);
        let (purpose, again) = (claim.purpose, end <= claim.pushed);
        if offset <= claim.pushed {
            claim.pushed = claim.pushed.max(end);
        }
        Some(Match { uid, purpose, offset, left, again, pushed: false })
    }
}
