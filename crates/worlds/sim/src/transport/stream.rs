//! The positions of TLPs in one direction of a link's byte streams, to measure their latency.

use crate::kernel::pop_if;
use crate::measure::{Journeys, Stage};
use std::collections::VecDeque;
use switch::tunnel::MAX_PATHS;
use wire::Instant;
use wire::frame::{FrameReport, Kind};
use wire::tlp::TraceId;

/// One direction of a link.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    lanes: [Lane; MAX_PATHS],
    /// Number of frames that carried TLPs, and number of these TLPs, copies included.
    pub frames: u64,
    pub tlps: u64,
}

/// The byte stream of one path.
#[derive(Debug, Default)]
struct Lane {
    /// TLPs in flight.
    sent: VecDeque<InFlight>,
    received: u64,
}

#[derive(Debug)]
struct InFlight {
    trace_id: TraceId,
    /// The offset of the end of the TLP in the stream.
    end: u64,
    /// Whether the other path has delivered the TLP.
    arrived: bool,
}

impl Stream {
    /// Records the TLPs of a frame that leaves the tunnel over a path.
    pub(crate) fn transmitted(
        &mut self,
        now: Instant,
        lane: usize,
        frame: &FrameReport,
        journeys: &mut Journeys,
    ) {
        self.frames += u64::from(frame.header.kind == Kind::Tlps);
        self.tlps += frame.trace_ids.len() as u64;
        for (trace_id, end) in &frame.trace_ids {
            // A copy that follows changes nothing for the first one.
            if self.copy_of(lane, *trace_id).is_none() {
                journeys.advance(*trace_id, now, Stage::TunnelQueue);
            }
            let (trace_id, end) = (*trace_id, *end);
            self.lanes[lane].sent.push_back(InFlight { trace_id, end, arrived: false });
        }
    }

    /// The same TLP in flight on another path than `lane`.
    fn copy_of(&mut self, lane: usize, trace_id: TraceId) -> Option<&mut InFlight> {
        let others = self.lanes.iter_mut().enumerate().filter(|(other, _)| *other != lane);
        others.flat_map(|(_, other)| &mut other.sent).find(|copy| copy.trace_id == trace_id)
    }

    /// Counts `bytes` received over a path.
    pub(crate) fn received(&mut self, lane: usize, bytes: usize) {
        self.lanes[lane].received += bytes as u64;
    }

    /// The trace ID of the next TLP that has been received completely over a path. `stages` are the
    /// stages of the bytes that completed the TLP, until `now`.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        lane: usize,
        stages: &[(Instant, Stage)],
        journeys: &mut Journeys,
    ) -> Option<TraceId> {
        let Lane { sent, received } = &mut self.lanes[lane];
        let InFlight { trace_id, arrived, .. } = pop_if(sent, |tlp| tlp.end <= *received)?;
        if arrived {
            return Some(trace_id);
        }
        if let Some(copy) = self.copy_of(lane, trace_id) {
            copy.arrived = true;
        }
        for (at, stage) in stages {
            journeys.advance(trace_id, *at, *stage);
        }
        let carrier = stages.first().is_some_and(|(_, first)| *first == Stage::Carrier);
        journeys.advance(trace_id, now, if carrier { Stage::Carrier } else { Stage::Tcp });
        Some(trace_id)
    }

    /// Discards the TLPs in flight on a path whose connection ended. If the session `goes_on`, they
    /// will be sent again.
    pub(crate) fn clear(&mut self, lane: usize, journeys: &mut Journeys, goes_on: bool) {
        let Lane { sent, received } = &mut self.lanes[lane];
        let lost = sent.drain(..).filter(|_| !goes_on);
        lost.for_each(|tlp| journeys.end(tlp.trace_id));
        *received = 0;
    }
}
