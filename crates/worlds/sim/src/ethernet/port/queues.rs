//! The frames that wait at a port, by traffic class.

use std::collections::VecDeque;

use tsn::{LocalTime, QUEUES};
use wire::{Duration, Instant};

use super::super::Frame;
use super::config::Class;

/// The most frames made by the node itself that a queue accepts, in addition to its depth.
const OWN_FRAMES: usize = 64;

/// A frame that waits.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub frame: Frame,
    /// Time from preamble to FCS.
    pub duration: Duration,
    /// When the gate alone would have permitted the frame to start.
    pub gate_until: Instant,
    /// The time on the node's clock from which the frame may leave. Frames of a class wait in the
    /// order of this time.
    pub eligible: LocalTime,
    /// Whether the node itself has made the frame.
    pub is_own: bool,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    frames: VecDeque<Queued>,
    bytes: usize,
    /// Number and bytes of frames that the node itself made.
    own: (usize, usize),
    /// The most frames and bytes at once.
    most: (usize, usize),
}

/// The number of queued frames, integrated over time.
#[derive(Clone, Copy, Debug, Default)]
struct Occupancy {
    frames: u64,
    since: Instant,
    frame_ps: u128,
}

impl Occupancy {
    fn change(&mut self, now: Instant, change: i64) {
        self.frame_ps += u128::from(self.frames) * u128::from(now.since(self.since).as_ps());
        self.since = now;
        self.frames = self.frames.checked_add_signed(change).expect("frames are counted");
    }
}

/// The queues of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    queues: [Queue; QUEUES],
    /// Bit n: queue n is not empty.
    waiting: u8,
    occupancy: Occupancy,
}

impl Queues {
    /// Bit n: queue n is not empty.
    pub(super) fn waiting(&self) -> u8 {
        self.waiting
    }

    /// Frames in all queues.
    pub(super) fn frames(&self) -> usize {
        self.occupancy.frames as usize
    }

    pub(super) fn frames_of(&self, class: usize) -> usize {
        self.queues[class].frames.len()
    }

    /// Frames that are eligible when the node's clock shows `at`.
    pub(super) fn eligible_of(&self, class: usize, at: LocalTime) -> usize {
        self.queues[class].frames.partition_point(|queued| queued.eligible <= at)
    }

    /// Bytes from header to FCS.
    pub(super) fn bytes_of(&self, class: usize) -> usize {
        self.queues[class].bytes
    }

    /// The most frames and bytes of a class at once.
    pub(super) fn most_of(&self, class: usize) -> (usize, usize) {
        self.queues[class].most
    }

    /// Frames integrated over time until `now`, in frame picoseconds.
    pub(super) fn occupancy(&self, now: Instant) -> u128 {
        let mut occupancy = self.occupancy;
        occupancy.change(now, 0);
        occupancy.frame_ps
    }

    /// Frames integrated over time until the last change, in frame picoseconds.
    pub(super) fn occupancy_so_far(&self) -> u128 {
        self.occupancy.frame_ps
    }

    /// Whether the queue of `class` with `limits` has room for one more frame of `length` bytes.
    /// Frames that the node itself made use separate room.
    pub(super) fn has_room(
        &self,
        class: usize,
        length: usize,
        is_own: bool,
        limits: &Class,
    ) -> bool {
        let queue = &self.queues[class];
        let (own_frames, own_bytes) = queue.own;
        if is_own {
            return own_frames < OWN_FRAMES;
        }
        queue.frames.len() - own_frames < limits.queue_frames
            && queue.bytes - own_bytes + length <= limits.queue_bytes
    }

    /// Adds a frame after the frames with an earlier or equal eligibility time.
    pub(super) fn put(&mut self, class: usize, now: Instant, queued: Queued) {
        let queue = &mut self.queues[class];
        let length = queued.frame.length();
        queue.bytes += length;
        if queued.is_own {
            queue.own = (queue.own.0 + 1, queue.own.1 + length);
        }
        match queue.frames.back() {
            Some(last) if last.eligible > queued.eligible => {
                let at = queue.frames.partition_point(|other| other.eligible <= queued.eligible);
                queue.frames.insert(at, queued);
            }
            _ => queue.frames.push_back(queued),
        }
        queue.most = (queue.most.0.max(queue.frames.len()), queue.most.1.max(queue.bytes));
        self.occupancy.change(now, 1);
        self.waiting |= 1 << class;
    }

    /// The next frame of a class.
    pub(super) fn head(&self, class: usize) -> Option<&Queued> {
        self.queues[class].frames.front()
    }

    /// Takes the next frame of a class.
    pub(super) fn take(&mut self, class: usize, now: Instant) -> Option<Queued> {
        let queue = &mut self.queues[class];
        let queued = queue.frames.pop_front()?;
        let length = queued.frame.length();
        queue.bytes -= length;
        if queued.is_own {
            queue.own = (queue.own.0 - 1, queue.own.1 - length);
        }
        if queue.frames.is_empty() {
            self.waiting &= !(1 << class);
        }
        self.occupancy.change(now, -1);
        Some(queued)
    }
}
