//! The receive side: reordering, and the time of acknowledgements.

use bytes::Bytes;
use std::collections::VecDeque;
use wire::raw::{Bitmap, Body, Offer, Sequence};
use wire::{Duration, Instant};

/// Unit of [`Body::Ack`]'s `waited`, in picoseconds.
pub(super) const WAITED_UNIT: u64 = 16_000;

/// The result of receiving a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Accepted,
    Duplicate,
    BeyondWindow,
}

/// When a delayed acknowledgement is sent (RFC 9000, section 13.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct AckPolicy {
    /// The longest delay. During the delay, a data frame may carry the acknowledgement.
    pub delay: Duration,
    /// Number of data frames after which the acknowledgement is sent without delay.
    pub frames: u32,
}

/// The receive side of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    expected: Sequence,
    /// The segments from `expected` on; `None` for a missing segment.
    buffer: VecDeque<Option<Bytes>>,
    buffered: usize,
    window: usize,
    /// Number of data frames since the last acknowledgement was sent.
    unacknowledged: u32,
    /// When the next acknowledgement is sent at the latest.
    due: Option<Instant>,
    /// The data frame received last, and the time of its reception.
    newest: (Sequence, Instant),
}

impl Receiver {
    pub(super) fn new(offer: Offer) -> Self {
        Self {
            expected: Sequence::default(),
            buffer: VecDeque::new(),
            buffered: 0,
            window: usize::from(offer.window),
            unacknowledged: 0,
            due: None,
            // A sequence number before the first frame, which gives no round trip.
            newest: (Sequence::new(u32::MAX), Instant::ZERO),
        }
    }

    /// Sets the window to the smaller offer of both ends.
    pub(super) fn agree(&mut self, theirs: Offer) {
        self.window = self.window.min(usize::from(theirs.window));
    }

    /// Takes a data frame. [`Self::next`] returns the segments that are in order.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        sequence: Sequence,
        segment: Bytes,
        policy: AckPolicy,
    ) -> Received {
        let Some(ahead) = sequence.ahead_of(self.expected) else {
            return self.duplicate(now, sequence);
        };
        if ahead >= self.window {
            self.due = Some(now);
            return Received::BeyondWindow;
        }
        if self.buffer.len() <= ahead {
            self.buffer.resize(ahead + 1, None);
        }
        let place = &mut self.buffer[ahead];
        if place.is_some() {
            return self.duplicate(now, sequence);
        }
        *place = Some(segment);
        self.buffered += 1;
        self.newest = (sequence, now);
        self.unacknowledged += 1;
        // A gap is acknowledged at once, so that the sender detects the loss.
        let gap = ahead > 0 || self.buffer.len() > self.buffered;
        let at = if gap || self.unacknowledged >= policy.frames { now } else { now + policy.delay };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        Received::Accepted
    }

    /// Acknowledges a duplicate at once, because the acknowledgement of the frame was lost.
    fn duplicate(&mut self, now: Instant, sequence: Sequence) -> Received {
        self.newest = (sequence, now);
        self.due = Some(now);
        Received::Duplicate
    }

    /// The next segment in order.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let segment = self.buffer.front_mut()?.take()?;
        self.buffer.pop_front();
        self.buffered -= 1;
        self.expected = self.expected.plus(1);
        Some(segment)
    }

    /// The cumulative acknowledgement: all frames with lower numbers were received.
    pub(super) fn expected(&self) -> Sequence {
        self.expected
    }

    /// The cumulative acknowledgement for a data frame. It replaces a delayed acknowledgement if no
    /// frame is out of order.
    pub(super) fn piggyback(&mut self) -> Sequence {
        if self.buffered == 0 {
            self.due = None;
            self.unacknowledged = 0;
        }
        self.expected
    }

    /// When an acknowledgement is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Makes an acknowledgement due now.
    pub(super) fn acknowledge_now(&mut self, now: Instant) {
        self.due = Some(now);
        self.newest.1 = now;
    }

    /// Builds the acknowledgement to send now.
    pub(super) fn acknowledgement(&mut self, now: Instant) -> Body<'static> {
        self.due = None;
        self.unacknowledged = 0;
        let mut bitmap = Bitmap::default();
        let received = self.buffer.iter().enumerate().skip(1).take(Bitmap::BITS);
        received
            .filter(|(_, segment)| segment.is_some())
            .for_each(|(number, _)| bitmap.set(number - 1));
        let (newest, at) = self.newest;
        let waited = now.since(at).as_ps() / WAITED_UNIT;
        Body::Ack { newest, waited: waited.min(u64::from(u16::MAX)) as u16, bitmap }
    }
}
