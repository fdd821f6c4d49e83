//! The latency of a command by stage. The stages sum to exactly the latency, because each step
//! advances one journey.

use wire::tlp::TraceId;
use wire::{Duration, Instant};

wire::named! {
    /// A part of the system in which a command spends time, with its name in tables and documents.
    pub enum Stage {
        /// Host software: submission, interrupt handling, completion.
        HostSoftware "host_software",
        /// The root complex and host memory answer a device's read.
        HostMemory "host_memory",
        /// PCIe links: serialisation, propagation, port pipelines, waiting for the wire or credits.
        Pcie "pcie",
        /// TLPs wait in the tunnel until the network takes them.
        TunnelQueue "tunnel_queue",
        /// TCP: waiting for the window, or for earlier bytes of the stream.
        Tcp "tcp",
        /// Raw Ethernet: waiting for a retransmission, or for earlier parts of the stream.
        Carrier "carrier",
        /// Pipelines of network interfaces.
        Nic "nic",
        /// Frames wait behind other frames.
        EgressQueue "egress_queue",
        /// Frames wait for their gate.
        GateWait "gate_wait",
        /// Frames wait for credit or their eligibility time.
        ShaperWait "shaper_wait",
        /// Frames that express frames interrupt.
        Preempted "preempted",
        /// Bits on the wire.
        Serialisation "serialisation",
        /// Propagation delay of cables.
        Propagation "propagation",
        /// Bridges: forwarding.
        Bridge "bridge",
        /// The controller, from a received TLP to the next sent TLP, including waits for a free DMA
        /// read or for the link.
        Controller "controller",
        /// The drive's firmware.
        Firmware "firmware",
        /// Flash dies, channels and the write buffer.
        Media "media",
        /// From the completion entry in host memory to its interrupt.
        Interrupt "interrupt",
    }
}

/// Number of stages.
pub const STAGES: usize = Stage::ALL.len();

/// Picoseconds by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown([u64; STAGES]);

impl Breakdown {
    /// The time spent in one stage.
    pub const fn get(&self, stage: Stage) -> Duration {
        Duration::from_ps(self.0[stage as usize])
    }

    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        Duration::from_ps(self.0.iter().sum())
    }

    /// Adds time to a stage.
    pub fn add(&mut self, stage: Stage, span: Duration) {
        self.0[stage as usize] += span.as_ps();
    }

    /// Adds another breakdown.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum += part);
    }
}

/// The progress of a TLP or command through the system, with its time by stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Journey {
    pub start: Instant,
    pub last: Instant,
    pub breakdown: Breakdown,
}

impl Journey {
    pub(crate) fn new(now: Instant) -> Self {
        Self { start: now, last: now, breakdown: Breakdown::default() }
    }

    /// Accounts the time since the last step to `stage`. An earlier time changes nothing.
    pub(crate) fn advance(&mut self, to: Instant, stage: Stage) {
        if to > self.last {
            self.breakdown.add(stage, to - self.last);
            self.last = to;
        }
    }

    /// Adds the time until the start of `journey` to the stage `before`, and then appends
    /// `journey`. If `journey` started before the last step, its remaining time also counts as
    /// `before`.
    pub(crate) fn follow(&mut self, journey: &Self, before: Stage) {
        self.advance(journey.start, before);
        if journey.start == self.last {
            self.breakdown.merge(&journey.breakdown);
            self.last = journey.last;
        } else {
            self.advance(journey.last, before);
        }
    }
}

/// The journeys of all TLPs in flight, by trace ID. An unknown trace ID changes nothing.
#[derive(Debug, Default)]
pub(crate) struct Journeys {
    /// Slots: the use count of the slot, which is part of the trace ID, and a journey.
    journeys: Vec<(u32, Journey)>,
    free: Vec<u32>,
}

impl Journeys {
    pub(crate) fn insert(&mut self, journey: Journey) -> TraceId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.journeys.push((0, journey));
            self.journeys.len() as u32 - 1
        });
        let (used, old) = &mut self.journeys[place as usize];
        *old = journey;
        *used = used.wrapping_add(1).max(1);
        TraceId::new(u64::from(*used) << 32 | u64::from(place))
    }

    /// Number of journeys.
    pub(crate) fn in_use(&self) -> usize {
        self.journeys.len() - self.free.len()
    }

    pub(crate) fn advance(&mut self, trace_id: TraceId, to: Instant, stage: Stage) {
        if let Some((_, journey)) = self.get_mut(trace_id) {
            journey.advance(to, stage);
        }
    }

    /// Ends the journey of a TLP.
    pub(crate) fn remove(&mut self, trace_id: TraceId) -> Option<Journey> {
        let (used, journey) = self.get_mut(trace_id)?;
        let journey = *journey;
        *used = used.wrapping_add(1);
        self.free.push(trace_id.bits() as u32);
        Some(journey)
    }

    /// Drops the journey of a discarded TLP.
    pub(crate) fn end(&mut self, trace_id: TraceId) {
        self.remove(trace_id);
    }

    fn get_mut(&mut self, trace_id: TraceId) -> Option<&mut (u32, Journey)> {
        let used = (trace_id.bits() >> 32) as u32;
        self.journeys
            .get_mut(trace_id.bits() as u32 as usize)
            .filter(|(now, _)| used != 0 && *now == used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_sum_to_the_whole_time() {
        let at = Instant::from_ns;
        let mut journey = Journey::new(at(10));
        journey.advance(at(20), Stage::Pcie);
        journey.advance(at(15), Stage::Nic);
        let mut other = Journey::new(at(30));
        other.advance(at(35), Stage::Nic);
        journey.follow(&other, Stage::Controller);
        assert_eq!(journey.breakdown.get(Stage::Controller), Duration::from_ns(10));
        assert_eq!(journey.breakdown.get(Stage::Nic), Duration::from_ns(5));
        // Of a journey that started before the last step, only the end counts.
        let mut early = Journey::new(at(31));
        early.advance(at(40), Stage::Bridge);
        journey.follow(&early, Stage::Interrupt);
        assert_eq!(journey.breakdown.get(Stage::Interrupt), Duration::from_ns(5));
        assert_eq!(journey.breakdown.total(), at(40) - at(10));
        assert_eq!(Stage::ALL.map(|s| s as usize), std::array::from_fn(|i| i));
    }

    #[test]
    fn mark_is_valid_for_one_journey() {
        let at = Instant::from_ns;
        let mut journeys = Journeys::default();
        let first = journeys.insert(Journey::new(at(1)));
        assert_eq!(journeys.remove(first).map(|journey| journey.start), Some(at(1)));
        let second = journeys.insert(Journey::new(at(2)));
        journeys.advance(first, at(9), Stage::Pcie);
        assert!(journeys.remove(first).is_none() && journeys.remove(TraceId::NONE).is_none());
        assert_eq!(journeys.in_use(), 1);
        assert_eq!(journeys.remove(second).map(|journey| journey.last), Some(at(2)));
        assert_eq!(journeys.in_use(), 0);
    }
}
