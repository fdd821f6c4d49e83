//! The send side: keeps data frames until they are acknowledged, and retransmits lost frames.

use super::round_trip::RoundTrip;
use super::{Cause, Settings};
use crate::congestion::{Acknowledged, Controller};
use std::collections::VecDeque;
use wire::raw::{Bitmap, Body, Frame, HEADER, Offer, Sequence};
use wire::{Duration, Instant};

/// A frame counts as lost if a frame was acknowledged that was sent at least this number of
/// transmissions later (RFC 9002, 6.1.1, kPacketThreshold).
const THRESHOLD: u64 = 3;

/// The longest retransmission timeout.
const MAX_TIMEOUT: Duration = Duration::from_ms(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// The frame is acknowledged, but an earlier frame is not.
    Acknowledged,
    /// To be retransmitted.
    Lost,
}

#[derive(Debug)]
struct Sent {
    segment: Vec<u8>,
    wire: u64,
    at: Instant,
    /// The number of the frame's latest transmission.
    transmission: u64,
    retransmitted: bool,
    state: State,
}

/// The send side of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    settings: Settings,
    segment: usize,
    window: usize,
    /// The sequence number of the first frame in `flight`.
    first: Sequence,
    flight: VecDeque<Sent>,
    in_flight: u64,
    /// Number of lost frames in `flight`.
    lost: usize,
    transmissions: u64,
    /// The latest transmission known to have been received.
    arrived: u64,
    round_trip: RoundTrip,
    control: Controller,
    /// When the retransmission timeout expires, while frames are in flight.
    timeout: Instant,
    timeouts: u32,
    /// Number of timeouts that were too short since the last measured round trip. Each doubles the
    /// next timeouts.
    too_soon: u32,
    /// The last acknowledged frame that was retransmitted after a timeout. If the copy was a
    /// duplicate, the timeout was too short.
    resent: Option<Sequence>,
    /// Whether one frame is to be sent regardless of congestion control.
    probe: bool,
    /// Time of the last acknowledgement of a new frame, or at which no frame was in flight.
    progress: Instant,
}

impl Sender {
    pub(super) fn new(settings: &Settings) -> Self {
        let offer = settings.offer();
        let mut sender = Self {
            settings: *settings,
            segment: 0,
            window: 0,
            first: Sequence::default(),
            flight: VecDeque::new(),
            in_flight: 0,
            lost: 0,
            transmissions: 0,
            arrived: 0,
            round_trip: RoundTrip::default(),
            control: Controller::new(settings.congestion, 1),
            timeout: Instant::ZERO,
            timeouts: 0,
            too_soon: 0,
            resent: None,
            probe: false,
            progress: Instant::ZERO,
        };
        sender.agree(offer);
        sender
    }

    /// Applies the offer of the peer: the smaller value of both ends applies.
    pub(super) fn agree(&mut self, theirs: Offer) {
        let ours = self.settings.offer();
        self.segment = usize::from(ours.segment.min(theirs.segment));
        self.window = usize::from(ours.window.min(theirs.window));
        let frame = self.settings.wire(HEADER + self.segment);
        self.control = Controller::new(self.settings.congestion, frame);
    }

    pub(super) fn room(&self, now: Instant) -> usize {
        let full = self.settings.wire(HEADER + self.segment);
        let held = self.lost > 0 || self.probe || self.flight.len() >= self.window;
        if held || !self.control.may_send(now, self.in_flight, full) { 0 } else { self.segment }
    }

    /// Makes the frame of a new segment.
    pub(super) fn send(
        &mut self,
        now: Instant,
        segment: Vec<u8>,
        connection: u32,
        acknowledged: Sequence,
    ) -> Vec<u8> {
        let wire = self.settings.wire(HEADER + segment.len());
        if self.flight.is_empty() {
            self.progress = now;
            self.timeout = now + self.timeout_interval();
        }
        self.transmissions += 1;
        let transmission = self.transmissions;
        let state = State::InFlight;
        self.flight.push_back(Sent {
            segment,
            wire,
            at: now,
            transmission,
            retransmitted: false,
            state,
        });
        self.in_flight += wire;
        self.control.sent(now, wire, true);
        self.frame(self.flight.len() - 1, connection, acknowledged)
    }

    fn frame(&self, place: usize, connection: u32, acknowledged: Sequence) -> Vec<u8> {
        let segment = &self.flight[place].segment;
        let mut out = Vec::with_capacity(HEADER + segment.len());
        let body = Body::Data { sequence: self.first.plus(place), segment };
        Frame { connection, acknowledged, body }.encode(&mut out);
        out
    }

    /// Counts an acknowledgement that was sent without data.
    pub(super) fn sent_acknowledgement(&mut self, now: Instant, payload: usize) {
        self.control.sent(now, self.settings.wire(payload), false);
    }

    /// The next frame to retransmit, if one may be sent now.
    pub(super) fn retransmit(
        &mut self,
        now: Instant,
        connection: u32,
        acknowledged: Sequence,
    ) -> Option<Vec<u8>> {
        let place = self.next_retransmission()?;
        let Sent { wire, state, .. } = self.flight[place];
        if !self.probe && !self.control.may_send(now, self.in_flight, wire) {
            return None;
        }
        self.probe = false;
        if state == State::Lost {
            self.lost -= 1;
            self.in_flight += wire;
        }
        self.transmissions += 1;
        let sent = &mut self.flight[place];
        sent.state = State::InFlight;
        sent.at = now;
        sent.retransmitted = true;
        sent.transmission = self.transmissions;
        self.control.sent(now, wire, true);
        self.timeout = now + self.timeout_interval();
        Some(self.frame(place, connection, acknowledged))
    }

    fn next_retransmission(&self) -> Option<usize> {
        let find = |state| self.flight.iter().position(|sent| sent.state == state);
        if self.lost > 0 {
            find(State::Lost)
        } else if self.probe {
            find(State::InFlight)
        } else {
            None
        }
    }

    /// Handles an acknowledgement. `newest` is the frame whose round trip it measures, and the time
    /// by which the peer delayed the acknowledgement.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        until: Sequence,
        newest: Option<(Sequence, Duration)>,
        bitmap: &Bitmap,
    ) -> Result<(), Cause> {
        let Some(count) = until.ahead_of(self.first) else { return Ok(()) };
        if count > self.flight.len() {
            return Err(Cause::Violation("an acknowledgement of frames that were never sent"));
        }
        let window_limited = self.is_window_limited();
        let newest = newest.or_else(|| {
            // An acknowledgement with data has no delay field. The last frame that it acknowledges
            // arrived within the acknowledgement delay, so the delay counts as zero.
            (count > 0).then(|| (self.first.plus(count - 1), Duration::ZERO))
        });
        if newest.is_some_and(|(sequence, _)| self.resent.take_if(|it| *it == sequence).is_some()) {
            self.too_soon += 1;
        }
        let round_trip = newest.and_then(|(sequence, waited)| self.measure(now, sequence, waited));
        let mut ack = Acknowledged { bytes: 0, frames: 0, round_trip, window_limited };
        // The acknowledged frames that were retransmitted: latest transmission and number.
        let mut resent = (0, 0);
        for _ in 0..count {
            self.mark_acknowledged(now, 0, &mut ack, &mut resent);
            self.flight.pop_front();
            self.first = self.first.plus(1);
        }
        if !bitmap.is_empty() {
            for place in 1..self.flight.len().min(Bitmap::BITS + 1) {
                if bitmap.get(place - 1) {
                    self.mark_acknowledged(now, place, &mut ack, &mut resent);
                }
            }
        }
        // If frames that were sent once are acknowledged too, the first copies have arrived: the
        // timeout was spurious (RFC 5682), and later transmissions may not have arrived.
        let spurious = self.timeouts > 0 && ack.frames > resent.1;
        if !spurious {
            self.arrived = self.arrived.max(resent.0);
        }
        if ack.frames > 0 {
            self.timeouts = 0;
            self.probe = false;
            self.timeout = now + self.timeout_interval();
        }
        if count > 0 {
            self.progress = now;
        }
        if ack.frames > 0 || ack.round_trip.is_some() {
            self.control.acknowledged(now, ack);
        }
        self.find_lost(now);
        Ok(())
    }

    /// Whether the congestion window, not a lack of data, limits sending.
    fn is_window_limited(&self) -> bool {
        let full = self.settings.wire(HEADER + self.segment);
        self.control.window().is_some_and(|window| self.in_flight + full > window)
    }

    /// Measures the round trip of a frame that was sent only once.
    fn measure(
        &mut self,
        now: Instant,
        sequence: Sequence,
        waited: Duration,
    ) -> Option<(Duration, u64)> {
        let sent = self.flight.get(sequence.ahead_of(self.first)?)?;
        if sent.retransmitted || sent.state == State::Acknowledged {
            return None;
        }
        let sample = now.since(sent.at) - waited;
        self.round_trip.measure(sample);
        self.too_soon = 0;
        Some((sample, sent.wire))
    }

    fn mark_acknowledged(
        &mut self,
        now: Instant,
        place: usize,
        ack: &mut Acknowledged,
        resent: &mut (u64, u32),
    ) {
        let sent = &mut self.flight[place];
        match sent.state {
            State::Acknowledged => return,
            State::Lost => self.lost -= 1,
            State::InFlight => self.in_flight -= sent.wire,
        }
        sent.state = State::Acknowledged;
        if !sent.retransmitted {
            self.arrived = self.arrived.max(sent.transmission);
        } else {
            resent.1 += 1;
            if self.timeouts > 0 {
                self.resent = Some(self.first.plus(place));
            }
            if !self.round_trip.too_soon(now.since(sent.at)) {
                resent.0 = resent.0.max(sent.transmission);
            }
        }
        ack.bytes += sent.wire;
        ack.frames += 1;
    }

    /// Marks frames as lost that later transmissions have overtaken.
    fn find_lost(&mut self, now: Instant) {
        // No frame that was sent after the latest acknowledged frame counts as lost. Usually no
        // unacknowledged frame was sent before it.
        let Some(front) = self.flight.front() else { return };
        if front.transmission + THRESHOLD > self.arrived && self.lost == 0 && !front.retransmitted {
            return;
        }
        for sent in &mut self.flight {
            if sent.state == State::InFlight && sent.transmission + THRESHOLD <= self.arrived {
                sent.state = State::Lost;
                self.lost += 1;
                self.in_flight -= sent.wire;
                self.control.lost(now);
            }
        }
    }

    /// The retransmission timeout, with exponential backoff.
    fn timeout_interval(&self) -> Duration {
        let measured = self.round_trip.timeout(self.settings.min_timeout);
        let pause = measured
            .map_or(self.settings.initial_timeout, |timeout| timeout + self.settings.ack_delay);
        let doubled = pause.as_ps().saturating_mul(1 << (self.timeouts + self.too_soon).min(16));
        // A path with a longer round trip must not time out forever.
        Duration::from_ps(doubled).min(MAX_TIMEOUT.max(pause))
    }

    /// Handles timeouts. Returns whether the connection is lost.
    pub(super) fn check_timers(&mut self, now: Instant) -> bool {
        if self.flight.is_empty() {
            return false;
        }
        if now >= self.progress + self.settings.give_up {
            return true;
        }
        if self.in_flight > 0 && now >= self.timeout && !self.probe {
            self.timeouts += 1;
            self.control.timed_out(now, self.timeouts);
            // The first timeout sends one probe. At further timeouts all frames in flight count as
            // lost.
            if self.timeouts > 1 {
                for sent in self.flight.iter_mut().filter(|sent| sent.state == State::InFlight) {
                    sent.state = State::Lost;
                    self.lost += 1;
                }
                self.in_flight = 0;
            }
            self.probe = true;
            self.timeout = now + self.timeout_interval();
        }
        false
    }

    /// When to call [`Self::check_timers`] or [`Self::retransmit`] next.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let pacing = Some(self.control.not_before()).filter(|at| *at > now);
        if self.flight.is_empty() {
            return pacing;
        }
        let timeout = (self.in_flight > 0 && !self.probe).then_some(self.timeout);
        let given_up = Some(self.progress + self.settings.give_up);
        [pacing, timeout, given_up].into_iter().flatten().min()
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    pub(super) fn window(&self) -> Option<u64> {
        self.control.window()
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flight.is_empty()
    }

    /// Whether the next retransmission is a probe after a timeout.
    pub(super) fn is_probing(&self) -> bool {
        self.probe
    }
}
