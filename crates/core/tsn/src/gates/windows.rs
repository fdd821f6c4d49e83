//! The open windows of one queue within a cycle, or the spans of a hold.

use wire::{Duration, Instant};

use super::{CycleWindows, Entry};
use crate::LocalTime;

/// Open spans, in order, within a cycle that begins at `base`. Adjacent open entries are one
/// window. A window across the end of the cycle is also one window; its end is after the cycle.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    base: i64,
    cycle: i64,
    /// Start and end in picoseconds; the start lies within the cycle.
    open: Vec<(i64, i64)>,
}

impl Windows {
    /// The windows of the entries for which `is_open` is true. `is_open` receives the index of an
    /// entry and the entry.
    pub(super) fn new(
        base: Instant,
        cycle: Duration,
        entries: &[Entry],
        is_open: impl Fn(usize, &Entry) -> bool,
    ) -> Self {
        let cycle = cycle.as_ps() as i64;
        // Only the offset of the base within a cycle matters.
        let base = (base.as_ps() % cycle as u64) as i64;
        let mut open: Vec<(i64, i64)> = Vec::new();
        let mut start = 0;
        for (index, entry) in entries.iter().enumerate() {
            let mut end = start + entry.interval.as_ps() as i64;
            if index + 1 == entries.len() {
                end = cycle;
            }
            if is_open(index, entry) {
                match open.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => open.push((start, end)),
                }
            }
            start = end;
        }
        Self { base, cycle, open: join_ends(open, cycle) }
    }

    /// Moves the cycle start.
    pub(super) fn begin_at(&mut self, at: LocalTime) {
        self.base = at.as_ps().rem_euclid(self.cycle);
    }

    pub(super) fn in_cycle(&self) -> CycleWindows {
        let ps = |ps: i64| Duration::from_ps(ps as u64);
        let open = self.open.iter().map(|(start, end)| (ps(*start), ps(*end)));
        CycleWindows { base: ps(self.base), cycle: ps(self.cycle), open: open.collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Length of a cycle, in picoseconds.
    pub(super) fn cycle(&self) -> i64 {
        self.cycle
    }

    /// Length of each window, in picoseconds.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.open.iter().map(|(start, end)| (end - start) as u64)
    }

    /// The windows within one cycle from `at`, in picoseconds. The gate must be closed at `at`.
    pub(super) fn within_cycle(&self, at: LocalTime) -> impl Iterator<Item = (i64, i64)> {
        let at = at.as_ps();
        self.open.iter().map(move |&(start, end)| {
            let opens = at + (self.base + start - at).rem_euclid(self.cycle);
            (opens, opens + (end - start))
        })
    }

    pub(super) fn always_open(&self) -> bool {
        self.open.first().is_some_and(|&(start, end)| end - start == self.cycle)
    }

    pub(super) fn is_open(&self, at: LocalTime) -> bool {
        self.next(at).is_some_and(|(opens, _)| opens <= at)
    }

    /// The window that contains `at`, otherwise the next one.
    pub(super) fn next(&self, at: LocalTime) -> Option<(LocalTime, LocalTime)> {
        if self.open.is_empty() {
            return None;
        }
        if self.always_open() {
            return Some((LocalTime::from_ps(i64::MIN), LocalTime::from_ps(i64::MAX)));
        }
        let phase = (at.as_ps() - self.base).rem_euclid(self.cycle);
        let cycle_start = at.as_ps() - phase;
        let window = |(start, end): (i64, i64), cycle_start: i64| {
            let at = |offset| LocalTime::from_ps(cycle_start.saturating_add(offset));
            (at(start), at(end))
        };
        // The last window may have begun in the previous cycle.
        let last = self.open[self.open.len() - 1];
        if phase < last.1 - self.cycle {
            return Some(window(last, cycle_start.saturating_sub(self.cycle)));
        }
        let index = self.open.partition_point(|&(_, end)| end <= phase);
        Some(match self.open.get(index) {
            Some(&found) => window(found, cycle_start),
            None => window(self.open[0], cycle_start.saturating_add(self.cycle)),
        })
    }

    pub(super) fn next_change(&self, after: LocalTime) -> Option<LocalTime> {
        if self.always_open() {
            return None;
        }
        let (opens, closes) = self.next(after)?;
        Some(if opens > after { opens } else { closes })
    }

    pub(super) fn longest_closed(&self) -> Option<Duration> {
        self.longest_wait(Duration::ZERO)
    }

    /// The longest wait of a transmission: from the last instant at which it fits into a window to
    /// the start of the next window that is long enough.
    pub(super) fn longest_wait(&self, duration: Duration) -> Option<Duration> {
        if self.always_open() {
            return Some(Duration::ZERO);
        }
        let needed = i64::try_from(duration.as_ps()).ok()?;
        let fits: Vec<_> =
            self.open.iter().filter(|(start, end)| end - start >= needed).copied().collect();
        let first = *fits.first()?;
        let next = fits.iter().skip(1).copied().chain([(first.0 + self.cycle, 0)]);
        let longest = fits.iter().zip(next).map(|(this, next)| next.0 - (this.1 - needed)).max()?;
        Some(Duration::from_ps(longest as u64))
    }
}

/// Joins a window at the end of a cycle and one at its start.
fn join_ends(mut open: Vec<(i64, i64)>, cycle: i64) -> Vec<(i64, i64)> {
    let joined = match (open.first(), open.last()) {
        (Some(first), Some(last)) => open.len() > 1 && first.0 == 0 && last.1 == cycle,
        _ => false,
    };
    if joined {
        let (_, first_end) = open.remove(0);
        open.last_mut().expect("two windows, one gone").1 = cycle + first_end;
    }
    open
}
