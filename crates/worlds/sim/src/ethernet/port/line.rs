//! The line of a port: when it is free, and the interruption of frames (IEEE 802.3-2022, clause
//! 99).

use tsn::preemption::{self, CONTINUATION_PREAMBLE, FragmentSize, MCRC};
use wire::{Duration, Instant};

use super::super::Rate;
use super::super::frame::{GAP, PREAMBLE};

/// A preemptable frame on the line.
#[derive(Clone, Copy, Debug)]
struct OnLine {
    class: usize,
    /// Destination address to FCS.
    length: usize,
    /// Bytes in earlier fragments.
    sent: usize,
    /// When the first bit of this fragment's preamble passes, and when the last bit of the FCS has
    /// passed, unless the frame is interrupted.
    start: Instant,
    end: Instant,
}

/// A partly sent frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    pub class: usize,
    length: usize,
    sent: usize,
}

/// The interruption of a preemptable frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// When the last bit of the fragment's mCRC has passed.
    pub end: Instant,
    /// Bytes of the frame in this fragment, without preamble and mCRC.
    pub bytes: usize,
    /// When the frame would have ended without the interruption.
    pub planned: Instant,
}

/// The continuation of an interrupted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// When the first bit of the fragment's preamble passes.
    pub start: Instant,
    /// When the last bit of the FCS has passed, unless the frame is interrupted again.
    pub end: Instant,
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    rate: Rate,
    free_at: Instant,
    on_line: Option<OnLine>,
    suspended: Option<Suspended>,
}

impl Line {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, free_at: Instant::ZERO, on_line: None, suspended: None }
    }

    /// When the next frame or fragment may start, unless the frame on the line is interrupted.
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Allows no start before `at`.
    pub(super) fn delay(&mut self, at: Instant) {
        self.free_at = self.free_at.max(at);
    }

    /// The interrupted frame.
    pub(super) fn suspended(&self) -> Option<Suspended> {
        self.suspended
    }

    /// Starts a frame of `length` bytes, from destination address to FCS. Returns the end of the
    /// FCS.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        class: usize,
        length: usize,
        preemptable: bool,
    ) -> Instant {
        let end = now + self.rate.duration(PREAMBLE + length);
        self.on_line = preemptable.then_some(OnLine { class, length, sent: 0, start: now, end });
        self.free_at = end + self.rate.duration(GAP);
        end
    }

    /// The first time from `now` on at which the frame on the line can be interrupted; `None` if
    /// the line is free or the rest of the frame is too short.
    pub(super) fn next_cut(&self, now: Instant, fragment: FragmentSize) -> Option<Instant> {
        let on_line = self.on_line.filter(|on_line| now < on_line.end)?;
        let passed = now.since(on_line.start).as_ps().div_ceil(self.rate.ps_per_byte()) as usize;
        let passed = passed.saturating_sub(PREAMBLE);
        let bytes = preemption::split(fragment, on_line.length, on_line.sent, passed)?;
        Some(on_line.start + self.rate.duration(PREAMBLE + bytes))
    }

    /// When an express frame can start after a cut at `cut`.
    pub(super) fn free_after_cut(&self, cut: Instant) -> Instant {
        cut + self.rate.duration(MCRC + GAP)
    }

    /// Interrupts the frame on the line, at a time that [`Self::next_cut`] returned.
    ///
    /// # Panics
    /// If no preemptable frame is on the line.
    pub(super) fn suspend(&mut self, now: Instant) -> (usize, Suspend) {
        let OnLine { class, length, sent, start, end } =
            self.on_line.take().expect("a preemptable frame is on the line");
        let passed = (now.since(start).as_ps() / self.rate.ps_per_byte()) as usize;
        let bytes = passed - PREAMBLE;
        self.suspended = Some(Suspended { class, length, sent: sent + bytes });
        self.free_at = self.free_after_cut(now);
        (class, Suspend { end: now + self.rate.duration(MCRC), bytes, planned: end })
    }

    /// Continues with the interrupted frame.
    ///
    /// # Panics
    /// If no frame is interrupted.
    pub(super) fn resume(&mut self, now: Instant) -> (usize, Resume) {
        let Suspended { class, length, sent } = self.suspended.take().expect("one is interrupted");
        let end = now + self.rate.duration(CONTINUATION_PREAMBLE + length - sent);
        self.on_line = Some(OnLine { class, length, sent, start: now, end });
        self.free_at = end + self.rate.duration(GAP);
        (class, Resume { start: now, end })
    }

    /// Drops the rest of an interrupted frame.
    pub(super) fn clear(&mut self) {
        (self.on_line, self.suspended) = (None, None);
    }

    /// How long `bytes` bytes occupy the line.
    pub(super) fn duration(&self, bytes: usize) -> Duration {
        self.rate.duration(bytes)
    }
}
