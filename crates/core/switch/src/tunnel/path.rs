//! One connection of a link: greeting, keepalive, room, and framing of the byte stream. The session
//! handles the contents of the frames.

use super::account::Account;
use super::cause::FIRST_BYTES;
use super::frames::Frames;
use super::session::Session;
use super::{Cause, MAX_PENDING, Output, Settings};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use wire::frame::{
    self, Control, Grant, Header, Hello, Kind, Malformed, Paths, Reject, Role, Survival,
};
use wire::tlp::TraceId;
use wire::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection.
    Idle,
    /// Connected, waiting for the far side's Hello.
    Greeting,
    /// Hellos were exchanged.
    Up,
    /// The link is down; waiting for the connection to close.
    Closing,
}

/// What a Hello says about a session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Greeting {
    pub session: Option<Survival>,
    pub paths: Option<Paths>,
    pub credits: [Grant; 3],
}

/// One connection of a link.
#[derive(Debug)]
pub(super) struct Path {
    settings: Settings,
    state: State,
    /// Whether the far side is a probe, which measures, moves devices, and sends no TLPs.
    peer_is_probe: bool,
    /// The received part of an incomplete frame.
    pub stream: BytesMut,
    /// Control frames of the connection to send.
    pub control: VecDeque<Control>,
    /// Bytes that the network takes now.
    pub room: usize,
    last_sent: Instant,
    last_heard: Instant,
    /// Number of unanswered Move requests.
    moves: u32,
    /// Trace IDs of the next received TLPs.
    pub trace_ids: VecDeque<TraceId>,
    /// What this end says about its session, in its Hello.
    greeting: Greeting,
    /// The part of a frame that is sent again which did not fit the room.
    rest: Bytes,
    /// Number of bytes of sent frames and of received frames.
    sent: u64,
    received: u64,
}

impl Path {
    /// No connection.
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Idle,
            peer_is_probe: false,
            stream: BytesMut::new(),
            control: VecDeque::new(),
            room: 0,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            moves: 0,
            trace_ids: VecDeque::new(),
            greeting: Greeting::default(),
            rest: Bytes::new(),
            sent: 0,
            received: 0,
        }
    }

    /// A path for a new connection. A host or probe queues its Hello.
    pub(super) fn connected(settings: Settings, greeting: Greeting, now: Instant) -> Self {
        let mut path = Self { greeting, ..Self::new(settings) };
        path.state = State::Greeting;
        (path.last_heard, path.last_sent) = (now, now);
        // Hosts and probes send the first Hello; the device answers.
        if settings.role != Role::Device {
            path.greet();
        }
        path
    }

    /// Handles the end of the connection.
    pub(super) fn disconnected(&mut self) {
        self.state = State::Idle;
        self.room = 0;
    }

    /// Ignores further input, and sends nothing more. Returns whether the path was open.
    pub(super) fn abandon(&mut self) -> bool {
        (self.control, self.rest) = (VecDeque::new(), Bytes::new());
        self.close()
    }

    /// Ignores further input; queued frames are still sent. Returns whether the path was open.
    pub(super) fn close(&mut self) -> bool {
        let open = self.is_open();
        if open {
            self.state = State::Closing;
        }
        open
    }

    /// Whether there is no connection.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether the path takes input: greeting or up.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Greeting | State::Up)
    }

    /// Whether the Hellos were exchanged.
    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    fn greet(&mut self) {
        let Settings { role, max_payload, group, instance, push, lease, connection, .. } =
            self.settings;
        let lease_ms = if role == Role::Device { lease.as_ns() / 1_000_000 } else { 0 } as u32;
        let Greeting { session, paths, credits } = self.greeting;
        self.control.push_back(Control::Hello(Hello {
            version: frame::VERSION,
            role,
            max_payload,
            group: if role == Role::Host { group } else { 0 },
            instance,
            push: if role == Role::Device { push } else { 0 },
            session: if role == Role::Probe { None } else { session },
            paths: if role == Role::Probe { None } else { paths },
            connection: if role == Role::Probe { None } else { connection },
            lease_ms,
            credits,
        }));
    }

    /// Takes the next complete frame off `bytes`; returns header, offset in the stream, and
    /// payload. Keeps an incomplete frame for later input. Only frames that are spread over several
    /// inputs are copied.
    pub(super) fn next_frame(
        &mut self,
        bytes: &mut Bytes,
    ) -> Result<Option<(Header, u64, Bytes)>, Cause> {
        let first = if self.stream.is_empty() { self.header(bytes)? } else { None };
        let (header, mut frame) = match first.filter(|first| bytes.len() >= length(*first)) {
            Some(header) => (header, bytes.split_to(length(header))),
            None => loop {
                let header = self.header(&self.stream)?;
                let missing =
                    header.map_or(frame::HEADER, length).saturating_sub(self.stream.len());
                if let Some(header) = header.filter(|_| missing == 0) {
                    break (header, self.stream.split().freeze());
                }
                if bytes.is_empty() {
                    return Ok(None);
                }
                self.stream.reserve(missing);
                self.stream.extend_from_slice(&bytes.split_to(bytes.len().min(missing)));
            },
        };
        frame.advance(frame::HEADER);
        let begin = self.received;
        self.received += length(header) as u64;
        Ok(Some((header, begin, frame)))
    }

    /// The header of the frame that begins with `bytes`; `None` while it is incomplete. Fails if
    /// the first bytes are of another protocol.
    fn header(&self, bytes: &[u8]) -> Result<Option<Header>, Cause> {
        if self.state == State::Greeting && !frame::may_be_greeting(bytes) {
            return Err(Cause::UnknownProtocol(bytes[..bytes.len().min(FIRST_BYTES)].to_vec()));
        }
        let head = bytes.first_chunk::<{ frame::HEADER }>();
        head.map(|head| Header::decode(*head).map_err(Cause::Frame)).transpose()
    }

    /// Records that bytes of the far side were received.
    pub(super) fn heard(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// When the last bytes of the far side were received, or the path was connected.
    pub(super) fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// Sets the interval of keepalives.
    pub(super) fn set_keepalive(&mut self, keepalive: Duration) {
        self.settings.keepalive = keepalive;
    }

    pub(super) fn decode(&mut self, kind: Kind, payload: &[u8]) -> Result<Control, Cause> {
        Control::decode(kind, payload).map_err(|malformed| match malformed {
            Malformed::Required(number) => {
                self.reject(Reject::UnknownEntry(number));
                Cause::Requires(number)
            }
            malformed => Cause::Frame(malformed),
        })
    }

    /// Queues a Reject if this end is a device; a host only closes.
    fn reject(&mut self, reason: Reject) {
        if self.settings.role == Role::Device && self.state == State::Greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
        }
    }

    /// Queues a Reject for the peer. Returns `false` if the peer has already sent its Hello.
    pub(super) fn reject_peer(&mut self, reason: Reject) -> bool {
        let greeting = self.state == State::Greeting;
        if greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
        }
        greeting
    }

    /// Handles the first frame of the far side: a Hello or a Reject.
    pub(super) fn greeted(&mut self, control: Control) -> Result<Hello, Cause> {
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
        if let Some(own) = self.settings.connection
            && (self.settings.role, own.number) == (Role::Host, 0)
            && hello.connection.map(|theirs| theirs.queue_pairs) != Some(own.queue_pairs)
        {
            let theirs = hello.connection.map_or(0, |theirs| theirs.queue_pairs);
            return Err(Cause::QueuePairs { own: own.queue_pairs, theirs });
        }
        let goes_on = hello.session.is_some_and(|session| session.expected.is_some());
        if !goes_on && !takes_largest(&hello) {
            return Err(Cause::Violation(
                "initial credits too small for a TLP of the largest size",
            ));
        }
        if self.settings.role == Role::Device {
            self.greeting.paths.take_if(|_| hello.paths.is_none());
            self.greet();
        }
        self.peer_is_probe = hello.role == Role::Probe;
        self.state = State::Up;
        Ok(())
    }

    /// Handles a control frame of the connection. `pending` is the number of outputs that were not
    /// polled yet.
    pub(super) fn control(
        &mut self,
        control: Control,
        pending: usize,
    ) -> Result<Option<Output>, Cause> {
        match control {
            Control::Echo(number) => {
                if self.control.len() > MAX_PENDING {
                    return Err(Cause::Violation("too many echoes without an answer"));
                }
                self.control.push_back(Control::EchoReply(number));
                Ok(None)
            }
            Control::EchoReply(number) => Ok(Some(Output::EchoReply(number))),
            Control::Move(_) if !self.peer_is_probe => Err(Cause::Violation("Move from a host")),
            Control::Move(group) => {
                if pending > MAX_PENDING || self.control.len() > MAX_PENDING {
                    return Err(Cause::Violation("too many moves without an answer"));
                }
                Ok(Some(Output::Move(group)))
            }
            Control::Moved(moved) => {
                let left = self.moves.checked_sub(1);
                self.moves = left.ok_or(Cause::Violation("Moved without a move"))?;
                Ok(Some(Output::Moved(moved)))
            }
            Control::Goodbye => Err(Cause::Goodbye),
            _ => Err(Cause::Violation("a second greeting")),
        }
    }

    /// Queues a control frame, if the link is up.
    pub(super) fn queue_control(&mut self, control: Control) {
        if self.is_up() {
            self.moves += u32::from(control.kind() == Kind::Move);
            self.control.push_back(control);
        }
    }

    /// When the link counts as lost if no bytes are received until then.
    pub(super) fn lost_at(&self) -> Instant {
        self.last_heard + self.settings.loss_limit
    }

    /// When the next keepalive is due.
    pub(super) fn keepalive_at(&self) -> Instant {
        self.last_sent + self.settings.keepalive
    }

    /// Appends frames within the room of this path, which has this `number`: control frames of the
    /// connection, then frames of the session. Returns the number of bytes.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        session: &mut Session,
        number: usize,
        account: &mut Account,
        out: &mut BytesMut,
    ) -> usize {
        let length = match self.rest.is_empty() {
            true => self.build(now, session, number, account, out),
            false => self.send_rest(self.room, out),
        };
        if length > 0 {
            session.transmitted();
            self.last_sent = now;
            self.room = self.room.saturating_sub(length);
            self.sent += length as u64;
            account.counters.bytes_sent += length as u64;
        }
        length
    }

    /// Builds frames. Returns the number of bytes appended to `out`.
    fn build(
        &mut self,
        now: Instant,
        session: &mut Session,
        number: usize,
        account: &mut Account,
        out: &mut BytesMut,
    ) -> usize {
        let mut frames = Frames {
            begin: self.sent,
            acknowledged: session.expected(),
            single: session.queue.sends_singly(),
            ..Frames::new(out, number, self.room, account)
        };
        if !frames.control(&mut self.control, |_| {}) || self.state != State::Up {
            return frames.length();
        }
        match session.transmit(now, number, &mut frames) {
            None => frames.length(),
            Some(again) => {
                let built = frames.length();
                self.rest = again;
                built + self.send_rest(self.room - built, out)
            }
        }
    }

    /// Sends the next part of a divided frame into `room` bytes.
    fn send_rest(&mut self, room: usize, out: &mut BytesMut) -> usize {
        let length = self.rest.len().min(room);
        out.extend_from_slice(&self.rest.split_to(length));
        length
    }
}

/// Length of a frame in bytes, header included.
fn length(header: Header) -> usize {
    frame::HEADER + usize::from(header.length)
}

/// Whether the initial credits allow one largest TLP of each class.
fn takes_largest(hello: &Hello) -> bool {
    let most = u32::from(hello.max_payload) / 16;
    let need = [most, 1, most];
    hello.credits.iter().zip(need).all(|(grant, data)| grant.headers >= 1 && grant.data >= data)
}
