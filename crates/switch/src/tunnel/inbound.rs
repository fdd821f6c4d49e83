//! From the stream to frames to TLPs. The far side is not trusted.

use super::cause::FIRST_BYTES;
use super::resets::Step;
use super::{Cause, MOST_WAITING, Output, State, Tunnel};
use crate::aggregate::Aggregate;
use bytes::{Buf, Bytes};
use wire::frame::{self, Control, FrameReport, Header, Hello, Kind, Malformed, Reject, Role};
use wire::tlp::Tlp;

impl Tunnel {
    /// Cuts frames off the stream. Bytes are copied only when a frame is
    /// spread over several inputs.
    pub(super) fn received(&mut self, mut chunk: Bytes) -> Result<(), Cause> {
        if matches!(self.state, State::Idle | State::Closing) {
            return Ok(());
        }
        if !self.stream.is_empty() {
            self.stream.extend_from_slice(&chunk);
            if self.whole_frame(&self.stream)?.is_none() {
                return Ok(());
            }
            chunk = self.stream.split().freeze();
        }
        while let Some(header) = self.whole_frame(&chunk)? {
            chunk.advance(frame::HEADER);
            let payload = chunk.split_to(usize::from(header.length));
            self.frame(header, payload)?;
        }
        self.stream.extend_from_slice(&chunk);
        Ok(())
    }

    /// The header, once the whole frame is there. A stranger is recognised by
    /// its first bytes, not by waiting for as many as it seems to announce.
    fn whole_frame(&self, chunk: &[u8]) -> Result<Option<Header>, Cause> {
        if self.state == State::Greeting && !frame::may_greet(chunk) {
            return Err(Cause::Stranger(chunk[..chunk.len().min(FIRST_BYTES)].to_vec()));
        }
        let Some(head) = chunk.first_chunk::<{ frame::HEADER }>() else {
            return Ok(None);
        };
        let header = Header::decode(*head).map_err(Cause::Frame)?;
        let whole = chunk.len() >= frame::HEADER + usize::from(header.length);
        Ok(whole.then_some(header))
    }

    fn frame(&mut self, header: Header, payload: Bytes) -> Result<(), Cause> {
        let mut report = self.reports.begin(false, header, self.taken, &payload);
        self.taken += (frame::HEADER + payload.len()) as u64;
        let taken = self.take(header, payload, report.as_mut());
        self.reports.add(report);
        taken
    }

    fn take(
        &mut self,
        header: Header,
        payload: Bytes,
        report: Option<&mut FrameReport>,
    ) -> Result<(), Cause> {
        let ahead = header.acknowledged.wrapping_sub(self.acknowledged);
        if ahead > self.next_sequence.wrapping_sub(self.acknowledged) {
            return Err(Cause::Violation("acknowledges frames that were never sent"));
        }
        self.acknowledged = header.acknowledged;
        if header.kind == Kind::Tlps {
            return self.tlps(header, payload, report);
        }
        let control = match Control::decode(header.kind, &payload) {
            Ok(control) => control,
            Err(Malformed::Required(number)) => {
                self.reject(Reject::UnknownEntry(number));
                return Err(Cause::Requires(number));
            }
            Err(malformed) => return Err(Cause::Frame(malformed)),
        };
        match (self.state, control) {
            (State::Greeting, Control::Hello(hello)) => self.hello(hello),
            (State::Greeting, Control::Reject { version, .. }) if version != frame::VERSION => {
                Err(Cause::Version { own: self.settings.role, theirs: version })
            }
            (State::Greeting, Control::Reject { reason, .. }) => Err(Cause::Rejected(reason)),
            (State::Up, control) => self.control(control),
            _ => Err(Cause::Violation("a frame before the greeting")),
        }
    }

    /// A device says why it turns a greeting down; a host just goes.
    fn reject(&mut self, reason: Reject) {
        if self.settings.role == Role::Device && self.state == State::Greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
        }
    }

    fn hello(&mut self, hello: Hello) -> Result<(), Cause> {
        if hello.version != frame::VERSION {
            self.reject(Reject::Version);
            return Err(Cause::Version { own: self.settings.role, theirs: hello.version });
        }
        let fits = match self.settings.role {
            Role::Device => hello.role != Role::Device,
            Role::Host | Role::Probe => hello.role == Role::Device,
        };
        if !fits {
            self.reject(Reject::Role);
            return Err(Cause::Role(hello.role));
        }
        if !takes_largest(&hello) {
            return Err(Cause::Violation("first credits below one TLP of the largest size"));
        }
        if self.settings.role == Role::Device {
            self.greet();
        }
        self.probed = hello.role == Role::Probe;
        self.queue = Aggregate::new(self.settings.aggregation, hello.credits)
            .with_overhead(self.settings.tlp_overhead);
        self.state = State::Up;
        self.counters.connections += 1;
        self.outputs.push_back(Output::Up(hello));
        Ok(())
    }

    fn control(&mut self, control: Control) -> Result<(), Cause> {
        match control {
            Control::Hello(_) | Control::Reject { .. } => {
                return Err(Cause::Violation("a second greeting"));
            }
            Control::Credits(limits) => {
                if !self.queue.grant(limits) {
                    return Err(Cause::Violation("credits taken back"));
                }
            }
            Control::Acknowledge => {}
            Control::Echo(number) => {
                if self.control.len() > MOST_WAITING {
                    return Err(Cause::Violation("echoes faster than they can be answered"));
                }
                self.control.push_back(Control::EchoReply(number));
            }
            Control::EchoReply(number) => self.outputs.push_back(Output::EchoReply(number)),
            Control::Reset(_) if self.settings.role != Role::Device => {
                return Err(Cause::Violation("a reset from below"));
            }
            Control::Reset(number) => self.take_reset(number),
            Control::ResetDone(number) => self.asked.done(number).map_err(Cause::Violation)?,
            Control::Move(_) if !self.probed => {
                return Err(Cause::Violation("a move by no probe"));
            }
            Control::Move(group) => {
                if self.outputs.len() > MOST_WAITING || self.control.len() > MOST_WAITING {
                    return Err(Cause::Violation("moves faster than they can be answered"));
                }
                self.outputs.push_back(Output::Move(group));
            }
            Control::Moved(moved) => {
                let left = self.moves.checked_sub(1);
                self.moves = left.ok_or(Cause::Violation("an answer to no move"))?;
                self.outputs.push_back(Output::Moved(moved));
            }
            Control::Goodbye => return Err(Cause::Goodbye),
        }
        Ok(())
    }

    fn take_reset(&mut self, number: u32) {
        match self.wanted.take(number) {
            Step::Reset { first } => {
                self.drop_received();
                if first {
                    self.outputs.push_back(Output::Reset);
                }
            }
            Step::Answer => self.send_latest(Control::ResetDone(number)),
            Step::Ignore => {}
        }
    }

    fn tlps(
        &mut self,
        header: Header,
        mut payload: Bytes,
        mut report: Option<&mut FrameReport>,
    ) -> Result<(), Cause> {
        if self.state != State::Up {
            return Err(Cause::Violation("TLPs before the greeting"));
        }
        if header.sequence != self.expected {
            return Err(Cause::Violation("a frame out of sequence"));
        }
        self.expected = self.expected.wrapping_add(1);
        self.unacknowledged_frames += 1;
        self.counters.frames_received += 1;
        if payload.is_empty() {
            return Err(Cause::Violation("a frame without TLPs"));
        }
        while payload.has_remaining() {
            let rest = report.as_ref().map(|_| payload.clone());
            let mut tlp = Tlp::decode(&mut payload).map_err(Cause::Tlp)?;
            tlp.mark = self.marks.pop_front().unwrap_or_default();
            if let (Some(report), Some(bytes)) = (&mut report, rest) {
                report.carry(tlp.mark, &bytes[..bytes.len() - payload.len()]);
            }
            if tlp.data.len() > usize::from(self.settings.max_payload) {
                return Err(Cause::Violation("a payload above the agreed maximum"));
            }
            self.counters.tlps_received += 1;
            if !self.receiver.push(tlp) {
                return Err(Cause::Violation("a TLP without credits"));
            }
        }
        if self.asked.is_pending() {
            // Sent before the far side was reset.
            self.drop_received();
        }
        Ok(())
    }
}

/// Whether the first credits allow one TLP of the largest size in each class.
fn takes_largest(hello: &Hello) -> bool {
    let most = u32::from(hello.max_payload) / 16;
    let need = [most, 1, most];
    hello.credits.iter().zip(need).all(|(grant, data)| grant.headers >= 1 && grant.data >= data)
}
