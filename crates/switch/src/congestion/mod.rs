//! What lets frames go: a rate limit, or a controller that looks at delay and
//! loss. The carrier asks before each frame; what may not go waits in
//! [`crate::aggregate`], where it can still be aggregated (NEC, "End-to-End
//! Adaptive Packet Aggregation", Hot Interconnects 2014, "Proposed Method").
//!
//! Bytes are those of the wire: payload, header, FCS, preamble and gap.

mod rate;
mod swift;
#[cfg(test)]
mod tests;
mod words;

pub use rate::{Rate, RateLimit};
pub use swift::{Swift, SwiftConfig, Target};
pub use words::UnknownCongestion;

use wire::{Duration, Instant};

/// Which control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Config {
    /// None but the window of the receiver: a network of one's own.
    #[default]
    None,
    /// A fixed rate of bytes of wire.
    Rate(Rate),
    /// Delay and loss decide.
    Swift(SwiftConfig),
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Bytes of wire that it acknowledges for the first time.
    pub bytes: u64,
    /// Frames of these.
    pub frames: u32,
    /// A round trip measured, with the bytes of wire of the frame that made
    /// it.
    pub round_trip: Option<(Duration, u64)>,
    /// Whether the window held the sender back: one that had nothing to send
    /// has learnt nothing about a larger window.
    pub limited: bool,
}

/// The control of one connection.
#[derive(Clone, Debug)]
pub struct Controller {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    None,
    Rate(RateLimit),
    Swift(Swift),
}

impl Controller {
    /// For frames of at most `frame` bytes of wire.
    pub fn new(config: Config, frame: u64) -> Self {
        let kind = match config {
            Config::None => Kind::None,
            Config::Rate(rate) => Kind::Rate(RateLimit::new(rate, frame)),
            Config::Swift(swift) => Kind::Swift(Swift::new(swift, frame)),
        };
        Self { kind }
    }

    /// Whether a frame of `bytes` may go now, when `in_flight` are on the way.
    pub fn may_send(&self, now: Instant, in_flight: u64, bytes: u64) -> bool {
        match &self.kind {
            Kind::None => true,
            Kind::Rate(limit) => limit.may_send(now),
            Kind::Swift(swift) => swift.may_send(now, in_flight, bytes),
        }
    }

    /// Before this time nothing may go, whatever is acknowledged.
    pub fn not_before(&self) -> Instant {
        match &self.kind {
            Kind::None => Instant::ZERO,
            Kind::Rate(limit) => limit.not_before(),
            Kind::Swift(swift) => swift.not_before(),
        }
    }

    /// A frame went, of whatever kind.
    pub fn sent(&mut self, now: Instant, bytes: u64, data: bool) {
        match &mut self.kind {
            Kind::None => {}
            Kind::Rate(limit) => limit.sent(now, bytes),
            Kind::Swift(swift) if data => swift.sent(now, bytes),
            Kind::Swift(_) => {}
        }
    }

    /// Frames were acknowledged.
    pub fn acknowledged(&mut self, now: Instant, what: Acknowledged) {
        if let Kind::Swift(swift) = &mut self.kind {
            swift.acknowledged(now, what);
        }
    }

    /// A frame was lost.
    pub fn lost(&mut self, now: Instant) {
        if let Kind::Swift(swift) = &mut self.kind {
            swift.lost(now);
        }
    }

    /// Nothing was acknowledged for a retransmission timeout, for the
    /// `count`th time in a row.
    pub fn timed_out(&mut self, now: Instant, count: u32) {
        if let Kind::Swift(swift) = &mut self.kind {
            swift.timed_out(now, count);
        }
    }

    /// Bytes of wire that may be on the way, if that is bounded.
    pub fn window(&self) -> Option<u64> {
        match &self.kind {
            Kind::Swift(swift) => Some(swift.window()),
            _ => None,
        }
    }
}
