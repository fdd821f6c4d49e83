//! Counters of push at hosts and device nodes (`docs/push.md`).

use std::ops::{Add, Sub};

/// The bytes that a host pushed, and their use in its device nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Messages sent.
    pub messages: u64,
    /// Submission queue entries in the messages.
    pub entries: u64,
    /// Submission queue entries whose doorbell was rung without a push.
    pub unpushed: u64,
    /// Bytes of entries, lists and data in the messages.
    pub bytes: u64,
    /// Reads by drives that device nodes answered with pushed bytes.
    pub hits: u64,
    /// Bytes of the reads in `hits`.
    pub hit_bytes: u64,
    /// Reads by drives that went to the host, except reads of length zero.
    pub misses: u64,
    /// Bytes invalidated or evicted before a drive read them.
    pub unused_bytes: u64,
    /// Commands that were pushed in part or not at all, by reason.
    pub not_pushed: node::push::NotPushed,
}

impl Pushed {
    fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            messages: combine(self.messages, other.messages),
            entries: combine(self.entries, other.entries),
            unpushed: combine(self.unpushed, other.unpushed),
            bytes: combine(self.bytes, other.bytes),
            hits: combine(self.hits, other.hits),
            hit_bytes: combine(self.hit_bytes, other.hit_bytes),
            misses: combine(self.misses, other.misses),
            unused_bytes: combine(self.unused_bytes, other.unused_bytes),
            not_pushed: self.not_pushed.with(other.not_pushed, &combine),
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

    /// The difference since `before`, at least zero: a device node may now serve another host.
    fn sub(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }
}

/// The counters of a host.
impl From<node::push::Counters> for Pushed {
    fn from(sent: node::push::Counters) -> Self {
        let node::push::Counters { messages, entries, unpushed, bytes, not_pushed } = sent;
        Self { messages, entries, unpushed, bytes, not_pushed, ..Self::default() }
    }
}

/// The counters of a device node.
impl From<switch::push_store::Counters> for Pushed {
    fn from(kept: switch::push_store::Counters) -> Self {
        let switch::push_store::Counters { hits, hit_bytes, misses, unused_bytes, .. } = kept;
        Self { hits, hit_bytes, misses, unused_bytes, ..Self::default() }
    }
}
