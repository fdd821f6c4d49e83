//! The reaction of gates to changes of their clock.

use super::track::{Row, Track};
use super::{Entry, GateControlList, GateStates, Gates};
use crate::{Clock, LocalTime, QUEUES};
use wire::{Duration, Instant};

/// The reaction of gates to a step of their clock. The standard defines only list and CurrentTime
/// (IEEE 802.1Q-2022, 8.6.9.1), not the state of hardware. The variants other than
/// [`Self::Rederived`] follow `advance_sched` of Linux's software taprio, whose timer is set for
/// the end of each entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepPolicy {
    /// The gates change at once to the state of the list at the new time.
    #[default]
    Rederived,
    /// After a step back, the gates keep their state until the clock shows the time before the step
    /// again. A step forward is as [`Self::Rederived`].
    Frozen,
    /// A step back is as [`Self::Frozen`]. After a step forward, the skipped entries are executed
    /// one after the other, each for [`BURST_ENTRY`]; at most the last
    /// [`GateControlList::MAX_ENTRIES`].
    Burst,
}

/// Length of each skipped entry: an assumption for a timer's callback.
pub const BURST_ENTRY: Duration = Duration::from_us(1);

/// A temporary list instead of all others.
#[derive(Clone, Debug)]
pub(super) struct Detour {
    pub list: GateControlList,
    pub until: LocalTime,
}

impl Gates {
    /// Sets another clock that shows the same time now.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Steps the clock at `now`; it is `clock` from then on.
    pub fn step_clock(&mut self, now: Instant, clock: Clock, policy: StepPolicy) {
        let before = self.clock.local(now);
        let after = clock.local(now);
        let frozen = Entry::set(self.states(before), Duration::from_ns(1));
        self.clock = clock;
        let detour = match policy {
            StepPolicy::Burst if after > before => self.burst(before, after),
            StepPolicy::Frozen | StepPolicy::Burst if after < before => {
                Some((vec![frozen], before))
            }
            _ => None,
        };
        self.detour = detour.and_then(|(entries, until)| {
            let list = GateControlList::of_entries(Instant::ZERO, &entries).ok()?;
            // A list repeats from time zero on: this one begins now.
            Some(Detour { list: list.beginning_at(after), until })
        });
    }

    /// Which gates are open at a local time.
    fn states(&self, at: LocalTime) -> GateStates {
        let open =
            |queue: &usize| self.track(*queue).next(at).is_some_and(|(opens, _)| opens <= at);
        GateStates((0..QUEUES).filter(open).fold(0, |states, queue| states | 1 << queue))
    }

    /// The states between two times, and when all of them are over.
    fn burst(&self, before: LocalTime, after: LocalTime) -> Option<(Vec<Entry>, LocalTime)> {
        let mut entries = Vec::new();
        let mut at = before;
        // Cycle by cycle until the last ones, because the states repeat.
        let changes = |at: LocalTime| {
            let change = |queue| {
                let (opens, closes) = self.track(queue).next(at)?;
                Some(if opens > at { opens } else { closes })
            };
            (0..QUEUES).filter_map(change).min().filter(|change| *change < after)
        };
        let span = self.list.cycle_time().as_ps() as i64 * GateControlList::MAX_ENTRIES as i64;
        at = at.max(LocalTime::from_ps(after.as_ps().saturating_sub(span)));
        while let Some(change) = changes(at) {
            entries.push(Entry::set(self.states(at), BURST_ENTRY));
            at = change;
        }
        let late = entries.len().saturating_sub(GateControlList::MAX_ENTRIES);
        entries.drain(..late);
        let takes = BURST_ENTRY.as_ps() as i64 * entries.len() as i64;
        Some((entries, LocalTime::from_ps(after.as_ps() + takes)))
    }

    /// Adds the detour's windows to those of the lists.
    pub(super) fn with_detour<'a>(&'a self, track: Track<'a>) -> Track<'a> {
        Track { detour: self.detour.as_ref(), ..track }
    }
}

impl Detour {
    /// The window that contains `at` or the next one, if it begins within the detour; `then`
    /// returns the window after it.
    pub(super) fn next(
        &self,
        row: Row,
        at: LocalTime,
        then: impl FnOnce(LocalTime) -> Option<(LocalTime, LocalTime)>,
    ) -> Option<(LocalTime, LocalTime)> {
        match row.windows(&self.list).next(at) {
            Some((opens, closes)) if opens < self.until && closes < self.until => {
                Some((opens, closes))
            }
            Some((opens, _)) if opens < self.until => match then(self.until) {
                Some((next, closes)) if next <= self.until => Some((opens, closes)),
                _ => Some((opens, self.until)),
            },
            _ => then(self.until).map(|(opens, closes)| (opens.max(self.until), closes)),
        }
    }
}
