//! Gates in front of a line: when a frame may be handed over so that it ends within a window.
//!
//! It is the rule of IEEE 802.1Q-2022, 8.6.8.4 (a frame is not available if there is "insufficient
//! time" before its gate closes), applied to a sender that wakes up late. The caller defines the
//! windows and their clock.

use crate::congestion::Rate;
use std::fmt;
use wire::{Duration, Instant};

/// Bytes on the line besides header and payload: preamble and start delimiter 8, FCS 4, gap 12
/// (IEEE 802.3-2022, 3.1.1 and 4.4.2).
const AROUND: u64 = 24;
/// The least frame without its FCS, in bytes (IEEE 802.3-2022, 4.4.2).
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
    /// Frames handed over.
    pub frames: u64,
    /// Of these, frames that had to wait for a window.
    pub waited: u64,
    /// Frames that were handed over so late that they ended after their window. Calculated from the
    /// time after the hand-over and the line rate.
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
    /// When the line will have sent all frames handed over.
    line_free: Instant,
    waits: bool,
    counters: GateCounters,
}

impl Gate {
    /// A gate in front of a line of `rate`. A frame goes only if it would end at least `margin`
    /// before its window does.
    pub fn new(rate: Rate, margin: Duration) -> Self {
        let counters = GateCounters::default();
        Self { rate, margin, line_free: Instant::ZERO, waits: false, counters }
    }

    /// How long `bytes` of header and payload occupy the line.
    pub fn duration(&self, bytes: usize) -> Duration {
        self.rate.duration(LEAST.max(bytes as u64) + AROUND)
    }

    /// The length of a window that a frame of `bytes` needs, margin included.
    pub fn needs(&self, bytes: usize) -> Duration {
        self.duration(bytes) + self.margin
    }

    /// `Ok` if a frame of `bytes` may be handed over at `now`; else when to call again, or `None`
    /// if the frame fits no window. Report the hand-over to [`sent`](Self::sent).
    ///
    /// # Errors
    /// The start of the next window that fits the frame.
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

    /// Notes the hand-over of a frame of `bytes`; `after` is the time after the hand-over.
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
        /// A sender that is late by at most the margin sends nothing outside a window, and the line
        /// never carries two frames at once.
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
                    // A window of 1.2 ms holds the longest frame at 10 Mb/s: 1230.4 us.
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
        // 1 Gb/s, 1 ms of 2 ms open, a margin of 10 us. 1514 bytes take (1514 + 24) * 8 ns.
        let windows = Periodic { cycle: 2_000_000_000, open: 1_000_000_000 };
        let mut gate = Gate::new(rate(1_000_000_000), Duration::from_us(10));
        assert_eq!(gate.duration(1514), Duration::from_ns(12_304));
        // The least frame: (60 + 24) * 8 ns, 84 bytes on the line.
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
        // 81 frames of 12.304 us are 996.624 us; one more would end behind the window.
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
