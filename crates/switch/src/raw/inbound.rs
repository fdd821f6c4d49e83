//! From frames to chunks. The far side is not trusted.

use super::receiver::{Fate, WAITED_UNIT};
use super::{Cause, Endpoint, Output, State};
use bytes::Bytes;
use wire::raw::{Bitmap, Body, Frame, Offer, Reason};
use wire::{Duration, Instant};

impl Endpoint {
    pub(super) fn received(&mut self, now: Instant, bytes: &Bytes) {
        let Ok(frame) = Frame::decode(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if let Body::Open(offer) = frame.body {
            return self.open(now, frame.connection, offer);
        }
        let ours = frame.connection == self.connection;
        match self.state {
            State::Opening { .. } | State::Accepted { .. } | State::Up if ours => {}
            _ => {
                self.counters.foreign += 1;
                return;
            }
        }
        match frame.body {
            Body::Open(_) => unreachable!("taken above"),
            Body::Accept(offer) => self.accepted(now, offer),
            Body::Close(reason) => self.down(Cause::Closed(reason)),
            // An Accept that was lost or is late comes again.
            Body::Data { .. } | Body::Ack { .. } if !self.stands() => {}
            Body::Data { sequence, chunk } => {
                self.acknowledged(now, frame, None, &Bitmap::default());
                if self.is_up() {
                    let chunk = bytes.slice_ref(chunk);
                    match self.receiver.take(now, sequence, chunk, self.settings.ack_delay) {
                        Fate::Taken => {}
                        Fate::Duplicate => self.counters.duplicates += 1,
                        Fate::BeyondWindow => self.counters.beyond_window += 1,
                    }
                    self.deliver();
                }
            }
            Body::Ack { newest, waited, bitmap } => {
                let waited = Duration::from_ps(u64::from(waited) * WAITED_UNIT);
                self.acknowledged(now, frame, Some((newest, waited)), &bitmap);
            }
        }
    }

    /// Whether data may come; the first frame behind an Accept says that it
    /// has arrived.
    fn stands(&mut self) -> bool {
        if matches!(self.state, State::Accepted { .. }) {
            self.state = State::Up;
            self.outputs.push_back(Output::Connected);
        }
        self.is_up()
    }

    fn deliver(&mut self) {
        while let Some(chunk) = self.receiver.next() {
            self.counters.delivered += 1;
            self.outputs.push_back(Output::Delivered(chunk));
        }
    }

    fn acknowledged(
        &mut self,
        now: Instant,
        frame: Frame<'_>,
        newest: Option<(wire::raw::Sequence, Duration)>,
        bitmap: &Bitmap,
    ) {
        let result = self.sender.acknowledged(now, frame.acknowledged, newest, bitmap);
        if let Err(cause) = result {
            self.down(cause);
            self.control(Body::Close(Reason::Violation));
        }
    }

    fn open(&mut self, now: Instant, connection: u32, offer: Offer) {
        match self.state {
            State::Listening => {
                self.begin(connection);
                self.agree(offer);
                self.state = State::Accepted { since: now };
                self.control(Body::Accept(self.settings.offer()));
            }
            State::Accepted { .. } | State::Up if connection == self.connection => {
                self.control_once(Body::Accept(self.settings.offer()));
            }
            // Not yet in use by anybody: the later one counts.
            State::Accepted { .. } => {
                self.state = State::Listening;
                self.open(now, connection, offer);
            }
            State::Up => self.down(Cause::Restarted),
            State::Idle | State::Opening { .. } => self.counters.foreign += 1,
        }
    }

    fn accepted(&mut self, now: Instant, offer: Offer) {
        match self.state {
            State::Opening { .. } => {
                self.agree(offer);
                self.frames.clear();
                self.state = State::Up;
                self.outputs.push_back(Output::Connected);
                self.receiver.hurry(now);
            }
            // Our first frame was lost.
            State::Up => self.receiver.hurry(now),
            _ => {}
        }
    }

    fn agree(&mut self, offer: Offer) {
        self.sender.agree(offer);
        self.receiver.agree(offer);
    }

    /// Unless one waits already: a peer that asks again and again gets one
    /// answer at a time.
    fn control_once(&mut self, body: Body<'_>) {
        if self.frames.is_empty() {
            self.control(body);
        }
    }
}
