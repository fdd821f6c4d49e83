//! One end of a link: a byte stream that is a frame stream that is two
//! directions of TLPs under credit.
//!
//! A state machine: [`Tunnel::handle`], then [`Tunnel::poll`] until it yields
//! [`Output::Timeout`]. TLPs go in by [`Tunnel::push`] and come out by
//! [`Tunnel::pop`], which is what returns credits to the far side.

mod cause;
mod inbound;
mod outbound;
mod receiver;
mod resets;
#[cfg(test)]
mod tests;

use crate::aggregate::{Aggregate, Policy};
use bytes::{Bytes, BytesMut};
pub use cause::Cause;
use pcie::Ready;
use receiver::Receiver;
use resets::{Asked, Wanted};
use std::collections::VecDeque;
use std::fmt;
use wire::frame::{self, Control, Grant, Hello, Kind, Moved, Reject, Role};
use wire::tlp::{Class, Tlp};
use wire::{Duration, Instant};

/// What one end of a link decides.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which end this is.
    pub role: Role,
    /// Largest TLP payload taken, in bytes: a power of two, 128 to 4096.
    pub max_payload: u16,
    /// A number that is new with every start of the process.
    pub instance: u64,
    /// How much the far side may have sent that is not consumed, by class.
    pub window: [Grant; 3],
    /// Sends something at least this often.
    pub keepalive: Duration,
    /// Gives the link up when nothing came for this long. Below the root
    /// complex's completion timeout.
    pub loss_limit: Duration,
    /// Bytes of payload in one frame at most.
    pub max_frame: usize,
    /// When TLPs that wait leave.
    pub aggregation: Policy,
    /// Bytes that the transport's encapsulation adds to each TLP; they count
    /// against a frame's room. Ours add none.
    pub tlp_overhead: usize,
    /// The group that a host belongs to; 0: none. Devices may be moved from one
    /// to another.
    pub group: u16,
}

impl Settings {
    /// For one end: 1024 TLPs and 1 MiB a class, keepalive every 100 ms, link
    /// lost after 800 ms.
    pub fn new(role: Role, instance: u64) -> Self {
        let bulk = Grant { headers: 1024, data: (1 << 20) / 16 };
        Self {
            role,
            max_payload: 4096,
            instance,
            window: [bulk, Grant { headers: 1024, data: 1024 }, bulk],
            keepalive: Duration::from_ms(100),
            loss_limit: Duration::from_ms(800),
            max_frame: 32 << 10,
            aggregation: Policy::Adaptive,
            tlp_overhead: 0,
            group: 0,
        }
    }
}

/// What happens to a link.
#[derive(Clone, Debug)]
pub enum Input {
    /// The network connection stands.
    Connected,
    /// Bytes of the stream, in order, cut anywhere.
    Received(Bytes),
    /// The network takes this many bytes now.
    CanTransmit {
        /// Bytes.
        bytes: usize,
    },
    /// The network connection is gone.
    Disconnected,
}

/// What a link wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes for the network: whole frames; a single one with
    /// [`Policy::PerTlp`].
    Transmit(Vec<u8>),
    /// The greeting is over: TLPs flow.
    Up(Hello),
    /// The far side wants a hot reset; answer with [`Tunnel::reset_done`].
    Reset,
    /// An echo came back.
    EchoReply(u64),
    /// A probe wants the device to belong to this group; answer with
    /// [`Tunnel::answer_move`].
    Move(u16),
    /// The answer to [`Tunnel::move_to`].
    Moved(Moved),
    /// The link is down; close the connection. Queued TLPs are gone.
    Down(Cause),
    /// Nothing more now; call again after an input or at this time.
    Timeout(Option<Instant>),
}

/// Control frames that wait to be sent, and questions that wait for an answer,
/// before the far side is too fast, or too slow.
const MOST_WAITING: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection.
    Idle,
    /// Connected, the far side's greeting is awaited.
    Greeting,
    /// TLPs flow.
    Up,
    /// Given up; waits for the connection to go.
    Closing,
}

/// Counters of one end, over all connections that it had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often the link came up.
    pub connections: u64,
    /// TLP frames sent.
    pub frames_sent: u64,
    /// TLPs sent.
    pub tlps_sent: u64,
    /// Bytes sent, headers included.
    pub bytes_sent: u64,
    /// TLP frames received.
    pub frames_received: u64,
    /// TLPs received.
    pub tlps_received: u64,
    /// Bytes received, headers included.
    pub bytes_received: u64,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sent {} TLPs in {} frames, {} bytes; received {} TLPs in {} frames, {} bytes; \
             connections: {}",
            self.tlps_sent,
            self.frames_sent,
            self.bytes_sent,
            self.tlps_received,
            self.frames_received,
            self.bytes_received,
            self.connections
        )
    }
}

/// See the module.
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    state: State,
    /// The far side measures, and moves devices; it has no TLPs.
    probed: bool,
    stream: BytesMut,
    queue: Aggregate,
    receiver: Receiver,
    /// Control frames to send.
    control: VecDeque<Control>,
    outputs: VecDeque<Output>,
    room: usize,
    next_sequence: u32,
    expected: u32,
    acknowledged: u32,
    unacknowledged_frames: u32,
    last_sent: Instant,
    last_heard: Instant,
    /// Since when posted requests or completions wait and none leaves.
    stuck: Option<Instant>,
    /// Resets that this end asked for: TLPs of before are dropped until then.
    asked: Asked,
    /// Resets that the far side wants: what it sent behind one waits until it
    /// is done.
    wanted: Wanted,
    /// Moves asked for that have no answer yet.
    moves: u32,
    /// Posted TLPs that waited to be sent when the link went down.
    posted_lost: u64,
    counters: Counters,
}

impl Tunnel {
    /// An end without a connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Idle,
            probed: false,
            stream: BytesMut::new(),
            queue: Aggregate::default(),
            receiver: Receiver::new(settings.window),
            control: VecDeque::new(),
            outputs: VecDeque::new(),
            room: 0,
            next_sequence: 0,
            expected: 0,
            acknowledged: 0,
            unacknowledged_frames: 0,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            stuck: None,
            asked: Asked::default(),
            wanted: Wanted::default(),
            moves: 0,
            posted_lost: 0,
            counters: Counters::default(),
        }
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Connected => self.connected(now),
            Input::Received(bytes) => {
                self.last_heard = now;
                self.counters.bytes_received += bytes.len() as u64;
                if let Err(cause) = self.received(bytes) {
                    self.close(cause);
                }
            }
            Input::CanTransmit { bytes } => self.room = bytes,
            Input::Disconnected => self.disconnected(),
        }
    }

    fn connected(&mut self, now: Instant) {
        *self = Self { counters: self.counters, ..Self::new(self.settings) };
        self.state = State::Greeting;
        self.last_heard = now;
        self.last_sent = now;
        // The device answers; the host and probes speak first.
        if self.settings.role != Role::Device {
            self.greet();
        }
    }

    fn greet(&mut self) {
        self.control.push_back(Control::Hello(Hello {
            version: frame::VERSION,
            role: self.settings.role,
            max_payload: self.settings.max_payload,
            group: if self.settings.role == Role::Host { self.settings.group } else { 0 },
            instance: self.settings.instance,
            credits: self.settings.window,
        }));
    }

    fn disconnected(&mut self) {
        if matches!(self.state, State::Greeting | State::Up) {
            self.close(Cause::Disconnected);
        }
        self.state = State::Idle;
        self.room = 0;
    }

    /// Gives the link up: what still has to be sent is sent, nothing more is
    /// taken.
    fn close(&mut self, cause: Cause) {
        if !matches!(self.state, State::Greeting | State::Up) {
            return;
        }
        self.state = State::Closing;
        self.posted_lost = self.queue.clear() as u64;
        self.receiver.clear();
        self.outputs.push_back(Output::Down(cause));
    }

    /// Whether TLPs flow.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Which classes of TLPs [`push`](Self::push) takes now; none while the
    /// link is down.
    pub fn ready(&self) -> Ready {
        if self.is_up() { self.queue.ready() } else { Ready::NONE }
    }

    /// Queues a TLP for the far side. Dropped if the link is down.
    pub fn push(&mut self, tlp: Tlp) {
        if self.is_up() {
            self.queue.push(tlp);
        }
    }

    /// Whether TLPs wait for [`pop`](Self::pop).
    pub fn has_received(&self) -> bool {
        !self.receiver.is_empty()
    }

    /// The first received TLP of a class.
    pub fn front(&self, class: Class) -> Option<&Tlp> {
        self.receiver.front(class)
    }

    /// Takes a received TLP of a class in `ready`, in PCIe order; its credits
    /// go back to the far side. Nothing while a reset that the far side wants
    /// is not done.
    pub fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        if self.wanted.is_pending() { None } else { self.receiver.pop(ready) }
    }

    /// Asks the far side for a hot reset; everything queued is forgotten, and
    /// what the far side sent before it was reset will be too.
    pub fn reset(&mut self) {
        if self.is_up() {
            self.queue.clear();
            self.receiver.clear();
            // One that has not left yet serves for both.
            if !self.control.iter().any(|control| control.kind() == Kind::Reset) {
                self.control.push_back(Control::Reset(self.asked.next()));
            }
        }
    }

    /// The reset that [`Output::Reset`] asked for is done.
    pub fn reset_done(&mut self) {
        if self.is_up() {
            self.queue.clear();
            if let Some(number) = self.wanted.done() {
                self.send_latest(Control::ResetDone(number));
            }
        }
    }

    /// Queues a control frame that makes those of its kind which still wait
    /// needless: a far side that does not read cannot make the queue grow.
    fn send_latest(&mut self, control: Control) {
        self.control.retain(|waiting| waiting.kind() != control.kind());
        self.control.push_back(control);
    }

    /// Sends an echo request, if the link is up and the far side still reads.
    pub fn echo(&mut self, number: u64) {
        if self.is_up() && self.control.len() < MOST_WAITING {
            self.control.push_back(Control::Echo(number));
        }
    }

    /// Asks a device to belong to a group from now on, if the link is up; an
    /// [`Output::Moved`] follows. Only a probe may.
    pub fn move_to(&mut self, group: u16) {
        if self.is_up() {
            self.moves += 1;
            self.control.push_back(Control::Move(group));
        }
    }

    /// Answers an [`Output::Move`].
    pub fn answer_move(&mut self, moved: Moved) {
        if self.is_up() {
            self.control.push_back(Control::Moved(moved));
        }
    }

    /// Tells the far side that the link ends on purpose.
    pub fn goodbye(&mut self) {
        if self.is_up() {
            self.control.push_back(Control::Goodbye);
        }
    }

    /// Turns the far side away, whatever it says: this end is in use.
    pub fn turn_away(&mut self, reason: Reject) {
        if self.state == State::Greeting {
            self.control.push_back(Control::Reject { reason, version: frame::VERSION });
            self.close(Cause::Rejected(reason));
        }
    }

    /// Whether each [`Output::Transmit`] is to have segments of its own
    /// ([`Policy::PerTlp`]).
    pub fn is_record_by_record(&self) -> bool {
        self.settings.aggregation == Policy::PerTlp
    }

    /// How many posted TLPs waited to be sent when the link went down; 0 when
    /// asked again.
    pub fn take_posted_lost(&mut self) -> u64 {
        std::mem::take(&mut self.posted_lost)
    }

    /// What was carried on all connections so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The queue of TLPs to send.
    pub fn queue(&self) -> &Aggregate {
        &self.queue
    }
}
