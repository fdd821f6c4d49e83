//! Converts received frames to segments of the stream. The peer is not trusted.

use super::receiver::{Received, WAITED_UNIT};
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
            Body::Open(_) => unreachable!("handled above"),
            Body::Accept(offer) => self.accepted(now, offer),
            Body::Close(reason) => self.down(Cause::Closed(reason)),
            // The connection is not up: the Accept was lost or is late, and will be sent again.
            Body::Data { .. } | Body::Ack { .. } if !self.is_established() => {}
            Body::Data { sequence, segment } => {
                self.acknowledged(now, frame, None, &Bitmap::default());
                if self.is_up() {
                    let segment = bytes.slice_ref(segment);
                    match self.receiver.receive(now, sequence, segment, self.settings.ack_policy())
                    {
                        Received::Accepted => {}
                        Received::Duplicate => self.counters.duplicates += 1,
                        Received::BeyondWindow => self.counters.beyond_window += 1,
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

    /// Whether the connection is up. The first frame after an Accept shows that the Accept has
    /// arrived, so the connection comes up.
    fn is_established(&mut self) -> bool {
        if matches!(self.state, State::Accepted { .. }) {
            self.state = State::Up;
            self.outputs.push_back(Output::Connected);
        }
        self.is_up()
    }

    fn deliver(&mut self) {
        while let Some(segment) = self.receiver.next() {
            self.counters.delivered += 1;
            self.outputs.push_back(Output::Delivered(segment));
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
            // No frame has followed the Accept, so the later Open replaces the connection.
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
                self.receiver.acknowledge_now(now);
            }
            // The peer has not received the first frame of this end.
            State::Up => self.receiver.acknowledge_now(now),
            _ => {}
        }
    }

    fn agree(&mut self, offer: Offer) {
        self.sender.agree(offer);
        self.receiver.agree(offer);
    }

    /// Queues a control frame if none is queued, so that repeated requests get
    /// one answer at a time.
    fn control_once(&mut self, body: Body<'_>) {
        if self.frames.is_empty() {
            self.control(body);
        }
    }
}
