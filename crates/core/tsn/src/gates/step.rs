//! The reaction of gates to changes of their clock.

use super::track::{Row, Track};
use super::{Entry, GateControlList, GateStates, Gates};
use crate::{Clock, LocalTime, QUEUES};
use wire::{Duration, Instant};

/// What gates do when their clock steps. The standard defines the gates by list and CurrentTime
/// (IEEE 802.1Q-2022, 8.6.9.1), and does not define how hardware follows a step. The variants other
/// than [`Self::Rederived`] follow `advance_sched` of Linux's software taprio, whose timer is set
/// for the end of each entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepPolicy {
    /// The gates change at once to the state of the list at the new time.
    #[default]
    Rederived,
    /// After a step back, the gates keep their state until the clock shows the time before the step
    /// again. After a step forward, they change at once.
    Frozen,
    /// After a step back, the gates behave as with [`Self::Frozen`]. After a step forward, the
    /// gates execute the skipped entries in order, each for [`BURST_ENTRY`]; at most the last
    /// [`GateControlList::MAX_ENTRIES`] entries.
    Burst,
}

/// Length of each skipped entry after a step forward: an assumed duration of a timer callback.
pub const BURST_ENTRY: Duration = Duration::from_us(1);

/// A temporary list that replaces all others until a local time.
#[derive(Clone, Debug)]
pub(super) struct Detour {
    pub list: GateControlList,
    pub until: LocalTime,
}

impl Gates {
    /// Replaces the clock by one that shows the same time now, for example after a change of rate.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Replaces the clock by `clock` at `now`; the gates follow the step by `policy`.
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
            // The first entry must begin now, not at a multiple of the cycle.
            Some(Detour { list: list.beginning_at(after), until })
        });
    }

    /// Which gates are open at a local time.
    fn states(&self, at: LocalTime) -> GateStates {
        let open =
            |queue: &usize| self.track(*queue).next(at).is_some_and(|(opens, _)| opens <= at);
        GateStates((0..QUEUES).filter(open).fold(0, |states, queue| states | 1 << queue))
    }

    /// The gate states between two local times, and the end of their execution.
    fn burst(&self, before: LocalTime, after: LocalTime) -> Option<(Vec<Entry>, LocalTime)> {
        let mut entries = Vec::new();
        let mut at = before;
        // The next change after `at`, if it is before the end of the step.
        let changes = |at: LocalTime| {
            let change = |queue| {
                let (opens, closes) = self.track(queue).next(at)?;
                Some(if opens > at { opens } else { closes })
            };
            (0..QUEUES).filter_map(change).min().filter(|change| *change < after)
        };
        // Every cycle has an entry, so earlier entries would be dropped below.
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
