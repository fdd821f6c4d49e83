//! Measurement: latencies and their stages, the load of links, and the trait of observers.

mod observer;
mod port;
mod push;
mod stages;
mod track;

pub use nvme::initiator::Op;
pub use observer::{CommandRecord, LinkChange, Observer, Point};
pub use port::{PortChange, PortSample};
pub use push::Pushed;
pub use stages::{Breakdown, STAGES, Stage};
pub(crate) use stages::{Journey, Journeys};
pub use stats::{Latency, Summary};
pub(crate) use track::Tracker;

use wire::Duration;

/// The load of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Time during which the wire was busy.
    pub busy: Duration,
    /// Number of packets or frames.
    pub packets: u64,
    /// Bytes on the wire, framing included.
    pub bytes: u64,
}

impl std::ops::Sub for Load {
    type Output = Self;

    /// The load since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            busy: self.busy - before.busy,
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Statistics of the queues of one port over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Frames given to the port.
    pub offered: u64,
    /// Sum of the waiting times of all frames, in picoseconds. Frames that still wait count until
    /// the end.
    pub frame_ps: u128,
    /// Frames still waiting at the end.
    pub left: u64,
    /// Dropped frames: the queue at the port or in the station was full, no window of the gate was
    /// long enough, the frame was too long for its class, or asynchronous shaping would have
    /// delayed it too long.
    pub dropped: u64,
    /// Number of interruptions of frames by express frames.
    pub suspended: u64,
    /// Fragments that were still on the line when their gate closed, after an interruption.
    pub overrun: u64,
    /// Statistics of each traffic class.
    pub classes: [ClassStats; tsn::QUEUES],
}

/// Statistics of the queue of one class of a port over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// The most frames that waited at once.
    pub most_frames: usize,
    /// The most bytes (header to FCS) that waited at once.
    pub most_bytes: usize,
    /// Frames dropped because the queue was full.
    pub full: u64,
    /// The lowest and the highest credit, in picobits (10^-12 bit); `None` without a credit-based
    /// shaper.
    pub credit: Option<[i128; 2]>,
}

impl QueueStats {
    /// The mean wait of a frame.
    pub fn mean_wait(&self) -> Duration {
        Duration::from_ps((self.frame_ps / u128::from(self.offered.max(1))) as u64)
    }
}

impl Load {
    /// Adds a packet.
    pub(crate) fn add(&mut self, busy: Duration, bytes: usize) {
        self.busy = self.busy + busy;
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Share of `span` during which the wire was busy, in parts per million.
    pub fn utilisation_ppm(&self, span: Duration) -> u64 {
        let span = u128::from(span.as_ps().max(1));
        (u128::from(self.busy.as_ps()) * 1_000_000 / span) as u64
    }
}
