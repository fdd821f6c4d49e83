//! A wire of its own for each direction.

use super::{Arrived, End};
use crate::kernel::pop_if;
use crate::measure::{Load, Segment};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// A lossless byte stream with a rate and a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Picoseconds a byte: 8000 at 1 Gb/s.
    pub byte: Duration,
    /// From the last bit sent to its receiver.
    pub latency: Duration,
    /// Bytes of the stream in one packet at most: at least the largest TLP
    /// and 12 bytes.
    pub segment: usize,
    /// Bytes of wire that each packet takes beside.
    pub overhead: usize,
}

#[derive(Debug)]
struct Packet {
    arrives: Instant,
    started: Instant,
    sent: Instant,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct Way {
    free: Instant,
    flying: VecDeque<Packet>,
    load: Load,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pipe {
    config: PipeConfig,
    ways: [Way; 2],
}

impl Pipe {
    pub fn new(config: PipeConfig) -> Self {
        Self { config, ways: Default::default() }
    }

    /// A packet while the wire is idle, nothing while it is busy: what waits
    /// is aggregated by the sender.
    pub fn room(&self, now: Instant, end: End) -> usize {
        if now >= self.ways[end as usize].free { self.config.segment } else { 0 }
    }

    pub fn send(&mut self, now: Instant, end: End, mut bytes: Bytes) {
        let way = &mut self.ways[end as usize];
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(self.config.segment));
            let length = piece.len() + self.config.overhead;
            let span = Duration::from_ps(self.config.byte.as_ps() * length as u64);
            let started = way.free.max(now);
            way.free = started + span;
            way.load.busy = way.load.busy + span;
            way.load.packets += 1;
            way.load.bytes += length as u64;
            let arrives = way.free + self.config.latency;
            way.flying.push_back(Packet { arrives, started, sent: way.free, bytes: piece });
        }
    }

    pub fn receive(&mut self, now: Instant, end: End) -> Option<Arrived> {
        let way = &mut self.ways[1 - end as usize];
        let packet = pop_if(&mut way.flying, |packet| packet.arrives <= now)?;
        let steps = [
            (packet.started, Segment::EgressQueue),
            (packet.sent, Segment::Serialisation),
            (packet.arrives, Segment::Propagation),
        ];
        Some(Arrived::over_pipe(packet.bytes, steps))
    }

    pub fn next_arrival(&self, end: End) -> Option<Instant> {
        self.ways[1 - end as usize].flying.front().map(|packet| packet.arrives)
    }

    pub fn next(&self, now: Instant, end: End) -> Option<Instant> {
        let free = self.ways[end as usize].free;
        let free = (free > now).then_some(free);
        [free, self.next_arrival(end)].into_iter().flatten().min()
    }

    pub fn load(&self, end: End) -> Load {
        self.ways[end as usize].load
    }
}
