//! Congestion control: a rate limit, or a congestion window that depends on delay and loss. The
//! carrier checks the congestion control before each frame. TLPs that may not be sent wait in
//! [`crate::aggregate`], where they can still be aggregated (NEC, "End-to-End Adaptive Packet
//! Aggregation", Hot Interconnects 2014, "Proposed Method").
//!
//! Bytes are counted on the wire: payload, header, FCS, preamble and gap.

mod rate;
mod swift;
#[cfg(test)]
mod tests;
mod text;

pub use rate::{Rate, RateLimit};
pub use swift::{Swift, SwiftConfig, Target};
pub use text::UnknownCongestion;

use wire::{Duration, Instant};

/// The congestion control of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Config {
    /// Only the receiver's window limits the sender: for a dedicated network.
    #[default]
    None,
    /// A fixed rate on the wire.
    Rate(Rate),
    /// A congestion window that depends on delay and loss.
    Swift(SwiftConfig),
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Bytes on the wire that are acknowledged for the first time.
    pub bytes: u64,
    /// Frames that are acknowledged for the first time.
    pub frames: u32,
    /// The round-trip time of a frame, and the frame's bytes on the wire.
    pub round_trip: Option<(Duration, u64)>,
    /// Whether the window limited the sender. Otherwise the window does not grow with this
    /// acknowledgement.
    pub window_limited: bool,
}

/// The congestion control of one connection.
#[derive(Clone, Debug)]
pub enum Controller {
    /// As [`Config::None`].
    None,
    /// As [`Config::Rate`].
    Rate(RateLimit),
    /// As [`Config::Swift`].
    Swift(Swift),
}

impl Controller {
    /// A controller for frames of at most `frame` bytes on the wire.
    pub fn new(config: Config, frame: u64) -> Self {
        match config {
            Config::None => Self::None,
            Config::Rate(rate) => Self::Rate(RateLimit::new(rate, frame)),
            Config::Swift(swift) => Self::Swift(Swift::new(swift, frame)),
        }
    }

    /// Whether a frame of `bytes` bytes may be sent now, while `in_flight` bytes are
    /// unacknowledged.
    pub fn may_send(&self, now: Instant, in_flight: u64, bytes: u64) -> bool {
        match self {
            Self::None => true,
            Self::Rate(limit) => limit.may_send(now),
            Self::Swift(swift) => swift.may_send(now, in_flight, bytes),
        }
    }

    /// The earliest time of the next frame, regardless of acknowledgements until then.
    pub fn not_before(&self) -> Instant {
        match self {
            Self::None => Instant::ZERO,
            Self::Rate(limit) => limit.not_before(),
            Self::Swift(swift) => swift.not_before(),
        }
    }

    /// Counts a frame of `bytes` bytes that was sent. `data` states whether it is a data frame.
    pub fn sent(&mut self, now: Instant, bytes: u64, data: bool) {
        match self {
            Self::None => {}
            Self::Rate(limit) => limit.sent(now, bytes),
            Self::Swift(swift) if data => swift.sent(now, bytes),
            Self::Swift(_) => {}
        }
    }

    /// Handles the acknowledgement of frames.
    pub fn acknowledged(&mut self, now: Instant, frames: Acknowledged) {
        if let Self::Swift(swift) = self {
            swift.acknowledged(now, frames);
        }
    }

    /// Handles the loss of a frame.
    pub fn lost(&mut self, now: Instant) {
        if let Self::Swift(swift) = self {
            swift.lost(now);
        }
    }

    /// Handles the `count`th retransmission timeout in a row.
    pub fn timed_out(&mut self, now: Instant, count: u32) {
        if let Self::Swift(swift) = self {
            swift.timed_out(now, count);
        }
    }

    /// The congestion window in bytes on the wire, if there is one.
    pub fn window(&self) -> Option<u64> {
        match self {
            Self::Swift(swift) => Some(swift.window()),
            _ => None,
        }
    }
}
