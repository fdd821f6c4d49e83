//! The raw-Ethernet carrier of a link. Segments of the stream, each in one Ethernet frame of
//! EtherType 0x88B5, are delivered exactly once and in order.
//!
//! A state machine: call [`Endpoint::handle`], then [`Endpoint::poll`] until it returns
//! [`Output::Timeout`]. [`Endpoint::room`] returns the number of bytes that congestion control and
//! windows admit now. The owner passes this number to its [`crate::Tunnel`]. It passes the bytes
//! that the tunnel transmits to [`Endpoint::send`], one segment per call, and delivered segments to
//! the tunnel as `Received`. Therefore TLPs wait for congestion control only in
//! [`crate::aggregate`].
//!
//! Frames have sequence numbers, and cumulative and selective acknowledgements. A lost frame is
//! retransmitted when a frame that was sent at least three transmissions later is acknowledged (RFC
//! 9002, 6.1.1, packet threshold), or after a timeout (RFC 6298, with a minimum of microseconds).
//! Duplicates are dropped.
//!
//! Malformed frames, and frames of another connection or of none, are counted and dropped, so that
//! a faulty station harms only itself. There is no authentication: any station that can send
//! Ethernet frames to this end can end a connection. Only the Ethernet FCS detects corruption, as
//! in ExpEther.

mod inbound;
mod outbound;
mod receiver;
mod round_trip;
mod sender;

use crate::congestion;
use bytes::Bytes;
use receiver::{AckPolicy, Receiver};
use sender::Sender;
use std::collections::VecDeque;
use wire::raw::{Body, CONNECTION_MASK, Frame, HEADER, MIN_PAYLOAD, Offer, Reason, Sequence};
use wire::{Duration, Instant};

/// Settings of one end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest segment in bytes: the MTU minus 12 bytes of header. A connection uses the
    /// smaller value of both ends.
    pub segment: usize,
    /// The maximum number of data frames that are unacknowledged or buffered out of order: 1 to
    /// 1024. A connection uses the smaller value of both ends.
    pub window: usize,
    /// Identifier of the first connection that this end opens, 24 bits; the next connections have
    /// the next numbers. Use another identifier at each start of the process, so that the peer
    /// detects a restart.
    pub connection: u32,
    /// The congestion control.
    pub congestion: congestion::Config,
    /// Bytes on the wire that a frame has in addition to its payload: 38 (header 14, FCS
    /// 4, preamble 8, gap 12), and 4 for a tag.
    pub overhead: usize,
    /// The longest delay of an acknowledgement. During the delay, it can cover further frames or
    /// become part of a data frame.
    pub ack_delay: Duration,
    /// Number of data frames after which an acknowledgement is sent at once.
    pub ack_after: u32,
    /// The retransmission timeout before the first round trip is measured.
    pub initial_timeout: Duration,
    /// The minimum by which the retransmission timeout exceeds the smoothed round trip (RFC 6298's
    /// G).
    pub min_timeout: Duration,
    /// The connection is lost if no new frame is acknowledged, or an Open is not answered, for this
    /// time. At most the loss limit of the tunnel.
    pub give_up: Duration,
}

impl Settings {
    /// Defaults for an MTU of 1500: a window of 256 frames, acknowledgements within 2 us, an
    /// initial timeout of 1 ms, later a timeout of at least the round trip plus 50 us, loss after
    /// 800 ms, no congestion control.
    pub fn new(connection: u32) -> Self {
        Self {
            segment: 1500 - HEADER,
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

    /// Bytes on the wire of a frame with this payload after its EtherType.
    fn wire(&self, payload: usize) -> u64 {
        (payload.max(MIN_PAYLOAD) + self.overhead) as u64
    }

    fn ack_policy(&self) -> AckPolicy {
        AckPolicy { delay: self.ack_delay, frames: self.ack_after }
    }

    fn offer(&self) -> Offer {
        let bounded = |value: usize, most: usize| value.clamp(1, most) as u16;
        Offer {
            segment: bounded(self.segment, usize::from(u16::MAX)),
            window: bounded(self.window, MAX_WINDOW),
        }
    }
}

/// The largest window, in frames.
pub const MAX_WINDOW: usize = 1024;

/// Input of a connection.
#[derive(Clone, Debug)]
pub enum Input {
    /// Open a connection from this end.
    Open,
    /// Accept the next connection that the peer opens.
    Accept,
    /// The payload of a frame from the peer, after its EtherType, with padding.
    Received(Bytes),
    /// The network takes this number of frames now. Before the first such input it takes any
    /// number.
    CanTransmit {
        /// Number of frames.
        frames: usize,
    },
    /// End the connection, or stop accepting. No [`Output::Down`] follows.
    Close,
}

/// Output of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this payload, after the EtherType, to the peer.
    Transmit(Vec<u8>),
    /// The connection is established.
    Connected,
    /// The next segment of the stream.
    Delivered(Bytes),
    /// The connection has ended. This end waits for [`Input::Open`] or [`Input::Accept`].
    Down(Cause),
    /// No output now. Poll again after an input or at this time; [`Endpoint::room`] may then be
    /// larger too.
    Timeout(Option<Instant>),
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The peer closed the connection.
    #[error("the far side {0}")]
    Closed(Reason),
    /// No new frame was acknowledged, or an Open was not answered, in time.
    #[error("the far side acknowledged nothing within the loss limit")]
    Lost,
    /// The peer opened another connection: it was restarted.
    #[error("the far side was restarted")]
    Restarted,
    /// The peer violated the protocol.
    #[error("protocol violation: {0}")]
    Violation(&'static str),
}

/// Counters of an end since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of data frames sent, retransmissions included.
    pub data_sent: u64,
    /// Number of retransmitted data frames.
    pub retransmitted: u64,
    /// Number of data frames retransmitted after a timeout.
    pub timeouts: u64,
    /// Number of acknowledgements sent without data.
    pub acks_sent: u64,
    /// Number of delivered segments.
    pub delivered: u64,
    /// Number of duplicate data frames, which are dropped.
    pub duplicates: u64,
    /// Number of data frames beyond the window, which are dropped.
    pub beyond_window: u64,
    /// Number of malformed frames and frames of another version, which are dropped.
    pub malformed: u64,
    /// Number of frames of another connection or of none, which are dropped.
    pub foreign: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection.
    Idle,
    /// Waiting for an Open.
    Listening,
    /// Open was first sent at `since` and is sent again at `retry_at`.
    Opening { since: Instant, retry_at: Instant, pause: Duration },
    /// Accept was sent; waiting for the first frame that follows it.
    Accepted { since: Instant },
    /// Established.
    Up,
}

/// One end of a raw-Ethernet connection.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    state: State,
    /// Identifier of the current or last connection.
    connection: u32,
    /// Identifier of the next connection to open.
    next_connection: u32,
    sender: Sender,
    receiver: Receiver,
    outputs: VecDeque<Output>,
    /// Control and new data frames to transmit.
    frames: VecDeque<Vec<u8>>,
    network: usize,
    counters: Counters,
}

impl Endpoint {
    /// An end without a connection.
    ///
    /// # Panics
    /// If the largest segment or the window is 0.
    pub fn new(settings: Settings) -> Self {
        assert!(
            settings.segment > 0 && settings.window > 0,
            "a segment and a window of one at least"
        );
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
                self.state = State::Opening { since: now, retry_at: now, pause };
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

    /// Resets the state for a connection with this identifier.
    fn begin(&mut self, connection: u32) {
        self.connection = connection;
        self.sender = Sender::new(&self.settings);
        self.receiver = Receiver::new(self.settings.offer());
        self.frames.clear();
    }

    /// Ends the connection, and outputs the cause.
    fn down(&mut self, cause: Cause) {
        self.begin(self.connection);
        self.state = State::Idle;
        self.outputs.push_back(Output::Down(cause));
    }

    /// Queues a frame without a sequence number.
    fn control(&mut self, body: Body<'_>) {
        self.frames.push_back(unnumbered(self.connection, body));
    }

    /// Whether the connection is established.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// The maximum number of bytes of the next segment now. 0 while a window is full, congestion
    /// control delays frames, lost frames wait for retransmission, or the network takes no frame.
    pub fn room(&self, now: Instant) -> usize {
        let takes = self.network > self.frames.len();
        if self.is_up() && takes { self.sender.room(now) } else { 0 }
    }

    /// Sends a segment.
    ///
    /// # Panics
    /// If the segment is empty or longer than [`Self::room`].
    pub fn send(&mut self, now: Instant, segment: Vec<u8>) {
        let room = self.room(now);
        assert!((1..=room).contains(&segment.len()), "a segment of {} into {room}", segment.len());
        let acknowledged = self.receiver.piggyback();
        let connection = self.connection;
        let frame = self.sender.send(now, segment, connection, acknowledged);
        self.counters.data_sent += 1;
        self.frames.push_back(frame);
    }

    /// Identifier of the current or last connection.
    pub fn connection(&self) -> u32 {
        self.connection
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The smoothed round trip; `None` before the first measurement.
    pub fn round_trip(&self) -> Option<Duration> {
        self.sender.round_trip()
    }

    /// The congestion window in bytes on the wire, if there is one.
    pub fn window(&self) -> Option<u64> {
        self.sender.window()
    }

    /// Unacknowledged data frames, in bytes on the wire.
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Number of frames queued for the network.
    pub fn queued(&self) -> usize {
        self.frames.len()
    }

    /// Whether no frame is queued or unacknowledged.
    pub fn is_quiet(&self) -> bool {
        !matches!(self.state, State::Opening { .. })
            && self.sender.is_empty()
            && self.frames.is_empty()
    }
}

/// The answer of a station that has no endpoint for a received frame: a Close
/// with `reason`. `None` for a Close, an Accept and malformed frames.
pub fn refuse(received: &[u8], reason: Reason) -> Option<Vec<u8>> {
    let frame = Frame::decode(received).ok()?;
    if matches!(frame.body, Body::Close(_) | Body::Accept(_)) {
        return None;
    }
    Some(unnumbered(frame.connection, Body::Close(reason)))
}

/// A frame without a sequence number.
fn unnumbered(connection: u32, body: Body<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Frame { connection, acknowledged: Sequence::default(), body }.encode(&mut out);
    out
}
