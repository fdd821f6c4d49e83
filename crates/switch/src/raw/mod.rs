//! The raw-Ethernet carrier of a link: chunks of its stream, each in one
//! Ethernet frame of EtherType 0x88B5, delivered exactly once and in order.
//!
//! A state machine: [`Endpoint::handle`], then [`Endpoint::poll`] until it
//! yields [`Output::Timeout`]. The owner asks [`Endpoint::room`] how many bytes
//! the congestion control and the windows let go now, tells that to its
//! [`crate::Tunnel`], and passes what the tunnel transmits to
//! [`Endpoint::send`]: one chunk a call. Chunks delivered are the tunnel's
//! `Received`. So TLPs wait in [`crate::aggregate`], behind the congestion
//! control, and nowhere else.
//!
//! Sequence, cumulative and selective acknowledgement; what was lost is sent
//! again when frames sent after it have arrived (RFC 9002, 6.1.1: a threshold
//! of three packets, by the order of transmission), or after a timeout (RFC
//! 6298, with a floor of microseconds). What arrives twice is dropped.
//!
//! Frames with other connection identifiers, malformed ones and such that come
//! in no connection are counted and dropped, so that a station that sends
//! nonsense harms nobody but itself. There is no authentication: who can send
//! Ethernet frames here can end a connection. Corruption is found by the FCS
//! of Ethernet alone, as in ExpEther.

mod inbound;
mod outbound;
mod receiver;
mod round_trip;
mod sender;

use crate::congestion;
use bytes::Bytes;
use receiver::{Patience, Receiver};
use sender::Sender;
use std::collections::VecDeque;
use std::fmt;
use wire::raw::{Body, CONNECTION_MASK, Frame, HEADER, MIN_PAYLOAD, Offer, Reason, Sequence};
use wire::{Duration, Instant};

/// What one end of a connection decides.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of a chunk at most: the MTU less 12 bytes of header. Both ends
    /// send what the smaller of theirs allows.
    pub chunk: usize,
    /// Data frames that may be on the way unacknowledged, and those that are
    /// kept out of order: 1 to 1024. The smaller of both ends' counts.
    pub window: usize,
    /// Identifier of the first connection opened, 24 bits; each further one
    /// takes the next. New with every start of the process, so that a restart
    /// is noticed.
    pub connection: u32,
    /// What lets frames go.
    pub congestion: congestion::Config,
    /// Bytes of wire of a frame beside its payload: 38 (header 14, FCS 4,
    /// preamble 8, gap 12), and 4 for a tag.
    pub overhead: usize,
    /// How long an acknowledgement waits for further frames, or for data to
    /// travel with.
    pub ack_delay: Duration,
    /// Data frames after which it waits no longer.
    pub ack_after: u32,
    /// Timeout before anything was measured.
    pub initial_timeout: Duration,
    /// How much the timeout is above the smoothed round trip at least: the
    /// floor of the timeout (RFC 6298's G).
    pub min_timeout: Duration,
    /// Gives the connection up when nothing new was acknowledged for this
    /// long, or an Open was not answered. Not above the tunnel's loss limit.
    pub give_up: Duration,
}

impl Settings {
    /// For an MTU of 1500: 256 frames, acknowledgements within 2 us, timeouts
    /// from 50 us, given up after 800 ms, no congestion control.
    pub fn new(connection: u32) -> Self {
        Self {
            chunk: 1500 - HEADER,
            window: 256,
            connection,
            congestion: congestion::Config::None,
            overhead: 38,
            ack_delay: Duration::from_us(2),
            ack_after: 2,
            initial_timeout: Duration::from_ms(1),
            min_timeout: Duration::from_us(50),
            give_up: Duration::from_ms(800),
        }
    }

    /// Bytes of wire of a frame with this payload behind its EtherType.
    fn wire(&self, payload: usize) -> u64 {
        (payload.max(MIN_PAYLOAD) + self.overhead) as u64
    }

    fn patience(&self) -> Patience {
        Patience { delay: self.ack_delay, frames: self.ack_after }
    }

    fn offer(&self) -> Offer {
        let bounded = |value: usize, most: usize| value.clamp(1, most) as u16;
        Offer {
            chunk: bounded(self.chunk, usize::from(u16::MAX)),
            window: bounded(self.window, MAX_WINDOW),
        }
    }
}

/// Frames of a window at most.
pub const MAX_WINDOW: usize = 1024;

/// What happens to a connection.
#[derive(Clone, Debug)]
pub enum Input {
    /// Open a connection: this end speaks first.
    Open,
    /// Take the next connection that the other end opens.
    Accept,
    /// What stood behind the EtherType of a frame from the other station,
    /// padding included.
    Received(Bytes),
    /// The network takes this many frames now. Until it is first said, any
    /// number.
    CanTransmit {
        /// Frames.
        frames: usize,
    },
    /// End the connection, or stop accepting. [`Output::Down`] is not said.
    Close,
}

/// What a connection wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame for the other station: what goes behind the EtherType.
    Transmit(Vec<u8>),
    /// The connection stands.
    Connected,
    /// The next chunk of the stream.
    Delivered(Bytes),
    /// The connection is gone; this end neither opens nor accepts until told.
    Down(Cause),
    /// Nothing more now; call again after an input or at this time. There may
    /// be more [`Endpoint::room`] then, too.
    Timeout(Option<Instant>),
}

/// Why a connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The other end said so.
    Closed(Reason),
    /// Nothing new was acknowledged within the limit, or an Open not answered.
    Lost,
    /// The other end opened another connection: it was restarted.
    Restarted,
    /// The other end broke the protocol.
    Violation(&'static str),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(Reason::Done) => f.write_str("the far side closed the connection"),
            Self::Closed(Reason::Unknown) => f.write_str("the far side knows no such connection"),
            Self::Closed(Reason::Busy) => f.write_str("the far side has another connection"),
            Self::Closed(Reason::Violation) => {
                f.write_str("the far side took something for a violation of the protocol")
            }
            Self::Lost => f.write_str("nothing was acknowledged within the limit"),
            Self::Restarted => f.write_str("the far side was restarted"),
            Self::Violation(rule) => write!(f, "protocol violation: {rule}"),
        }
    }
}

/// Counters of an end since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data frames sent, retransmissions among them.
    pub data_sent: u64,
    /// Data frames sent again.
    pub retransmitted: u64,
    /// Of these, after a timeout.
    pub timeouts: u64,
    /// Acknowledgements that travelled alone.
    pub acks_sent: u64,
    /// Chunks delivered.
    pub delivered: u64,
    /// Data frames that had been received before, dropped.
    pub duplicates: u64,
    /// Data frames beyond the window, dropped.
    pub beyond_window: u64,
    /// Frames that were none, or of another version, dropped.
    pub malformed: u64,
    /// Frames of another connection or of none, dropped.
    pub foreign: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection, and none wanted.
    Idle,
    /// Waits for an Open.
    Listening,
    /// Has sent Open, `since` then; sends it again at `again`.
    Opening { since: Instant, again: Instant, pause: Duration },
    /// Has answered an Open and waits for the first frame behind it.
    Accepted { since: Instant },
    /// Chunks flow.
    Up,
}

/// See the module.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    state: State,
    /// The connection that is, or was last.
    connection: u32,
    /// The one to open next.
    next_connection: u32,
    sender: Sender,
    receiver: Receiver,
    outputs: VecDeque<Output>,
    /// Frames made and not yet handed out: control frames, new data.
    frames: VecDeque<Vec<u8>>,
    network: usize,
    counters: Counters,
}

impl Endpoint {
    /// An end without a connection.
    ///
    /// # Panics
    /// If chunks of no bytes or a window of no frames are asked for.
    pub fn new(settings: Settings) -> Self {
        assert!(settings.chunk > 0 && settings.window > 0, "a chunk and a window of one at least");
        let connection = settings.connection & CONNECTION_MASK;
        Self {
            settings,
            state: State::Idle,
            connection,
            next_connection: connection,
            sender: Sender::new(&settings),
            receiver: Receiver::new(settings.offer()),
            outputs: VecDeque::new(),
            frames: VecDeque::new(),
            network: usize::MAX,
            counters: Counters::default(),
        }
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Open => {
                self.begin(self.next_connection);
                self.next_connection = (self.next_connection + 1) & CONNECTION_MASK;
                let pause = self.settings.initial_timeout;
                self.state = State::Opening { since: now, again: now, pause };
            }
            Input::Accept => {
                self.begin(self.connection);
                self.state = State::Listening;
            }
            Input::Received(bytes) => self.received(now, &bytes),
            Input::CanTransmit { frames } => self.network = frames,
            Input::Close => {
                if matches!(self.state, State::Up | State::Accepted { .. } | State::Opening { .. })
                {
                    self.begin(self.connection);
                    self.control(Body::Close(Reason::Done));
                }
                self.state = State::Idle;
            }
        }
    }

    /// Forgets everything of the connection before.
    fn begin(&mut self, connection: u32) {
        self.connection = connection;
        self.sender = Sender::new(&self.settings);
        self.receiver = Receiver::new(self.settings.offer());
        self.frames.clear();
    }

    /// The connection is gone.
    fn down(&mut self, cause: Cause) {
        self.begin(self.connection);
        self.state = State::Idle;
        self.outputs.push_back(Output::Down(cause));
    }

    /// Queues a frame that stands outside the sequence.
    fn control(&mut self, body: Body<'_>) {
        let mut out = Vec::new();
        let acknowledged = Sequence::default();
        Frame { connection: self.connection, acknowledged, body }.encode(&mut out);
        self.frames.push_back(out);
    }

    /// Whether chunks flow.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Bytes that the next chunk may have now: all a frame takes, or 0 while
    /// the windows are full, the congestion control paces, lost frames wait to
    /// be sent again or the network takes none.
    pub fn room(&self, now: Instant) -> usize {
        let takes = self.network > self.frames.len();
        if self.is_up() && takes { self.sender.room(now) } else { 0 }
    }

    /// Sends a chunk.
    ///
    /// # Panics
    /// If it is empty or longer than [`Self::room`].
    pub fn send(&mut self, now: Instant, chunk: Vec<u8>) {
        let room = self.room(now);
        assert!((1..=room).contains(&chunk.len()), "a chunk of {} into {room}", chunk.len());
        let acknowledged = self.receiver.piggyback();
        let connection = self.connection;
        let frame = self.sender.send(now, chunk, connection, acknowledged);
        self.counters.data_sent += 1;
        self.frames.push_back(frame);
    }

    /// The connection's identifier: that of the last one if there is none.
    pub fn connection(&self) -> u32 {
        self.connection
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The smoothed round trip, once measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.sender.round_trip()
    }

    /// Bytes of wire that the congestion control lets be on the way, if it
    /// bounds them.
    pub fn window(&self) -> Option<u64> {
        self.sender.window()
    }

    /// Bytes of wire of data frames that are on the way.
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Frames that wait for the network to take them.
    pub fn queued(&self) -> usize {
        self.frames.len()
    }

    /// Whether nothing that was sent waits for its answer.
    pub fn is_quiet(&self) -> bool {
        !matches!(self.state, State::Opening { .. })
            && self.sender.is_empty()
            && self.frames.is_empty()
    }
}

/// The answer to a frame for which a station has no endpoint, if it deserves
/// one: data and acknowledgements of a connection that is gone, and Opens that
/// nobody takes.
pub fn refuse(received: &[u8], reason: Reason) -> Option<Vec<u8>> {
    let frame = Frame::decode(received).ok()?;
    if matches!(frame.body, Body::Close(_) | Body::Accept(_)) {
        return None;
    }
    let mut out = Vec::new();
    let acknowledged = Sequence::default();
    let connection = frame.connection;
    Frame { connection, acknowledged, body: Body::Close(reason) }.encode(&mut out);
    Some(out)
}
