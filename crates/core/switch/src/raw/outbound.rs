//! Converts segments to frames, and handles timers.

use super::{Cause, Endpoint, Output, State};
use wire::raw::{Body, Frame};
use wire::{Duration, Instant};

/// The longest pause between two Opens.
const MAX_PAUSE: Duration = Duration::from_ms(100);

impl Endpoint {
    /// The next output.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.check_timers(now);
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        match self.transmit(now) {
            Some(frame) => {
                if self.network != usize::MAX {
                    self.network -= 1;
                }
                Output::Transmit(frame)
            }
            None => Output::Timeout(self.deadline(now)),
        }
    }

    fn check_timers(&mut self, now: Instant) {
        let limit = self.settings.give_up;
        match self.state {
            State::Opening { since, .. } if now >= since + limit => self.down(Cause::Lost),
            State::Opening { since, retry_at, pause } if now >= retry_at => {
                self.frames.clear();
                self.control(Body::Open(self.settings.offer()));
                let retry_at = now + pause;
                let pause = (pause + pause).min(MAX_PAUSE.max(self.settings.initial_timeout));
                self.state = State::Opening { since, retry_at, pause };
            }
            // The peer that sent the Open has sent no frame since.
            State::Accepted { since } if now >= since + limit => {
                self.begin(self.connection);
                self.state = State::Listening;
            }
            State::Up if self.sender.check_timers(now) => self.down(Cause::Lost),
            _ => {}
        }
    }

    fn transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.network == 0 {
            return None;
        }
        if let Some(frame) = self.frames.pop_front() {
            return Some(frame);
        }
        if !self.is_up() {
            return None;
        }
        let due = self.receiver.due().is_some_and(|due| now >= due);
        // An acknowledgement is built as late as possible, so that it covers as many frames as
        // possible.
        if due {
            return Some(self.acknowledge(now));
        }
        let probing = self.sender.is_probing();
        let acknowledged = self.receiver.expected();
        let frame = self.sender.retransmit(now, self.connection, acknowledged)?;
        self.counters.data_sent += 1;
        self.counters.retransmitted += 1;
        self.counters.timeouts += u64::from(probing);
        Some(frame)
    }

    fn acknowledge(&mut self, now: Instant) -> Vec<u8> {
        let mut out = Vec::new();
        let body = self.receiver.acknowledgement(now);
        let acknowledged = self.receiver.expected();
        Frame { connection: self.connection, acknowledged, body }.encode(&mut out);
        self.sender.sent_acknowledgement(now, out.len());
        self.counters.acks_sent += 1;
        out
    }

    fn deadline(&self, now: Instant) -> Option<Instant> {
        let limit = self.settings.give_up;
        match self.state {
            State::Idle | State::Listening => None,
            State::Opening { since, retry_at, .. } => Some(retry_at.min(since + limit)),
            State::Accepted { since } => Some(since + limit),
            State::Up => {
                let due = self.receiver.due().filter(|due| *due > now);
                [due, self.sender.deadline(now)].into_iter().flatten().min()
            }
        }
    }
}
