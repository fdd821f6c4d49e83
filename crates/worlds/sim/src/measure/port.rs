//! Changes at a port, for diagrams.

use crate::ethernet::Transmission;
use crate::ethernet::port::{Resume, Suspend};
use wire::{Duration, Instant};

/// The state of a port's class after a change.
#[derive(Clone, Copy, Debug)]
pub struct PortSample<'a> {
    /// The class, 0 to 7.
    pub class: usize,
    /// The change.
    pub change: PortChange<'a>,
    /// Frames in the queue of the class.
    pub frames: usize,
    /// Bytes in the queue of the class, header to FCS.
    pub bytes: usize,
    /// The credit of the class in picobits since the last sample. There is a point at each change
    /// of the slope; a jump has a point before and one after it. The credit is linear in between.
    /// Empty if the class has no credit-based shaper.
    pub credit: &'a [(Instant, i128)],
}

/// A change at a class of a port.
#[derive(Clone, Copy, Debug)]
pub enum PortChange<'a> {
    /// Frames were added to the queue, or dropped from it.
    Queue,
    /// This number of frames was dropped because the queue was full.
    Dropped(u64),
    /// A frame, or its first fragment, starts. Packets between MACs are not shown.
    Started {
        /// The frame; `end` applies unless the frame is interrupted.
        sent: &'a Transmission,
        /// Time for which the frame waited at this port, including for its gate.
        waited: Duration,
    },
    /// The preemptable frame on the line is interrupted.
    Suspended(Suspend),
    /// The interrupted frame continues.
    Resumed(Resume),
}
