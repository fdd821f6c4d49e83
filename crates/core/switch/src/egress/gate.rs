//! Gates in front of a line: when a frame may be handed over, so that the transmission ends within
//! a window.
//!
//! The rule is that of IEEE 802.1Q-2022, 8.6.8.4: a frame is not available if there is
//! "insufficient time" before its gate closes. The margin covers a sender that wakes up late. The
//! caller defines the windows and the clock.

use crate::congestion::Rate;
use std::fmt;
use wire::{Duration, Instant};

/// Number of bytes that a frame occupies on the line in addition to header and payload: preamble
/// and start delimiter 8, FCS 4, gap 12 (IEEE 802.3-2022, 3.1.1 and 4.4.2).
const AROUND: u64 = 24;
/// The smallest frame in bytes, without FCS (IEEE 802.3-2022, 4.4.2).
const LEAST: u64 = 60;

/// The windows of a gate.
pub trait Windows {
    /// The first instant, not before `from`, at which a transmission of `duration` may start so
    /// that it ends within a window. `None` if no window is long enough.
    fn earliest_start(&self, from: Instant, duration: Duration) -> Option<Instant>;
}

/// Counters of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounters {
    /// Number of frames handed over.
    pub frames: u64,
    /// Number of these frames that had to wait for a window.
    pub waited: u64,
    /// Number of frames that were handed over too late, so that they ended after their window. The
    /// gate calculates the end from the time after the hand-over and the line rate.
    pub missed: u64,
}

impl fmt::Display for GateCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, waited, missed } = self;
        write!(f, "{frames} frames, {waited} waited for a window, {missed} missed their window")
    }
}

/// The gate of a line, which every frame on it passes.
#[derive(Clone, Debug)]
pub struct Gate {
    rate: Rate,
    margin: Duration,
    /// Time at which the line has sent all frames that were handed over.
    line_free: Instant,
    waits: bool,
    counters: GateCounters,
}

impl Gate {
    /// A gate in front of a line of `rate`. A frame may be handed over only if it ends at least
    /// `margin` before the end of a window.
    pub fn new(rate: Rate, margin: Duration) -> Self {
        let counters = GateCounters::default();
        Self { rate, margin, line_free: Instant::ZERO, waits: false, counters }
    }

    /// The time on the line of a frame with `bytes` bytes of header and payload.
    pub fn duration(&self, bytes: usize) -> Duration {
        self.rate.duration(LEAST.max(bytes as u64) + AROUND)
    }

    /// The length of a window that a frame of `bytes` bytes needs, margin included.
    pub fn needs(&self, bytes: usize) -> Duration {
        self.duration(bytes) + self.margin
    }

    /// `Ok` if a frame of `bytes` bytes may be handed over at `now`. Report the hand-over to
    /// [`sent`](Self::sent).
    ///
    /// # Errors
    /// The time of the next call, in the next window that fits the frame; `None` if no window fits.
    pub fn ask(
        &mut self,
        now: Instant,
        bytes: usize,
        windows: &impl Windows,
    ) -> Result<(), Option<Instant>> {
        let from = now.max(self.line_free);
        match windows.earliest_start(from, self.needs(bytes)) {
            Some(start) if start <= from => Ok(()),
            other => {
                self.waits = true;
                Err(other)
            }
        }
    }

    /// Counts the hand-over of a frame of `bytes` bytes. `after` is the time after the hand-over.
    pub fn sent(&mut self, after: Instant, bytes: usize, windows: &impl Windows) {
        let start = after.max(self.line_free);
        let duration = self.duration(bytes);
        let in_time = windows.earliest_start(start, duration).is_some_and(|at| at <= start);
        self.counters.frames += 1;
        self.counters.waited += u64::from(std::mem::take(&mut self.waits));
        self.counters.missed += u64::from(!in_time);
        self.line_free = start + duration;
    }

    /// Treats the line as idle, because the clock was set.
    pub fn forget(&mut self) {
        self.line_free = Instant::ZERO;
    }

    /// The counters so far.
    pub fn counters(&self) -> GateCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A window of length `open` begins every `cycle`.
    struct Periodic {
        cycle: u64,
        open: u64,
    }

    impl Windows for Periodic {
        fn earliest_start(&self, from: Instant, duration: Duration) -> Option<Instant> {
            let phase = from.as_ps() % self.cycle;
            let fits = phase + duration.as_ps() <= self.open;
            let next = from.as_ps() - phase + self.cycle;
            let start = if fits { from.as_ps() } else { next };
            (duration.as_ps() <= self.open).then(|| Instant::from_ps(start))
        }
    }

    fn rate(bits_per_second: u64) -> Rate {
        Rate { bits_per_second, burst: 1 }
    }

    proptest! {
        /// If the sender is late by at most the margin, no frame is outside a window, and frames do
        /// not overlap on the line.
        #[test]
        fn nothing_is_on_the_line_outside_a_window(
            bits in 10_000_000u64..10_000_000_000,
            margin in 0u64..20_000_000,
            (cycle, share) in (2_000_000_000u64..20_000_000_000, 60u64..=100),
            frames in prop::collection::vec((1usize..=1514, 0u64..=100, 0u64..3_000_000), 1..200),
        ) {
            let windows = Periodic { cycle, open: cycle * share / 100 };
            let mut gate = Gate::new(rate(bits), Duration::from_ps(margin));
            let mut now = Instant::from_ps(cycle / 3);
            let mut free = Instant::ZERO;
            for (bytes, late, pause) in frames {
                now += Duration::from_ps(pause);
                let mut asked = 0;
                while let Err(at) = gate.ask(now, bytes, &windows) {
                    // At 10 Mb/s the longest frame takes 1230.4 us, so a window of 1.2 ms may be
                    // too short.
                    let Some(at) = at else { return Ok(()) };
                    prop_assert!(at > now, "it says the time that it is");
                    now = at;
                    asked += 1;
                    prop_assert!(asked < 3, "one wait leads into a window");
                }
                now += Duration::from_ps(margin * late / 100);
                gate.sent(now, bytes, &windows);
                let start = now.max(free);
                free = start + gate.duration(bytes);
                let phase = start.as_ps() % cycle;
                prop_assert!(phase + gate.duration(bytes).as_ps() <= windows.open);
            }
            prop_assert_eq!(gate.counters().missed, 0);
        }
    }

    #[test]
    fn a_frame_that_no_longer_fits_waits_for_the_next_window() {
        // 1 Gb/s, open for 1 ms of 2 ms, a margin of 10 us. A frame of 1514 bytes takes (1514 + 24)
        // * 8 ns.
        let windows = Periodic { cycle: 2_000_000_000, open: 1_000_000_000 };
        let mut gate = Gate::new(rate(1_000_000_000), Duration::from_us(10));
        assert_eq!(gate.duration(1514), Duration::from_ns(12_304));
        // The smallest frame takes (60 + 24) * 8 ns: 84 bytes on the line.
        assert_eq!(gate.duration(1), Duration::from_ns(672));
        let at = Instant::from_ns;
        assert_eq!(gate.ask(at(1_000_000 - 22_304), 1514, &windows), Ok(()));
        let next = Err(Some(at(2_000_000)));
        assert_eq!(gate.ask(at(1_000_000 - 22_303), 1514, &windows), next);
        assert_eq!(gate.ask(at(1_500_000), 1, &windows), next);
    }

    #[test]
    fn frames_already_handed_over_use_up_the_window() {
        let windows = Periodic { cycle: 2_000_000_000, open: 1_000_000_000 };
        let mut gate = Gate::new(rate(1_000_000_000), Duration::ZERO);
        // 81 frames of 12.304 us take 996.624 us. One more would end after the window.
        for _ in 0..81 {
            assert_eq!(gate.ask(Instant::ZERO, 1514, &windows), Ok(()));
            gate.sent(Instant::ZERO, 1514, &windows);
        }
        let next = Instant::from_ns(2_000_000);
        assert_eq!(gate.ask(Instant::ZERO, 1514, &windows), Err(Some(next)));
        gate.sent(next, 1514, &windows);
        assert_eq!(gate.counters(), GateCounters { frames: 82, waited: 1, missed: 0 });
    }

    #[test]
    fn a_late_hand_over_is_a_miss() {
        let windows = Periodic { cycle: 2_000_000_000, open: 1_000_000_000 };
        let mut gate = Gate::new(rate(1_000_000_000), Duration::from_us(1));
        let late = Instant::from_ns(1_000_000 - 12_303);
        gate.sent(late, 1514, &windows);
        assert_eq!(gate.counters(), GateCounters { frames: 1, waited: 0, missed: 1 });
    }
}
