//! A dedicated wire for each direction of a link.

use super::{Arrived, End};
use crate::kernel::pop_if;
use crate::measure::{Load, Stage};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// A lossless byte stream with a rate and a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Picoseconds per byte: 8000 at 1 Gb/s.
    pub byte: Duration,
    /// Time from sending to receiving the last bit of a packet.
    pub latency: Duration,
    /// The most bytes of the stream in one packet: at least the largest TLP and 12 bytes.
    pub max_packet: usize,
    /// Additional bytes of each packet on the wire.
    pub overhead: usize,
    /// A fixed schedule, if any.
    pub script: Option<Script>,
}

/// A fixed schedule of a pipe: when it accepts how many bytes, and when its connection is lost.
/// Tests compare live nodes with such a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// The pipe accepts bytes only at multiples of this time.
    pub tick: Duration,
    /// Number of bytes that the pipe accepts at each multiple of `tick`.
    pub room: usize,
    /// When the connection is lost, with all packets in flight, and when it can be reopened.
    pub outage: [Instant; 2],
}

#[derive(Debug)]
struct Packet {
    arrives: Instant,
    started: Instant,
    sent: Instant,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct Direction {
    free: Instant,
    in_flight: VecDeque<Packet>,
    load: Load,
    /// The last tick at which bytes were accepted, and their number.
    taken: (Instant, usize),
}

/// A pair of wires, one for each direction.
#[derive(Debug)]
pub struct Pipe {
    config: PipeConfig,
    directions: [Direction; 2],
    /// When each end last started to connect or listen.
    since: [Cell<Instant>; 2],
}

impl Pipe {
    /// An idle wire.
    pub fn new(config: PipeConfig) -> Self {
        Self { config, directions: Default::default(), since: Default::default() }
    }

    /// Whether `end` is connected.
    pub fn is_connected(&self, now: Instant, end: End) -> bool {
        let back = |Script { outage: [from, until], .. }| now < from || now >= until;
        self.config.script.is_none_or(back) && !self.is_closed(now, end)
    }

    /// Whether the connection of `end` is lost.
    pub fn is_closed(&self, now: Instant, end: End) -> bool {
        let since = self.since[end as usize].get();
        self.config.script.is_some_and(|script| since < script.outage[0] && now >= script.outage[0])
    }

    /// Makes `end` connect or listen again.
    pub fn reopen(&self, now: Instant, end: End) {
        self.since[end as usize].set(now);
    }

    /// Bytes that the pipe accepts now: one packet if the wire is idle, otherwise none. With a
    /// script, the script defines the number.
    pub fn room(&self, now: Instant, end: End) -> usize {
        let direction = &self.directions[end as usize];
        match self.config.script {
            _ if now < direction.free => 0,
            None => self.config.max_packet,
            Some(script) if !now.as_ps().is_multiple_of(script.tick.as_ps()) => 0,
            Some(script) if direction.taken.0 == now => script.room - direction.taken.1,
            Some(script) => script.room,
        }
    }

    /// Sends bytes for which there is room.
    pub fn send(&mut self, now: Instant, end: End, mut bytes: Bytes) {
        let direction = &mut self.directions[end as usize];
        let before = if direction.taken.0 == now { direction.taken.1 } else { 0 };
        direction.taken = (now, before + bytes.len());
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(self.config.max_packet));
            let length = piece.len() + self.config.overhead;
            let span = Duration::from_ps(self.config.byte.as_ps() * length as u64);
            let started = direction.free.max(now);
            direction.free = started + span;
            direction.load.add(span, length);
            let sent = direction.free;
            let arrives = sent + self.config.latency;
            direction.in_flight.push_back(Packet { arrives, started, sent, bytes: piece });
        }
    }

    /// The bytes of the next packet that has arrived at `end`.
    pub fn take(&mut self, now: Instant, end: End) -> Option<Bytes> {
        self.receive(now, end).map(|arrived| arrived.bytes)
    }

    pub(crate) fn receive(&mut self, now: Instant, end: End) -> Option<Arrived> {
        let direction = &mut self.directions[1 - end as usize];
        if let Some(lost) =
            self.config.script.map(|script| script.outage[0]).filter(|at| *at <= now)
        {
            direction.in_flight.retain(|packet| packet.started >= lost);
        }
        let packet = pop_if(&mut direction.in_flight, |packet| packet.arrives <= now)?;
        let steps = [
            (packet.started, Stage::EgressQueue),
            (packet.sent, Stage::Serialisation),
            (packet.arrives, Stage::Propagation),
        ];
        Some(Arrived::over_pipe(packet.bytes, steps))
    }

    /// When the next packet arrives at `end`.
    pub fn next_arrival(&self, end: End) -> Option<Instant> {
        self.directions[1 - end as usize].in_flight.front().map(|packet| packet.arrives)
    }

    /// When `end` must be woken: the wire is free, a packet arrives, or the script has a change.
    pub fn next(&self, now: Instant, end: End) -> Option<Instant> {
        let free = self.directions[end as usize].free;
        let free = (free > now).then_some(free);
        let script = self.config.script.map(|script| {
            let tick = script.tick.as_ps();
            let next = Instant::from_ps((now.as_ps() / tick + 1) * tick);
            script.outage.into_iter().filter(|at| *at > now).fold(next, Instant::min)
        });
        [free, script, self.next_arrival(end)].into_iter().flatten().min()
    }

    pub(crate) fn load(&self, end: End) -> Load {
        self.directions[end as usize].load
    }
}
