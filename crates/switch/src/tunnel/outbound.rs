//! From TLPs to frames, when the network can take them.

use super::{Cause, Output, State, Tunnel};
use crate::aggregate::{Leave, Policy};
use wire::Instant;
use wire::frame::{self, Control, FrameReport, Header, Kind, Role};

/// Frames received without any acknowledgement on the way back.
const ACKNOWLEDGE_AFTER: u32 = 64;

impl Tunnel {
    /// The next thing this end wants. One frame is made for each call while
    /// the network has room.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        self.watch(now);
        let mut out = Vec::new();
        self.transmit(now, &mut out);
        if !out.is_empty() {
            self.last_sent = now;
            self.counters.bytes_sent += out.len() as u64;
            return Output::Transmit(out);
        }
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        Output::Timeout(self.deadline(now))
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        match self.state {
            State::Idle | State::Closing => None,
            State::Greeting => Some(self.last_heard + self.settings.loss_limit),
            State::Up => {
                let mut next = self.last_heard + self.settings.loss_limit;
                if let Some(since) = self.stuck {
                    next = next.min(since + self.settings.loss_limit);
                }
                // What waits for room is a sign of life to come.
                if self.control.is_empty() {
                    next = next.min(self.last_sent + self.settings.keepalive);
                    if let Leave::At(at) = self.queue.leave(now, self.tlp_room(0)) {
                        next = next.min(at);
                    }
                }
                Some(next)
            }
        }
    }

    /// Loss of the link, and signs of life.
    fn watch(&mut self, now: Instant) {
        if !matches!(self.state, State::Greeting | State::Up) {
            return;
        }
        self.watch_progress(now);
        if now >= self.last_heard + self.settings.loss_limit {
            self.close(Cause::Lost);
        } else if self.stuck.is_some_and(|since| now >= since + self.settings.loss_limit) {
            self.close(Cause::Stuck);
        } else if self.state == State::Up
            && now >= self.last_sent + self.settings.keepalive
            && self.control.is_empty()
        {
            self.control.push_back(Control::Acknowledge);
        }
    }

    /// A device that takes nothing any more would hold up the traffic of all
    /// the others in front of it, so its host watches. A device does not: its
    /// host may have guests that stand still.
    fn watch_progress(&mut self, now: Instant) {
        let waits = self.settings.role == Role::Host && self.queue.holds_what_must_go();
        self.stuck = if waits { self.stuck.or(Some(now)) } else { None };
    }

    /// Control frames first, then one frame of TLPs.
    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) {
        if self.state == State::Up {
            if let Some(limits) = self.receiver.update(self.settings.max_payload) {
                self.send_latest(Control::Credits(limits));
            } else if self.unacknowledged_frames >= ACKNOWLEDGE_AFTER
                && !self.queue.can_fill()
                && self.control.is_empty()
            {
                self.control.push_back(Control::Acknowledge);
            }
        }
        let single = self.settings.aggregation == Policy::PerTlp;
        while let Some(control) = self.control.front() {
            if single && !out.is_empty() {
                break;
            }
            let start = out.len();
            out.extend_from_slice(&[0; frame::HEADER]);
            control.encode(out);
            if out.len() > self.room {
                out.truncate(start);
                break;
            }
            let kind = control.kind();
            self.control.pop_front();
            let header = self.write_header(out, start, kind, 0);
            let (begin, payload) = (self.made + start as u64, &out[start + frame::HEADER..]);
            self.reports.add(self.reports.begin(true, header, begin, payload));
        }
        // TLPs may not overtake a reset.
        if self.control.is_empty() && (!single || out.is_empty()) {
            self.transmit_tlps(now, out);
        }
        self.room = self.room.saturating_sub(out.len());
        self.made += out.len() as u64;
    }

    /// Bytes of TLPs in a frame after `before` bytes.
    fn tlp_room(&self, before: usize) -> usize {
        let room = self.room.saturating_sub(before + frame::HEADER);
        room.min(self.settings.max_frame).min(frame::MAX_PAYLOAD)
    }

    fn transmit_tlps(&mut self, now: Instant, out: &mut Vec<u8>) {
        let start = out.len();
        let room = self.tlp_room(start);
        if self.state != State::Up || self.queue.leave(now, room) != Leave::Now {
            return;
        }
        out.reserve(frame::HEADER + room.min(self.queue.bytes()));
        out.extend_from_slice(&[0; frame::HEADER]);
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        let header = self.header(0, Kind::Tlps, sequence);
        let mut report = self.reports.begin(true, header, self.made + start as u64, &[]);
        let tlps = self.queue.fill(out, room, |mark, bytes| {
            if let Some(report) = &mut report {
                report.carry(mark, bytes);
            }
        });
        self.stuck = None;
        let header = self.write_header(out, start, Kind::Tlps, sequence);
        self.reports.add(report.map(|report| FrameReport { header, ..report }));
        self.counters.frames_sent += 1;
        self.counters.tlps_sent += tlps as u64;
    }

    fn write_header(&mut self, out: &mut [u8], start: usize, kind: Kind, sequence: u32) -> Header {
        let header = self.header(out.len() - start - frame::HEADER, kind, sequence);
        out[start..start + frame::HEADER].copy_from_slice(&header.encode());
        self.unacknowledged_frames = 0;
        header
    }

    fn header(&self, length: usize, kind: Kind, sequence: u32) -> Header {
        Header { length: length as u16, kind, sequence, acknowledged: self.expected }
    }
}
