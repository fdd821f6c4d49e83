//! Counters of a port.

use tsn::QUEUES;
use wire::Duration;

/// Counters of a port. `offered` = `sent` + `merged` + all drops + the frames that still wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the port.
    pub offered: u64,
    /// Transmissions begun.
    pub sent: u64,
    /// Bytes sent from preamble to FCS, including the overhead of interruptions.
    pub sent_bytes: u64,
    /// Frames dropped because their queue was full, by queue.
    pub full: [u64; QUEUES],
    /// Frames dropped because no window of their queue is long enough.
    pub never_fits: u64,
    /// Frames dropped because they are longer than their class permits.
    pub oversize: u64,
    /// Frames dropped because asynchronous traffic shaping would have delayed them too long.
    pub late_eligible: u64,
    /// Time during which the line was busy, without gaps.
    pub busy: Duration,
    /// Frames merged into the previous frame; not in `sent`.
    pub merged: u64,
    /// Verify and respond packets sent; not in `sent`.
    pub control: u64,
    /// Number of interruptions of frames.
    pub suspended: u64,
    /// Fragments that were still on the line when their gate closed, after an interruption
    /// (TransmissionOverrun, IEEE 802.1Q-2022, 12.29.1.1.2).
    pub overrun: u64,
}

impl Counters {
    /// Frames dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.full.iter().sum::<u64>() + self.never_fits + self.oversize + self.late_eligible
    }
}
