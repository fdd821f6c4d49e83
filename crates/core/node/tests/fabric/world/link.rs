//! The byte streams: in order within a direction, with random pieces and delays.

use super::Parent;
use bytes::Bytes;
use node::PathId;
use stats::random::Random;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// The pieces and delays of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Longest piece that arrives at once.
    pub piece: usize,
    /// Shortest and longest delay, in nanoseconds.
    pub delay_ns: (u64, u64),
}

impl Shape {
    /// Whole writes, without delay.
    pub const AT_ONCE: Self = Self { piece: 1 << 20, delay_ns: (0, 0) };
    /// Whole writes, with a delay of one microsecond.
    pub const PLAIN: Self = Self { piece: 1 << 20, delay_ns: (1_000, 1_000) };
    /// Small pieces, each with a delay of its own.
    pub const ROUGH: Self = Self { piece: 97, delay_ns: (100, 50_000) };
}

/// How a far side treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The far side accepts connections.
    Serves,
    /// The far side refuses connections.
    Refuses,
    /// The far side does not answer.
    Silent,
    /// The far side rejects the host, because it serves another host.
    TurnsAway,
}

/// The path of a link, as the switch above it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    None,
    Connecting,
    Open,
    /// The switch was notified that the path is lost, and has not closed it yet.
    Gone,
}

/// One direction.
#[derive(Debug)]
pub struct Pipe {
    pub shape: Shape,
    /// Bytes in transit at which the path accepts no more.
    pub width: usize,
    /// Bytes accepted so far.
    pub taken: usize,
    /// Whether the link accepts and delivers nothing.
    pub stalled: bool,
    pieces: VecDeque<(Instant, Bytes)>,
    under_way: usize,
    /// Changes one byte of the next write, at this index.
    pub spoil: Option<usize>,
    /// A copy of what was sent, if a test needs it.
    pub tapped: Option<Vec<u8>>,
}

impl Pipe {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            width: 64 << 10,
            taken: 0,
            stalled: false,
            pieces: VecDeque::new(),
            under_way: 0,
            spoil: None,
            tapped: None,
        }
    }

    pub fn room(&self) -> usize {
        if self.stalled { 0 } else { self.width.saturating_sub(self.under_way) }
    }

    pub fn send(&mut self, now: Instant, rng: &mut Random, bytes: &[u8]) {
        assert!(!bytes.is_empty() && bytes.len() <= self.room(), "no room");
        let mut bytes = bytes.to_vec();
        if let Some(at) = self.spoil.take() {
            let at = at % bytes.len();
            bytes[at] ^= 0x5a;
        }
        if let Some(tap) = &mut self.tapped {
            tap.extend_from_slice(&bytes);
        }
        self.under_way += bytes.len();
        self.taken += bytes.len();
        let mut bytes = Bytes::from(bytes);
        while !bytes.is_empty() {
            let most = bytes.len().min(self.shape.piece) as u64;
            let piece = bytes.split_to(rng.within(1..=most).max(most / 2 + 1) as usize);
            let (short, long) = self.shape.delay_ns;
            let at = now + Duration::from_ns(rng.within(short..=long));
            let last = self.pieces.back().map_or(at, |(last, _)| *last);
            self.pieces.push_back((at.max(last), piece));
        }
    }

    pub fn arrived(&mut self, now: Instant) -> Option<Bytes> {
        if self.stalled || self.pieces.front()?.0 > now {
            return None;
        }
        let (_, bytes) = self.pieces.pop_front()?;
        self.under_way -= bytes.len();
        Some(bytes)
    }

    pub fn next(&self) -> Option<Instant> {
        if self.stalled { None } else { self.pieces.front().map(|(at, _)| *at) }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.under_way = 0;
    }
}

/// Both directions of one link, and the port that it belongs to.
#[derive(Debug)]
pub struct Link {
    pub parent: Parent,
    pub port: usize,
    pub manner: Manner,
    pub state: State,
    /// The path, until the node below has closed it or was notified of its end.
    pub path: Option<PathId>,
    pub down: Pipe,
    pub up: Pipe,
}

impl Link {
    pub fn new(parent: Parent, port: usize, shape: Shape) -> Self {
        let (down, up) = (Pipe::new(shape), Pipe::new(shape));
        let (manner, state) = (Manner::Serves, State::None);
        Self { parent, port, manner, state, path: None, down, up }
    }

    pub fn clear(&mut self) {
        self.down.clear();
        self.up.clear();
    }

    /// When bytes arrive.
    pub fn timers(&self) -> impl Iterator<Item = Instant> {
        [self.down.next(), self.up.next()].into_iter().flatten()
    }
}
