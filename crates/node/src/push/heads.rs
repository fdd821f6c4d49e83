//! Completion queue head doorbells that wait for the next TLP, so that no packet travels for them
//! alone: they only tell the controller of free entries, of which it has enough.

use pcie::PushRoom;
use wire::tlp::Tlp;
use wire::{Bdf, Duration, Instant};

/// How long a doorbell waits at most: longer than host software mostly takes from a completion to
/// its next command.
const LONGEST: Duration = Duration::from_us(100);

/// A doorbell that waits.
#[derive(Debug)]
pub(super) struct Head {
    pub function: Bdf,
    pub queue: u16,
    tlp: Tlp,
}

/// The doorbells that wait, in order.
#[derive(Debug, Default)]
pub(super) struct Heads {
    waiting: Vec<Head>,
    /// When they go at the latest.
    pub until: Option<Instant>,
    /// They go at once.
    due: bool,
}

impl Heads {
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the function has room for another one that was not announced to it.
    pub fn fits(&self, room: PushRoom) -> bool {
        (self.waiting.len() as u32) < room.headers
    }

    /// Lets a doorbell wait. It takes the place of an earlier one of its queue: the controller needs
    /// the last alone.
    pub fn wait(&mut self, now: Instant, function: Bdf, queue: u16, tlp: Tlp) {
        self.waiting.retain(|head| (head.function, head.queue) != (function, queue));
        self.waiting.push(Head { function, queue, tlp });
        self.until.get_or_insert(now + LONGEST);
    }

    /// Lets none of them wait any longer.
    pub fn hurry(&mut self) {
        self.due = !self.waiting.is_empty();
    }

    /// Drops those to functions that are gone.
    pub fn forget(&mut self, gone: impl Fn(Bdf) -> bool) {
        self.waiting.retain(|head| !gone(head.function));
        if self.waiting.is_empty() {
            *self = Self::default();
        }
    }

    /// Whether they may not wait any longer.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due || self.until.is_some_and(|until| until <= now)
    }

    /// Those that wait.
    pub fn iter(&self) -> impl Iterator<Item = &Head> {
        self.waiting.iter()
    }

    /// All of them, in order; none waits any more.
    pub fn take(&mut self) -> impl Iterator<Item = Tlp> + use<> {
        std::mem::take(self).waiting.into_iter().map(|head| head.tlp)
    }
}
