//! The windows of one queue over all lists of a port.

use wire::Duration;

use super::GateControlList;
use super::step::Detour;
use super::windows::Windows;
use crate::LocalTime;

/// The latest end of a window: the end of the range of a node's clock.
pub(super) const END: LocalTime = LocalTime::from_ps(i64::MAX);

/// A list that starts at a local time and replaces the previous one.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub from: LocalTime,
    pub list: GateControlList,
    /// Whether the list is only the extended last entry of the previous list.
    pub extends: bool,
}

/// What windows belong to: the gate of a queue, or the holds of preemptable frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row {
    Queue(usize),
    Hold,
}

impl Row {
    pub(super) fn windows(self, list: &GateControlList) -> &Windows {
        match self {
            Self::Queue(queue) => list.windows(queue),
            Self::Hold => list.hold(),
        }
    }
}

/// The windows of a row, first those of one list, then those of the later phases.
#[derive(Clone, Copy)]
pub(super) struct Track<'a> {
    pub first: &'a Windows,
    pub later: &'a [Phase],
    pub row: Row,
    /// The temporary list, if any.
    pub detour: Option<&'a Detour>,
}

impl<'a> Track<'a> {
    /// The windows, if there is only one list.
    pub(super) fn only(&self) -> Option<&'a Windows> {
        (self.later.is_empty() && self.detour.is_none()).then_some(self.first)
    }

    /// The detour, if it is not over at `at`.
    fn detour_at(&self, at: LocalTime) -> Option<&'a Detour> {
        self.detour.filter(|detour| at < detour.until)
    }

    /// The window that contains `at`, otherwise the next one. A window that continues in the next
    /// list is one window. With several lists the returned start is not before `at`.
    pub(super) fn next(&self, at: LocalTime) -> Option<(LocalTime, LocalTime)> {
        match self.detour_at(at) {
            Some(detour) => detour.next(self.row, at, |at| self.next_listed(at)),
            None => self.next_listed(at),
        }
    }

    fn next_listed(&self, at: LocalTime) -> Option<(LocalTime, LocalTime)> {
        match self.later {
            [] => self.first.next(at),
            _ => self.next_through(at),
        }
    }

    fn next_through(&self, at: LocalTime) -> Option<(LocalTime, LocalTime)> {
        let (mut index, mut from) = (self.index(at), at);
        loop {
            let end = self.end(index);
            match self.windows(index).next(from) {
                Some((opens, closes)) if opens < end => {
                    return Some((opens.max(from), self.close(index, closes)));
                }
                _ if index == self.later.len() => return None,
                _ => (index, from) = (index + 1, end),
            }
        }
    }

    /// When a window of phase `index` closes. Without a change of lists it would close at `closes`.
    fn close(&self, mut index: usize, mut closes: LocalTime) -> LocalTime {
        while index < self.later.len() && closes >= self.end(index) {
            let end = self.end(index);
            index += 1;
            match self.windows(index).next(end) {
                Some((opens, next)) if opens <= end => closes = next,
                _ => return end,
            }
        }
        closes
    }

    /// The windows of the list in effect at `at`.
    pub(super) fn windows_at(&self, at: LocalTime) -> &'a Windows {
        self.windows(self.index(at))
    }

    /// Whether the list in effect at `at` is the last one.
    pub(super) fn is_last(&self, at: LocalTime) -> bool {
        self.detour_at(at).is_none() && self.index(at) == self.later.len()
    }

    /// The cycle of the list in effect, and the total length of the cycles that repeat before the
    /// next list. `None` until a walk from `from` to the end of a window at `at` has seen all
    /// windows and pauses of this list.
    pub(super) fn repeated(&self, at: LocalTime, from: LocalTime) -> Option<(i64, i64)> {
        if self.detour_at(from).is_some() {
            return None;
        }
        let index = self.index(at);
        let since = index.checked_sub(1).map_or(from, |before| self.later[before].from.max(from));
        let cycle = self.windows(index).cycle();
        let seen = at.as_ps().saturating_sub(since.as_ps());
        // The first cycle may begin within a window, and the third ends the pauses of the second.
        (seen >= 3 * cycle).then(|| (cycle, self.cycles(at, END) as i64 * cycle))
    }

    /// How many whole cycles of the list in effect, counted from `at`, end before `before` and
    /// before the next list. The gate must be closed at `at`.
    pub(super) fn cycles(&self, at: LocalTime, before: LocalTime) -> u64 {
        if self.detour_at(at).is_some() {
            return 0;
        }
        let cycle = self.windows_at(at).cycle();
        // Keeps room for the window in which the last cycle ends.
        let range = LocalTime::from_ps(i64::MAX - 2 * cycle);
        let end = self.end(self.index(at)).min(before).min(range);
        let span = end.as_ps().saturating_sub(at.as_ps()).saturating_sub(1);
        (span.max(0) / cycle) as u64
    }

    /// The longest wait of a transmission of length `needed` that is ready at `from` or later; see
    /// [`GateControlList::longest_wait`].
    pub(super) fn longest_wait(&self, from: LocalTime, needed: Duration) -> Option<Duration> {
        let needed = i64::try_from(needed.as_ps()).ok()?;
        let forever = self.windows(self.later.len()).longest_wait(Duration::from_ps(needed as u64));
        let (mut at, mut longest) = (from.as_ps(), 0);
        // The end of the last window that is long enough, and the number of windows of the last
        // list that remain to be checked.
        let (mut closed, mut left) = (None, self.last_windows() + 2);
        loop {
            let (opens, closes) = self.next(LocalTime::from_ps(at))?;
            if closes.as_ps().saturating_sub(opens.as_ps()) >= needed {
                // The last instant at which the transmission could have started.
                let since = closed.map_or(from.as_ps(), |closed: i64| closed - needed);
                longest = longest.max(opens.as_ps() - since);
                closed = Some(closes.as_ps());
            }
            if closes == END {
                break;
            }
            at = closes.as_ps();
            if self.is_last(closes) {
                left -= 1;
                if left == 0 {
                    break;
                }
                continue;
            }
            if let Some((cycle, passed)) = self.repeated(closes, from) {
                closed = closed.map(|last| if last > at - cycle { last + passed } else { last });
                at += passed;
            }
        }
        Some(forever?.max(Duration::from_ps(longest as u64)))
    }

    /// Number of windows per cycle of the last list.
    pub(super) fn last_windows(&self) -> usize {
        self.windows(self.later.len()).len()
    }

    fn index(&self, at: LocalTime) -> usize {
        self.later.partition_point(|phase| phase.from <= at)
    }

    fn windows(&self, index: usize) -> &'a Windows {
        match index.checked_sub(1) {
            Some(later) => self.row.windows(&self.later[later].list),
            None => self.first,
        }
    }

    fn end(&self, index: usize) -> LocalTime {
        self.later.get(index).map_or(END, |next| next.from)
    }
}
