//! A station's processor: one thread that does all work of a live node in turn.

use crate::ethernet::frame::HEADER;
use crate::ethernet::{Frame, Mac};
use crate::tcp::Segment;
use wire::raw::{Body, ETHERTYPE};
use wire::tlp::Tlp;
use wire::{Duration, Instant};
use workload::Cpu;

/// What the work of a station's processor costs, in addition to the delays of interface, host
/// software and drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorConfig {
    /// Picoseconds per payload byte of a sent or received frame.
    pub copy: u64,
    /// Time of each further frame of a connection that the station sends or receives in one turn.
    pub frame: Duration,
    /// Time from the arrival of a frame at an idle processor to the start of its turn.
    pub wake: Duration,
    /// Time of each TLP that crosses the node.
    pub tlp: Duration,
    /// Time of each packet that continues the run of the previous one ([`wire::tlp::Run`]).
    pub packet: Duration,
}

/// The connection of a frame: addresses and ports.
pub(crate) type Flow = (Mac, Mac, [u16; 2]);

/// A processor. Clones are the same processor.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    config: ProcessorConfig,
    cpu: Cpu,
}

impl Processor {
    pub(crate) fn new(config: ProcessorConfig) -> Self {
        Self { config, cpu: Cpu::default() }
    }

    pub(crate) fn config(&self) -> &ProcessorConfig {
        &self.config
    }

    pub(crate) fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// When the processor is free, if it is busy at `now`.
    pub(crate) fn busy(&self, now: Instant) -> Option<Instant> {
        Some(self.cpu.free_at()).filter(|at| *at > now)
    }

    /// Does work that takes `span` when all earlier work is done. Returns the end.
    pub(crate) fn occupy(&self, now: Instant, span: Duration) -> Instant {
        self.cpu.occupy(now, span)
    }

    /// The time of a frame with `payload` bytes of `flow`. `turn` has the connections of earlier
    /// frames of the same turn; the first frame of a connection takes `first`.
    pub(crate) fn frame(
        &self,
        turn: &mut Vec<Flow>,
        (flow, payload): (Flow, usize),
        first: Duration,
    ) -> Duration {
        let copy = Duration::from_ps(self.config.copy * payload as u64);
        if turn.contains(&flow) {
            return self.config.frame + copy;
        }
        turn.push(flow);
        first + copy
    }
}

/// When work that begins at `now` ends: on the processor when it is free, without one in parallel
/// with other work.
pub(crate) fn after(processor: Option<&Processor>, now: Instant, span: Duration) -> Instant {
    processor.map_or(now + span, |processor| processor.occupy(now, span))
}

/// Connection and payload bytes of a frame; `None` for a pure acknowledgement.
pub(crate) fn load(frame: &Frame) -> Option<(Flow, usize)> {
    let flow = |ports| (frame.source(), frame.destination(), ports);
    if let Some(segment) = Segment::parse(&frame.bytes) {
        let ports = [segment.source_port, segment.destination_port];
        return (!segment.is_pure_ack()).then(|| (flow(ports), segment.length));
    }
    let bytes = frame.bytes.slice(HEADER..);
    if frame.bytes[HEADER - 2..HEADER] == ETHERTYPE.to_be_bytes()
        && let Ok(raw) = wire::raw::Frame::decode(&bytes)
    {
        let ports = [raw.connection as u16, 0];
        return (!matches!(raw.body, Body::Ack { .. })).then(|| (flow(ports), bytes.len()));
    }
    Some((flow([0; 2]), bytes.len()))
}

/// TLPs that cross a node in one direction. They occupy its processor, but nothing inside the node
/// waits for it: frames, host software and firmware do.
#[derive(Debug, Default)]
pub(crate) struct Crossing {
    pub processor: Option<Processor>,
    last: Option<Tlp>,
}

impl Crossing {
    pub(crate) fn pass(&mut self, now: Instant, tlp: &Tlp) {
        let Some(processor) = &self.processor else { return };
        let continues = self.last.as_ref().is_some_and(|last| tlp.continues(last));
        let config = processor.config;
        processor.occupy(now, if continues { config.packet } else { config.tlp });
        self.last = Some(tlp.clone());
    }
}
