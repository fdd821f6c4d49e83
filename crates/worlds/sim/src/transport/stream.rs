//! The positions of TLPs in one direction of a link's byte stream, to measure their latency.

use crate::kernel::pop_if;
use crate::measure::{Journeys, Stage};
use std::collections::VecDeque;
use wire::Instant;
use wire::frame::{FrameReport, Kind};
use wire::tlp::TraceId;

/// One direction of a link's byte stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// TLPs in flight, each with the offset of its end in the stream.
    sent: VecDeque<(TraceId, u64)>,
    received: u64,
    /// Number of frames that carried TLPs, and number of these TLPs.
    pub frames: u64,
    pub tlps: u64,
}

impl Stream {
    /// Records the TLPs of a frame that leaves the tunnel.
    pub(crate) fn transmitted(
        &mut self,
        now: Instant,
        frame: &FrameReport,
        journeys: &mut Journeys,
    ) {
        self.frames += u64::from(frame.header.kind == Kind::Tlps);
        self.tlps += frame.trace_ids.len() as u64;
        for (trace_id, _) in &frame.trace_ids {
            journeys.advance(*trace_id, now, Stage::TunnelQueue);
        }
        self.sent.extend(&frame.trace_ids);
    }

    /// Counts `bytes` received.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// The trace ID of the next TLP that has been received completely. `stages` are the stages of
    /// the bytes that completed the TLP, until `now`.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        stages: &[(Instant, Stage)],
        journeys: &mut Journeys,
    ) -> Option<TraceId> {
        let (trace_id, _) = pop_if(&mut self.sent, |(_, end)| *end <= self.received)?;
        for (at, stage) in stages {
            journeys.advance(trace_id, *at, *stage);
        }
        let carrier = stages.first().is_some_and(|(_, first)| *first == Stage::Carrier);
        journeys.advance(trace_id, now, if carrier { Stage::Carrier } else { Stage::Tcp });
        Some(trace_id)
    }

    /// Discards the TLPs in flight, because the connection ended. If its session `goes_on`, they
    /// will be sent again.
    pub(crate) fn clear(&mut self, journeys: &mut Journeys, goes_on: bool) {
        let lost = self.sent.drain(..).filter(|_| !goes_on);
        lost.for_each(|(trace_id, _)| journeys.end(trace_id));
        self.received = 0;
    }
}
