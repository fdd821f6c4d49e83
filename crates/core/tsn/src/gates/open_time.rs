//! The time that a gate is open within a span, in true time and exact to the picosecond.

use wire::{Duration, Instant};

use super::Gates;
use super::track::{END, Track};
use crate::{Clock, LocalTime};

impl Gates {
    /// The time from `from` to `to` in which the gate of `queue` is open. The last `margin` of
    /// each window does not count (guard band).
    pub fn open_time(
        &self,
        queue: usize,
        from: Instant,
        to: Instant,
        margin: Duration,
    ) -> Duration {
        let mut spans = Spans::new(self, queue, from, margin);
        let mut open = 0;
        while let Some((start, end)) = spans.next() {
            if start >= to {
                break;
            }
            open += end.min(to).since(start).as_ps();
            if spans.walked_a_cycle() {
                let cycles = spans.cycles(self.clock.local(to));
                open += spans.pass(cycles);
            }
        }
        Duration::from_ps(open)
    }

    /// The first instant at which [`Self::open_time`] since `from` is `needed`. `None` if there is
    /// none within the range of the clock (106 days).
    pub fn after_open_time(
        &self,
        queue: usize,
        from: Instant,
        needed: Duration,
        margin: Duration,
    ) -> Option<Instant> {
        if needed == Duration::ZERO {
            return Some(from);
        }
        let mut spans = Spans::new(self, queue, from, margin);
        let mut needed = needed;
        while let Some((start, end)) = spans.next() {
            let open = end.since(start);
            if needed <= open {
                return Some(start + needed);
            }
            needed = needed - open;
            if spans.walked_a_cycle() {
                let most = spans.cycles(END);
                let cycles = spans.cycles_below(needed, most);
                if cycles == most && spans.track.is_last(spans.at) {
                    return None;
                }
                needed = needed - Duration::from_ps(spans.pass(cycles));
            }
        }
        None
    }
}

/// The open spans of a queue from an instant on, minus the margin.
struct Spans<'a> {
    track: Track<'a>,
    clock: Clock,
    margin: Duration,
    from: Instant,
    /// The end of the last window.
    at: LocalTime,
    /// Number of windows since the last skip of whole cycles.
    walked: usize,
}

impl<'a> Spans<'a> {
    fn new(gates: &'a Gates, queue: usize, from: Instant, margin: Duration) -> Self {
        let (track, clock) = (gates.track(queue), gates.clock);
        Self { track, clock, margin, from, at: clock.local(from), walked: 0 }
    }

    /// The next span. It is empty if the margin is longer than the window.
    fn next(&mut self) -> Option<(Instant, Instant)> {
        if self.at == END {
            return None;
        }
        let (opens, closes) = self.track.next(self.at)?;
        (self.at, self.walked) = (closes, self.walked + 1);
        let start = self.clock.global(opens).max(self.from);
        if closes == END {
            return Some((start, Instant::from_ps(u64::MAX)));
        }
        let end = self.clock.global(closes).as_ps().saturating_sub(self.margin.as_ps());
        Some((start, Instant::from_ps(end).max(start)))
    }

    fn walked_a_cycle(&self) -> bool {
        self.at != END && self.walked > self.track.windows_at(self.at).len()
    }

    /// How many cycles repeat from the last window without a change of the list and end before
    /// `before`.
    fn cycles(&self, before: LocalTime) -> u64 {
        self.track.cycles(self.at, before)
    }

    /// Skips cycles; returns the open time within them, in picoseconds.
    fn pass(&mut self, cycles: u64) -> u64 {
        self.walked = 0;
        if cycles == 0 {
            return 0;
        }
        let open = self.open_in(cycles);
        let cycle = self.track.windows_at(self.at).cycle();
        self.at = LocalTime::from_ps(self.at.as_ps() + cycles as i64 * cycle);
        open as u64
    }

    /// The open time within the next `cycles` cycles, in picoseconds.
    fn open_in(&self, cycles: u64) -> u128 {
        let windows = self.track.windows_at(self.at);
        let margin = u128::from(self.margin.as_ps());
        let open = |(opens, closes)| {
            // Rounding makes a window a picosecond longer in some cycles. If the margin equals the
            // length in the other cycles, only this picosecond is open.
            let shortest = self.clock.shortest(closes - opens);
            if margin > shortest {
                return 0;
            }
            let sum = |first| self.clock.sum_of_globals(first, windows.cycle(), cycles);
            sum(closes) - sum(opens) - margin * u128::from(cycles)
        };
        windows.within_cycle(self.at).map(open).sum()
    }

    /// The largest number of cycles, up to `most`, with a total open time below `needed`.
    fn cycles_below(&self, needed: Duration, most: u64) -> u64 {
        let needed = u128::from(needed.as_ps());
        if self.open_in(most) < needed {
            return most;
        }
        let (mut below, mut enough) = (0, most);
        while enough - below > 1 {
            let middle = below + (enough - below) / 2;
            match self.open_in(middle) < needed {
                true => below = middle,
                false => enough = middle,
            }
        }
        below
    }
}
