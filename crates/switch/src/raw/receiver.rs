//! What has come: chunks in order, those ahead of their turn, and when to say
//! so.

use bytes::Bytes;
use std::collections::VecDeque;
use wire::raw::{Bitmap, Body, Offer, Sequence};
use wire::{Duration, Instant};

/// Data frames after which an acknowledgement waits no longer.
const ACKNOWLEDGE_AFTER: u32 = 2;

/// Unit of the time that a frame waited for its acknowledgement, in ps.
pub(super) const WAITED_UNIT: u64 = 16_000;

/// What became of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Taken,
    Duplicate,
    BeyondWindow,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Receiver {
    expected: Sequence,
    /// The chunks from the expected one on, as far as they have come.
    ahead: VecDeque<Option<Bytes>>,
    held: usize,
    window: usize,
    /// Data frames since the last acknowledgement left.
    unacknowledged: u32,
    /// When the acknowledgement leaves at the latest.
    due: Option<Instant>,
    /// The data frame that came last, and when.
    newest: (Sequence, Instant),
}

impl Receiver {
    pub fn new(offer: Offer) -> Self {
        Self {
            expected: Sequence::default(),
            ahead: VecDeque::new(),
            held: 0,
            window: usize::from(offer.window),
            unacknowledged: 0,
            due: None,
            // Before the first one: nobody measures by it.
            newest: (Sequence::new(u32::MAX), Instant::ZERO),
        }
    }

    /// The window that both ends agreed on.
    pub fn agree(&mut self, theirs: Offer) {
        self.window = self.window.min(usize::from(theirs.window));
    }

    /// Takes a data frame. Chunks whose turn has come wait in [`Self::next`].
    pub fn take(
        &mut self,
        now: Instant,
        sequence: Sequence,
        chunk: Bytes,
        delay: Duration,
    ) -> Fate {
        let Some(ahead) = sequence.ahead_of(self.expected) else {
            return self.again(now, sequence);
        };
        if ahead >= self.window {
            self.due = Some(now);
            return Fate::BeyondWindow;
        }
        if self.ahead.len() <= ahead {
            self.ahead.resize(ahead + 1, None);
        }
        let place = &mut self.ahead[ahead];
        if place.is_some() {
            return self.again(now, sequence);
        }
        *place = Some(chunk);
        self.held += 1;
        self.newest = (sequence, now);
        self.unacknowledged += 1;
        // What is missing is said at once: the sender counts on it.
        let gap = ahead > 0 || self.ahead.len() > self.held;
        let at = if gap || self.unacknowledged >= ACKNOWLEDGE_AFTER { now } else { now + delay };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        Fate::Taken
    }

    /// The sender seems not to know.
    fn again(&mut self, now: Instant, sequence: Sequence) -> Fate {
        self.newest = (sequence, now);
        self.due = Some(now);
        Fate::Duplicate
    }

    /// The next chunk whose turn has come.
    pub fn next(&mut self) -> Option<Bytes> {
        let chunk = self.ahead.front_mut()?.take()?;
        self.ahead.pop_front();
        self.held -= 1;
        self.expected = self.expected.plus(1);
        Some(chunk)
    }

    /// Everything before this has come.
    pub fn expected(&self) -> Sequence {
        self.expected
    }

    /// The acknowledgement that travels with data. It stands for one that was
    /// due, if nothing is out of order.
    pub fn piggyback(&mut self) -> Sequence {
        if self.held == 0 {
            self.due = None;
            self.unacknowledged = 0;
        }
        self.expected
    }

    /// When an acknowledgement is due.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// An acknowledgement is due, whatever has come.
    pub fn hurry(&mut self, now: Instant) {
        self.due = Some(now);
        self.newest.1 = now;
    }

    /// The acknowledgement that leaves now.
    pub fn acknowledgement(&mut self, now: Instant) -> Body<'static> {
        self.due = None;
        self.unacknowledged = 0;
        let mut bitmap = Bitmap::default();
        let came = self.ahead.iter().enumerate().skip(1).take(Bitmap::BITS);
        came.filter(|(_, chunk)| chunk.is_some()).for_each(|(number, _)| bitmap.set(number - 1));
        let (newest, at) = self.newest;
        let waited = now.since(at).as_ps() / WAITED_UNIT;
        Body::Ack { newest, waited: waited.min(u64::from(u16::MAX)) as u16, bitmap }
    }
}
