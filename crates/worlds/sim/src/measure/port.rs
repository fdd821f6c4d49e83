//! What changes at a port, for those who draw it.

use crate::ethernet::Transmission;
use crate::ethernet::port::{Resume, Suspend};
use wire::{Duration, Instant};

/// A class of a port behind a change.
#[derive(Clone, Copy, Debug)]
pub struct PortSample<'a> {
    /// The class, 0 to 7.
    pub class: usize,
    /// What has changed.
    pub change: PortChange<'a>,
    /// Frames in its queue.
    pub frames: usize,
    /// Bytes in its queue, header to FCS.
    pub bytes: usize,
    /// Its credit in picobits since the last sample: when its slope changed, before this change,
    /// and behind it. It is linear in between. Empty if the class has no credit-based shaper.
    pub credit: &'a [(Instant, i128)],
}

/// What has changed at a class of a port.
#[derive(Clone, Copy, Debug)]
pub enum PortChange<'a> {
    /// Frames have come into the queue, or it gave some up.
    Queue,
    /// So many frames were dropped because the queue was full.
    Dropped(u64),
    /// A frame, or its first fragment, starts. Packets between MACs are not shown.
    Started {
        /// The frame, and when it ends if nothing interrupts it.
        sent: &'a Transmission,
        /// How long it had waited here, gates included.
        waited: Duration,
    },
    /// The preemptable frame on the line is interrupted.
    Suspended(Suspend),
    /// It goes on.
    Resumed(Resume),
}
