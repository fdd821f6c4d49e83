//! What is on the way: kept until acknowledged, sent again when lost.

use super::round_trip::RoundTrip;
use super::{Cause, Settings};
use crate::congestion::{Acknowledged, Controller};
use std::collections::VecDeque;
use wire::raw::{Bitmap, Body, Frame, HEADER, Offer, Sequence};
use wire::{Duration, Instant};

/// A frame is lost when one sent this many transmissions later has arrived
/// (RFC 9002, 6.1.1, kPacketThreshold).
const THRESHOLD: u64 = 3;

/// The longest pause between two timeouts.
const MAX_TIMEOUT: Duration = Duration::from_ms(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    OnTheWay,
    /// It has arrived, ones before it have not.
    Arrived,
    /// To be sent again.
    Lost,
}

#[derive(Debug)]
struct Sent {
    chunk: Vec<u8>,
    wire: u64,
    at: Instant,
    /// Counts all transmissions.
    transmission: u64,
    again: bool,
    fate: Fate,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sender {
    settings: Settings,
    chunk: usize,
    window: usize,
    /// The number of the first in `flight`.
    first: Sequence,
    flight: VecDeque<Sent>,
    in_flight: u64,
    /// Frames in `flight` that are lost.
    lost: usize,
    transmissions: u64,
    /// The last transmission that is known to have arrived.
    arrived: u64,
    round_trip: RoundTrip,
    control: Controller,
    /// When the timeout strikes, while something is on the way.
    timeout: Instant,
    timeouts: u32,
    /// A frame is to be sent whatever the congestion control says.
    probe: bool,
    /// When something new was acknowledged last, or nothing was on the way.
    progress: Instant,
}

impl Sender {
    pub fn new(settings: &Settings) -> Self {
        let offer = settings.offer();
        let mut sender = Self {
            settings: *settings,
            chunk: 0,
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
            probe: false,
            progress: Instant::ZERO,
        };
        sender.agree(offer);
        sender
    }

    /// The other end's offer: the smaller counts.
    pub fn agree(&mut self, theirs: Offer) {
        let ours = self.settings.offer();
        self.chunk = usize::from(ours.chunk.min(theirs.chunk));
        self.window = usize::from(ours.window.min(theirs.window));
        let frame = self.settings.wire(HEADER + self.chunk);
        self.control = Controller::new(self.settings.congestion, frame);
    }

    pub fn room(&self, now: Instant) -> usize {
        let full = self.settings.wire(HEADER + self.chunk);
        let held = self.lost > 0 || self.probe || self.flight.len() >= self.window;
        if held || !self.control.may_send(now, self.in_flight, full) { 0 } else { self.chunk }
    }

    /// A new chunk goes; its frame.
    pub fn send(
        &mut self,
        now: Instant,
        chunk: Vec<u8>,
        connection: u32,
        acknowledged: Sequence,
    ) -> Vec<u8> {
        let wire = self.settings.wire(HEADER + chunk.len());
        if self.flight.is_empty() {
            self.progress = now;
            self.timeout = now + self.pause();
        }
        self.transmissions += 1;
        let transmission = self.transmissions;
        let fate = Fate::OnTheWay;
        self.flight.push_back(Sent { chunk, wire, at: now, transmission, again: false, fate });
        self.in_flight += wire;
        self.control.sent(now, wire, true);
        self.frame(self.flight.len() - 1, connection, acknowledged)
    }

    fn frame(&self, place: usize, connection: u32, acknowledged: Sequence) -> Vec<u8> {
        let chunk = &self.flight[place].chunk;
        let mut out = Vec::with_capacity(HEADER + chunk.len());
        let body = Body::Data { sequence: self.first.plus(place), chunk };
        Frame { connection, acknowledged, body }.encode(&mut out);
        out
    }

    /// A frame of another kind went.
    pub fn sent_beside(&mut self, now: Instant, payload: usize) {
        self.control.sent(now, self.settings.wire(payload), false);
    }

    /// The next frame to send again, if one may go now.
    pub fn again(
        &mut self,
        now: Instant,
        connection: u32,
        acknowledged: Sequence,
    ) -> Option<Vec<u8>> {
        let place = self.next_again()?;
        let Sent { wire, fate, .. } = self.flight[place];
        if !self.probe && !self.control.may_send(now, self.in_flight, wire) {
            return None;
        }
        self.probe = false;
        if fate == Fate::Lost {
            self.lost -= 1;
            self.in_flight += wire;
        }
        self.transmissions += 1;
        let sent = &mut self.flight[place];
        sent.fate = Fate::OnTheWay;
        sent.at = now;
        sent.again = true;
        sent.transmission = self.transmissions;
        self.control.sent(now, wire, true);
        self.timeout = now + self.pause();
        Some(self.frame(place, connection, acknowledged))
    }

    fn next_again(&self) -> Option<usize> {
        let find = |fate| self.flight.iter().position(|sent| sent.fate == fate);
        if self.lost > 0 {
            find(Fate::Lost)
        } else if self.probe {
            find(Fate::OnTheWay)
        } else {
            None
        }
    }

    /// Takes an acknowledgement. `newest` is the frame whose round trip it
    /// measures, less the time that it waited.
    pub fn acknowledged(
        &mut self,
        now: Instant,
        until: Sequence,
        newest: Option<(Sequence, Duration)>,
        bitmap: &Bitmap,
    ) -> Result<(), Cause> {
        let Some(count) = until.ahead_of(self.first) else { return Ok(()) };
        if count > self.flight.len() {
            return Err(Cause::Violation("acknowledges frames that were never sent"));
        }
        let limited = self.is_limited();
        let newest = newest.or_else(|| {
            // What travels with data tells no time, but the last frame it
            // acknowledges came within the acknowledgement delay.
            (count > 0).then(|| (self.first.plus(count - 1), Duration::ZERO))
        });
        let round_trip = newest.and_then(|(sequence, waited)| self.measure(now, sequence, waited));
        let mut what = Acknowledged { bytes: 0, frames: 0, round_trip, limited };
        // Of frames sent again: the last transmission, and how many.
        let mut resent = (0, 0);
        for _ in 0..count {
            self.arrive(now, 0, &mut what, &mut resent);
            self.flight.pop_front();
        }
        self.first = until;
        if !bitmap.is_empty() {
            for place in 1..self.flight.len().min(Bitmap::BITS + 1) {
                if bitmap.get(place - 1) {
                    self.arrive(now, place, &mut what, &mut resent);
                }
            }
        }
        // If frames sent once come with them, it was the first copies that
        // came: the timeout was too early (as RFC 5682 has it), and says
        // nothing about the others.
        let early = self.timeouts > 0 && what.frames > resent.1;
        if !early {
            self.arrived = self.arrived.max(resent.0);
        }
        if what.frames > 0 {
            self.timeouts = 0;
            self.probe = false;
            self.timeout = now + self.pause();
        }
        if count > 0 {
            self.progress = now;
        }
        if what.frames > 0 || what.round_trip.is_some() {
            self.control.acknowledged(now, what);
        }
        self.find_lost(now);
        Ok(())
    }

    /// Whether the congestion control, not a lack of data, holds back.
    fn is_limited(&self) -> bool {
        let full = self.settings.wire(HEADER + self.chunk);
        self.control.window().is_some_and(|window| self.in_flight + full > window)
    }

    /// The round trip of a frame that was sent once.
    fn measure(
        &mut self,
        now: Instant,
        sequence: Sequence,
        waited: Duration,
    ) -> Option<(Duration, u64)> {
        let sent = self.flight.get(sequence.ahead_of(self.first)?)?;
        if sent.again || sent.fate == Fate::Arrived {
            return None;
        }
        let sample = now.since(sent.at) - waited;
        self.round_trip.measure(sample);
        Some((sample, sent.wire))
    }

    fn arrive(
        &mut self,
        now: Instant,
        place: usize,
        what: &mut Acknowledged,
        resent: &mut (u64, u32),
    ) {
        let sent = &mut self.flight[place];
        match sent.fate {
            Fate::Arrived => return,
            Fate::Lost => self.lost -= 1,
            Fate::OnTheWay => self.in_flight -= sent.wire,
        }
        sent.fate = Fate::Arrived;
        if !sent.again {
            self.arrived = self.arrived.max(sent.transmission);
        } else {
            resent.1 += 1;
            if !self.round_trip.too_soon(now.since(sent.at)) {
                resent.0 = resent.0.max(sent.transmission);
            }
        }
        what.bytes += sent.wire;
        what.frames += 1;
    }

    /// Frames that later ones have overtaken.
    fn find_lost(&mut self, now: Instant) {
        // Nothing behind the last that has arrived can be lost; usually there
        // is nothing before it.
        let Some(front) = self.flight.front() else { return };
        if front.transmission + THRESHOLD > self.arrived && self.lost == 0 && !front.again {
            return;
        }
        for sent in &mut self.flight {
            if sent.fate == Fate::OnTheWay && sent.transmission + THRESHOLD <= self.arrived {
                sent.fate = Fate::Lost;
                self.lost += 1;
                self.in_flight -= sent.wire;
                self.control.lost(now);
            }
        }
    }

    /// The timeout as it is now.
    fn pause(&self) -> Duration {
        let measured = self.round_trip.timeout(self.settings.min_timeout);
        let pause = measured
            .map_or(self.settings.initial_timeout, |timeout| timeout + self.settings.ack_delay);
        let doubled = pause.as_ps().saturating_mul(1 << self.timeouts.min(16));
        // A path that takes longer than the longest pause must not time out
        // for ever.
        Duration::from_ps(doubled).min(MAX_TIMEOUT.max(pause))
    }

    /// Lets timeouts strike; whether the connection is beyond hope.
    pub fn watch(&mut self, now: Instant) -> bool {
        if self.flight.is_empty() {
            return false;
        }
        if now >= self.progress + self.settings.give_up {
            return true;
        }
        if self.in_flight > 0 && now >= self.timeout && !self.probe {
            self.timeouts += 1;
            self.control.timed_out(now, self.timeouts);
            // The first time, one frame asks what has arrived. Then all is
            // taken for lost.
            if self.timeouts > 1 {
                for sent in self.flight.iter_mut().filter(|sent| sent.fate == Fate::OnTheWay) {
                    sent.fate = Fate::Lost;
                    self.lost += 1;
                }
                self.in_flight = 0;
            }
            self.probe = true;
            self.timeout = now + self.pause();
        }
        false
    }

    /// When to look again by itself: `pacing` as well if something waits.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let pacing = Some(self.control.not_before()).filter(|at| *at > now);
        if self.flight.is_empty() {
            return pacing;
        }
        let timeout = (self.in_flight > 0 && !self.probe).then_some(self.timeout);
        let given_up = Some(self.progress + self.settings.give_up);
        [pacing, timeout, given_up].into_iter().flatten().min()
    }

    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    pub fn window(&self) -> Option<u64> {
        self.control.window()
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub fn is_empty(&self) -> bool {
        self.flight.is_empty()
    }

    /// Timeouts in a row.
    pub fn probing(&self) -> bool {
        self.probe
    }
}
