//! A protocol analyser at the root port: where the brief measures.

use crate::attached::Attached;
use crate::clock::Clock;
use crate::trace::Tracer;
use pcie::{Function, Input, Output, Ready, Target};
use wire::Instant;
use wire::tlp::Tlp;
use wire::trace::Tap;

/// One packet as it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it passed.
    pub at: Instant,
    /// Towards the root complex.
    pub up: bool,
    /// What passed.
    pub tlp: Tlp,
}

/// Records what passes between the root port and what is attached: packets
/// while it is armed, and all into a trace.
pub struct Probe<A> {
    pub(super) inner: A,
    clock: Clock,
    records: Vec<Record>,
    room: usize,
    tracer: Tracer,
}

impl<A: Attached> Probe<A> {
    pub(super) fn new(inner: A, clock: Clock) -> Self {
        let tracer = inner.tracer();
        Self { inner, clock, records: Vec::new(), room: 0, tracer }
    }

    /// Records up to `packets` from now on, in place of what it holds.
    pub fn arm(&mut self, packets: usize) {
        self.records = Vec::with_capacity(packets.min(1 << 16));
        self.room = packets;
    }

    /// Stops, and yields what was recorded.
    pub fn take(&mut self) -> Vec<Record> {
        self.room = 0;
        std::mem::take(&mut self.records)
    }

    /// Whether everything since [`arm`](Self::arm) is there.
    pub fn is_full(&self) -> bool {
        self.room == 0
    }

    /// As [`Tracer::tick`].
    pub(super) fn tick(&self, now: Instant, idle: bool) -> Option<Instant> {
        self.tracer.tick(now, idle)
    }

    fn record(&mut self, up: bool, tlp: &Tlp) {
        self.tracer.tlp(Tap::ROOT_PORT, up, tlp);
        if self.room > 0 {
            self.room -= 1;
            self.records.push(Record { at: self.clock.now(), up, tlp: tlp.clone() });
        }
    }
}

impl<A: Attached> Function for Probe<A> {
    fn handle(&mut self, now: Instant, input: Input) {
        if let Input::Tlp(tlp) = &input {
            self.record(false, tlp);
        }
        self.inner.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.inner.poll(now, ready);
        if let Output::Tlp(tlp) = &output {
            self.record(true, tlp);
        }
        output
    }

    fn ready(&self) -> Ready {
        self.inner.ready()
    }

    fn lane(&self, target: Target) -> usize {
        self.inner.lane(target)
    }

    fn lane_ready(&self, lane: usize) -> Ready {
        self.inner.lane_ready(lane)
    }
}
