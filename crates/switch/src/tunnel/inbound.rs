//! From the stream to frames to TLPs. The far side is not trusted.

use super::{Cause, Output, State, Tunnel};
use crate::aggregate::Aggregate;
use bytes::{Buf, Bytes};
use wire::frame::{self, Control, Header, Hello, Kind, Reject, Role};
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

    /// The header, once the whole frame is there.
    fn whole_frame(&self, chunk: &[u8]) -> Result<Option<Header>, Cause> {
        let Some(head) = chunk.first_chunk::<{ frame::HEADER }>() else {
            return Ok(None);
        };
        let header = Header::decode(*head).map_err(Cause::Frame)?;
        // A stranger is recognised by its first bytes, not by waiting for
        // as many as it seems to announce.
        if self.state == State::Greeting && header.length > 1024 {
            let length = usize::from(header.length);
            return Err(Cause::Frame(frame::Malformed::Length { kind: header.kind, length }));
        }
        let whole = chunk.len() >= frame::HEADER + usize::from(header.length);
        Ok(whole.then_some(header))
    }

    fn frame(&mut self, header: Header, payload: Bytes) -> Result<(), Cause> {
        let ahead = header.acknowledged.wrapping_sub(self.acknowledged);
        if ahead > self.next_sequence.wrapping_sub(self.acknowledged) {
            return Err(Cause::Violation("acknowledges frames that were never sent"));
        }
        self.acknowledged = header.acknowledged;
        if header.kind == Kind::Tlps {
            return self.tlps(header, payload);
        }
        let control = Control::decode(header.kind, &payload).map_err(Cause::Frame)?;
        match (self.state, control) {
            (State::Greeting, Control::Hello(hello)) => self.hello(hello),
            (State::Greeting, Control::Reject { reason: Reject::Version, version }) => {
                Err(Cause::Version(frame::VERSION, version))
            }
            (State::Greeting, Control::Reject { reason, .. }) => Err(Cause::Rejected(reason)),
            (State::Up, control) => self.control(control),
            _ => Err(Cause::Violation("a frame before the greeting")),
        }
    }

    fn hello(&mut self, hello: Hello) -> Result<(), Cause> {
        let reject = |tunnel: &mut Self, reason| {
            if tunnel.settings.role == Role::Device {
                tunnel.control.push_back(Control::Reject { reason, version: frame::VERSION });
            }
        };
        if hello.version != frame::VERSION {
            reject(self, Reject::Version);
            return Err(Cause::Version(frame::VERSION, hello.version));
        }
        let fits = match self.settings.role {
            Role::Device => hello.role != Role::Device,
            Role::Host | Role::Probe => hello.role == Role::Device,
        };
        if !fits {
            reject(self, Reject::Role);
            return Err(Cause::Role(hello.role));
        }
        if !takes_largest(&hello) {
            return Err(Cause::Violation("first credits below one TLP of the largest size"));
        }
        if self.settings.role == Role::Device {
            self.greet();
        }
        self.probed = hello.role == Role::Probe;
        self.queue = Aggregate::new(self.settings.aggregation, hello.credits);
        self.state = State::Up;
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
                if self.control.len() > 64 {
                    return Err(Cause::Violation("echoes faster than they can be answered"));
                }
                self.control.push_back(Control::EchoReply(number));
            }
            Control::EchoReply(number) => self.outputs.push_back(Output::EchoReply(number)),
            Control::Reset if self.settings.role != Role::Device => {
                return Err(Cause::Violation("a reset from below"));
            }
            Control::Reset => {
                if self.outputs.len() > 64 {
                    return Err(Cause::Violation("resets faster than they can be done"));
                }
                self.receiver.clear();
                self.reset_wanted = true;
                self.outputs.push_back(Output::Reset);
            }
            Control::Move(_) if !self.probed => {
                return Err(Cause::Violation("a move by no probe"));
            }
            Control::Move(group) => {
                if self.outputs.len() > 64 {
                    return Err(Cause::Violation("moves faster than they can be done"));
                }
                self.outputs.push_back(Output::Move(group));
            }
            Control::ResetDone => {
                let Some(left) = self.resetting.checked_sub(1) else {
                    return Err(Cause::Violation("a reset nobody asked for is done"));
                };
                self.resetting = left;
            }
            Control::Goodbye => return Err(Cause::Goodbye),
        }
        Ok(())
    }

    fn tlps(&mut self, header: Header, mut payload: Bytes) -> Result<(), Cause> {
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
            let tlp = Tlp::decode(&mut payload).map_err(Cause::Tlp)?;
            if tlp.data.len() > usize::from(self.settings.max_payload) {
                return Err(Cause::Violation("a payload above the agreed maximum"));
            }
            self.counters.tlps_received += 1;
            if !self.receiver.push(tlp) {
                return Err(Cause::Violation("a TLP without credits"));
            }
        }
        if self.resetting > 0 {
            // Sent before the far side was reset.
            self.receiver.clear();
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
