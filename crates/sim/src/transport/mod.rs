//! What carries a link's byte stream between two nodes.

mod pipe;
mod stream;

pub(crate) use pipe::Pipe;
pub use pipe::PipeConfig;
pub(crate) use stream::Stream;

use crate::measure::{Load, Segment};
use bytes::Bytes;
use wire::Instant;

/// How the stream of one link is carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportConfig {
    /// A wire of its own: rate and latency, no protocol, no loss.
    Pipe(PipeConfig),
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Host = 0,
    Device = 1,
}

/// Bytes that came, with the way of those that came last: when each step
/// ended.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub bytes: Bytes,
    pub way: Vec<(Instant, Segment)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Transport {
    Pipe(Box<Pipe>),
}

impl Transport {
    pub fn new(config: &TransportConfig) -> Self {
        match config {
            TransportConfig::Pipe(pipe) => Self::Pipe(Box::new(Pipe::new(*pipe))),
        }
    }

    /// Bytes that `end` may send now.
    pub fn room(&self, now: Instant, end: End) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.room(now, end),
        }
    }

    /// Sends bytes for which there is room.
    pub fn send(&mut self, now: Instant, end: End, bytes: Vec<u8>) {
        match self {
            Self::Pipe(pipe) => pipe.send(now, end, bytes.into()),
        }
    }

    /// What has arrived at `end`.
    pub fn receive(&mut self, now: Instant, end: End) -> Option<Arrived> {
        match self {
            Self::Pipe(pipe) => pipe.receive(now, end),
        }
    }

    /// When `end` should look again: something arrives, or there is room.
    pub fn next(&self, now: Instant, end: End) -> Option<Instant> {
        match self {
            Self::Pipe(pipe) => pipe.next(now, end),
        }
    }

    /// When something arrives at `end`.
    pub fn next_arrival(&self, end: End) -> Option<Instant> {
        match self {
            Self::Pipe(pipe) => pipe.next_arrival(end),
        }
    }

    /// What `end` has sent.
    pub fn load(&self, end: End) -> Option<Load> {
        match self {
            Self::Pipe(pipe) => Some(pipe.load(end)),
        }
    }
}
