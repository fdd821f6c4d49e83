//! What hosts push in front of doorbells, and what becomes of it (`docs/push.md`).

use std::ops::{Add, Sub};

/// What a host pushed, and what its device nodes did with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Messages sent.
    pub messages: u64,
    /// Submission queue entries in them.
    pub entries: u64,
    /// Submission queue entries whose doorbell went down without them.
    pub unpushed: u64,
    /// Bytes of entries, lists and data in the messages.
    pub bytes: u64,
    /// Reads of drives that device nodes answered.
    pub hits: u64,
    /// Their bytes.
    pub hit_bytes: u64,
    /// Reads of drives that went to the host, without those of length zero.
    pub misses: u64,
    /// Bytes that ended before a drive read them.
    pub unused_bytes: u64,
    /// Commands that were not pushed, or only in part, by reason.
    pub not_pushed: node::push::NotPushed,
}

impl Pushed {
    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            messages: of(self.messages, other.messages),
            entries: of(self.entries, other.entries),
            unpushed: of(self.unpushed, other.unpushed),
            bytes: of(self.bytes, other.bytes),
            hits: of(self.hits, other.hits),
            hit_bytes: of(self.hit_bytes, other.hit_bytes),
            misses: of(self.misses, other.misses),
            unused_bytes: of(self.unused_bytes, other.unused_bytes),
            not_pushed: self.not_pushed.with(other.not_pushed, &of),
        }
    }
}

impl Add for Pushed {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

impl Sub for Pushed {
    type Output = Self;

    /// What happened since `before`; nothing of what belongs to another host by now.
    fn sub(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }
}

/// What a host sent.
impl From<node::push::Counters> for Pushed {
    fn from(sent: node::push::Counters) -> Self {
        let node::push::Counters { messages, entries, unpushed, bytes, not_pushed } = sent;
        Self { messages, entries, unpushed, bytes, not_pushed, ..Self::default() }
    }
}

/// What a device node did with it.
impl From<switch::push_store::Counters> for Pushed {
    fn from(kept: switch::push_store::Counters) -> Self {
        let switch::push_store::Counters { hits, hit_bytes, misses, unused_bytes, .. } = kept;
        Self { hits, hit_bytes, misses, unused_bytes, ..Self::default() }
    }
}
