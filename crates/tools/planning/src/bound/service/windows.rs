//! Windows of gates.

use super::LIMIT;

/// The time for which a gate is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Length of the cycle.
    pub cycle: u64,
    /// Start and end of each window, in order; the last end may be after the cycle.
    pub spans: Vec<(u64, u64)>,
    /// The longest frame, with its gap, which may end after a window.
    pub longest: u64,
}

impl Open {
    /// The most work in a time `t`.
    pub(super) fn most(&self, t: u64) -> u64 {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        let (cycles, rest) = (t / self.cycle, t % self.cycle);
        let from = |at: usize| {
            let begin = self.spans[at].0;
            let next = (at..).map(|index| {
                let shift = self.cycle * (index / self.spans.len()) as u64;
                let (from, to) = self.spans[index % self.spans.len()];
                (from + shift - begin, to + shift - begin)
            });
            next.take_while(|(from, _)| *from < rest).map(|(from, to)| to.min(rest) - from).sum()
        };
        let most: u64 = (0..self.spans.len()).map(from).max().unwrap_or(0);
        let windows = self.spans.len() as u64 * (cycles + 1) + 1;
        (cycles * sum).saturating_add(most).saturating_add(windows.saturating_mul(self.longest))
    }
}

/// The windows in which frames of a class may start, all other conditions met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Length of the cycle.
    pub cycle: u64,
    /// Start and end of each window, in order; the last end may be after the cycle.
    pub spans: Vec<(u64, u64)>,
    /// Whether another class may have begun a frame at the end of a window.
    pub blocks: bool,
    /// The time after each window in which the gate is open, but the longest frame does not fit.
    pub margin: u64,
}

impl Windows {
    /// The longest time until `demand` of a class has started, if a frame of length `block` may come
    /// first. `None`: beyond [`LIMIT`].
    pub fn serve(&self, demand: u64, block: u64) -> Option<u64> {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        if sum == 0 {
            return None;
        }
        let block = if self.blocks { block } else { 0 };
        let cycles = demand / sum;
        let (whole, rest) = (cycles.checked_mul(self.cycle)?, demand % sum);
        let most = (0..self.spans.len()).map(|at| self.after(at, rest)).max()?;
        block.checked_add(whole)?.checked_add(most).filter(|time| *time < LIMIT)
    }

    /// The time from the end of window `at` until `demand`, which fits into a cycle, has started.
    fn after(&self, at: usize, mut demand: u64) -> u64 {
        let count = self.spans.len();
        let end = self.spans[at].1;
        for step in 1.. {
            let (index, cycles) = ((at + step) % count, (at + step) / count);
            let (from, to) = self.spans[index];
            let shift = self.cycle * cycles as u64;
            if demand <= to - from {
                return from + shift + demand - end;
            }
            demand -= to - from;
        }
        unreachable!("the demand fits into a cycle")
    }

    /// The share of time in the windows.
    pub fn share(&self) -> f64 {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        sum as f64 / self.cycle as f64
    }
}
