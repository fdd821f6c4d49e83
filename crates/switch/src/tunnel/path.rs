//! One connection of a link: greeting, signs of life, room, and the stream cut
//! into frames. What the frames carry is the session's.

use super::account::Account;
use super::cause::FIRST_BYTES;
use super::frames::Frames;
use super::session::Session;
use super::{Cause, MAX_WAITING, Output, Settings};
use crate::aggregate::Policy;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use wire::Instant;
use wire::frame::{self, Control, Header, Hello, Kind, Malformed, Reject, Role};
use wire::tlp::Mark;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection.
    Idle,
    /// Connected, the far side's greeting is awaited.
    Greeting,
    /// Frames of the session flow.
    Up,
    /// Given up; waits for the connection to go.
    Closing,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Path {
    settings: Settings,
    state: State,
    /// The far side measures, and moves devices; it has no TLPs.
    probed: bool,
    /// The beginning of a frame that is not whole.
    pub stream: BytesMut,
    /// Control frames to send: of this connection, not of the session.
    pub control: VecDeque<Control>,
    /// Bytes that the network takes now.
    pub room: usize,
    last_sent: Instant,
    last_heard: Instant,
    /// Moves asked for that have no answer yet.
    moves: u32,
    /// Of TLPs that come.
    pub marks: VecDeque<Mark>,
    /// Bytes of frames made, and of frames taken.
    made: u64,
    taken: u64,
}

impl Path {
    /// No connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Idle,
            probed: false,
            stream: BytesMut::new(),
            control: VecDeque::new(),
            room: 0,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            moves: 0,
            marks: VecDeque::new(),
            made: 0,
            taken: 0,
        }
    }

    /// A connection stands.
    pub fn connected(settings: Settings, now: Instant) -> Self {
        let mut path = Self::new(settings);
        path.state = State::Greeting;
        (path.last_heard, path.last_sent) = (now, now);
        // The device answers; the host and probes speak first.
        if settings.role != Role::Device {
            path.greet();
        }
        path
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        self.state = State::Idle;
        self.room = 0;
    }

    /// Nothing more is taken; what still has to be sent is sent. Whether
    /// anything was taken until now.
    pub fn close(&mut self) -> bool {
        let open = self.is_open();
        if open {
            self.state = State::Closing;
        }
        open
    }

    /// Whether the greeting is awaited, or over.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Greeting | State::Up)
    }

    /// Whether the greeting is over.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    fn greet(&mut self) {
        let Settings { role, max_payload, group, instance, window, .. } = self.settings;
        self.control.push_back(Control::Hello(Hello {
            version: frame::VERSION,
            role,
            max_payload,
            group: if role == Role::Host { group } else { 0 },
            instance,
            credits: window,
        }));
    }

    /// Bytes came: yields those to cut frames off. They are copied only when a
    /// frame is spread over several inputs.
    pub fn join(&mut self, bytes: Bytes) -> Result<Bytes, Cause> {
        if self.stream.is_empty() {
            return Ok(bytes);
        }
        self.stream.extend_from_slice(&bytes);
        match self.whole_frame(&self.stream)? {
            Some(_) => Ok(self.stream.split().freeze()),
            None => Ok(Bytes::new()),
        }
    }

    /// The next whole frame, with where it begins in the stream; what is left
    /// of `bytes` waits for more.
    pub fn cut(&mut self, bytes: &mut Bytes) -> Result<Option<(Header, u64, Bytes)>, Cause> {
        let Some(header) = self.whole_frame(bytes)? else {
            self.stream.extend_from_slice(bytes);
            return Ok(None);
        };
        bytes.advance(frame::HEADER);
        let payload = bytes.split_to(usize::from(header.length));
        let begin = self.taken;
        self.taken += (frame::HEADER + payload.len()) as u64;
        Ok(Some((header, begin, payload)))
    }

    /// The header, once the whole frame is there. A stranger is recognised by
    /// its first bytes, not by waiting for as many as it seems to announce.
    fn whole_frame(&self, chunk: &[u8]) -> Result<Option<Header>, Cause> {
        if self.state == State::Greeting && !frame::may_be_greeting(chunk) {
            return Err(Cause::UnknownProtocol(chunk[..chunk.len().min(FIRST_BYTES)].to_vec()));
        }
        let Some(head) = chunk.first_chunk::<{ frame::HEADER }>() else {
            return Ok(None);
        };
        let header = Header::decode(*head).map_err(Cause::Frame)?;
        let whole = chunk.len() >= frame::HEADER + usize::from(header.length);
        Ok(whole.then_some(header))
    }

    /// Something was heard of the far side.
    pub fn heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// What a control frame says.
    pub fn decode(&mut self, kind: Kind, payload: &[u8]) -> Result<Control, Cause> {
        Control::decode(kind, payload).map_err(|malformed| match malformed {
            Malformed::Required(number) => {
                self.reject(Reject::UnknownEntry(number));
                Cause::Requires(number)
            }
            malformed => Cause::Frame(malformed),
        })
    }

    /// A device says why it turns a greeting down; a host just goes.
    fn reject(&mut self, reason: Reject) {
        if self.settings.role == Role::Device && self.state == State::Greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
        }
    }

    /// Turns the far side away, whatever it says; whether its greeting was
    /// awaited.
    pub fn reject_peer(&mut self, reason: Reject) -> bool {
        let greeting = self.state == State::Greeting;
        if greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
        }
        greeting
    }

    /// The first frame of the far side, which ends the greeting.
    pub fn greeted(&mut self, control: Control) -> Result<Hello, Cause> {
        match control {
            Control::Hello(hello) => self.hello(hello).map(|()| hello),
            Control::Reject { version, .. } if version != frame::VERSION => {
                Err(Cause::Version { own: self.settings.role, theirs: version })
            }
            Control::Reject { reason, .. } => Err(Cause::Rejected(reason)),
            _ => Err(Cause::Violation("a frame before the greeting")),
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
        self.state = State::Up;
        Ok(())
    }

    /// Takes a control frame of the connection; `untold` outputs wait for the
    /// owner.
    pub fn control(&mut self, control: Control, untold: usize) -> Result<Option<Output>, Cause> {
        match control {
            Control::Echo(number) => {
                if self.control.len() > MAX_WAITING {
                    return Err(Cause::Violation("echoes faster than they can be answered"));
                }
                self.control.push_back(Control::EchoReply(number));
                Ok(None)
            }
            Control::EchoReply(number) => Ok(Some(Output::EchoReply(number))),
            Control::Move(_) if !self.probed => Err(Cause::Violation("a move by no probe")),
            Control::Move(group) => {
                if untold > MAX_WAITING || self.control.len() > MAX_WAITING {
                    return Err(Cause::Violation("moves faster than they can be answered"));
                }
                Ok(Some(Output::Move(group)))
            }
            Control::Moved(moved) => {
                let left = self.moves.checked_sub(1);
                self.moves = left.ok_or(Cause::Violation("an answer to no move"))?;
                Ok(Some(Output::Moved(moved)))
            }
            Control::Goodbye => Err(Cause::Goodbye),
            _ => Err(Cause::Violation("a second greeting")),
        }
    }

    /// Queues a control frame, if the link is up.
    pub fn say(&mut self, control: Control) {
        if self.is_up() {
            self.moves += u32::from(control.kind() == Kind::Move);
            self.control.push_back(control);
        }
    }

    /// When nothing will have been heard for too long.
    pub fn lost_at(&self) -> Instant {
        self.last_heard + self.settings.loss_limit
    }

    /// When the next sign of life is due.
    pub fn keepalive_at(&self) -> Instant {
        self.last_sent + self.settings.keepalive
    }

    /// Appends frames for the room that there is, control frames of the
    /// connection, the session's behind them; yields their bytes.
    pub fn transmit(
        &mut self,
        now: Instant,
        session: &mut Session,
        account: &mut Account,
        out: &mut BytesMut,
    ) -> usize {
        let mut frames = Frames {
            begin: self.made,
            acknowledged: session.expected(),
            single: self.settings.aggregation == Policy::PerTlp,
            ..Frames::new(out, self.room, account)
        };
        if frames.control(&mut self.control) {
            session.transmit(now, &mut frames);
        }
        let length = frames.length();
        if length > 0 {
            session.transmitted();
            self.last_sent = now;
            self.room = self.room.saturating_sub(length);
            self.made += length as u64;
            account.counters.bytes_sent += length as u64;
        }
        length
    }
}

/// Whether the first credits allow one TLP of the largest size in each class.
fn takes_largest(hello: &Hello) -> bool {
    let most = u32::from(hello.max_payload) / 16;
    let need = [most, 1, most];
    hello.credits.iter().zip(need).all(|(grant, data)| grant.headers >= 1 && grant.data >= data)
}
