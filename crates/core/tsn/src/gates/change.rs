//! Changes from one list of a port to the next.

use wire::{Duration, Instant};

use super::track::{Phase, Row, Track};
use super::{Entry, GateControlList, GateStates, Gates};
use crate::LocalTime;

impl Gates {
    /// Adds `list`, which replaces the previous list at the base time of `list` (ConfigChangeTime
    /// of IEEE 802.1Q-2022, 8.6.9.3.1). If the previous list starts at that time or later, the
    /// change is at the first cycle start of `list` after the start of the previous list.
    ///
    /// The cycles of the previous list repeat until the change. If a cycle ends at most
    /// `extension` (OperCycleTimeExtension of the previous list) before the change, its last entry
    /// is extended until the change. A cycle during which the change comes is cut
    /// (SetCycleStartTime, 8.6.9.1.1), even the first cycle of the previous list.
    pub fn then(mut self, list: GateControlList, extension: Duration) -> Self {
        let (since, before) = match self.later.last() {
            Some(phase) => (phase.from.as_ps(), &phase.list),
            None => (local_base(&self.list), &self.list),
        };
        let base = local_base(&list);
        let cycle = list.cycle_time().as_ps() as i64;
        let late = since.saturating_sub(base);
        let at = match late {
            ..0 => base,
            _ => base.saturating_add((late / cycle + 1) * cycle),
        };
        // The last cycle: the first one that ends at most `extension` before the change.
        let before_cycle = before.cycle_time().as_ps() as i64;
        let extension = i64::try_from(extension.as_ps()).unwrap_or(i64::MAX);
        let whole = at.saturating_sub(since).saturating_sub(before_cycle);
        let cycles = whole.saturating_sub(extension).max(0) as u64;
        let cycles = cycles.div_ceil(before_cycle as u64) as i64;
        let end = since.saturating_add((cycles + 1).saturating_mul(before_cycle));
        if end < at {
            let list = before.last_entry();
            self.later.push(Phase { from: LocalTime::from_ps(end), list, extends: true });
        }
        self.later.push(Phase { from: LocalTime::from_ps(at), list, extends: false });
        self
    }

    /// Replaces the port's lists by `list` for the queues `classes`, permanently. If several calls
    /// name a queue, the last one applies. Preemption operations in `list` are ignored, because
    /// they concern the whole port.
    pub fn with_class_list(mut self, classes: GateStates, list: GateControlList) -> Self {
        self.classes.push((classes, list));
        self
    }

    /// When the next list of the port starts, later than `now`. `None` after the last change.
    pub fn next_list(&self, now: Instant) -> Option<Instant> {
        let now = self.clock.local(now);
        let next = self.later.iter().find(|phase| !phase.extends && phase.from > now)?;
        Some(self.clock.global(next.from))
    }

    /// The list that governs `queue` at `now`.
    pub fn list_at(&self, queue: usize, now: Instant) -> &GateControlList {
        if let Some(list) = self.class_list(queue) {
            return list;
        }
        let now = self.clock.local(now);
        let started = |phase: &&Phase| !phase.extends && phase.from <= now;
        self.later.iter().rev().find(started).map_or(&self.list, |phase| &phase.list)
    }

    /// The time that the gate of `queue` is open in each cycle (GateOpenTime), and the length of
    /// the cycle (OperCycleTime), both of the list at `now` and on the node's clock. A
    /// credit-based shaper multiplies its slope by cycle / open (IEEE 802.1Q-2022, 8.6.8.2 d).
    pub fn open_share_of(&self, queue: usize, now: Instant) -> (Duration, Duration) {
        let list = self.list_at(queue, now);
        (Duration::from_ps(list.windows(queue).lengths().sum()), list.cycle_time())
    }

    pub(super) fn track(&self, queue: usize) -> Track<'_> {
        let row = Row::Queue(queue);
        let track = match self.class_list(queue) {
            Some(list) => Track { first: list.windows(queue), later: &[], row, detour: None },
            None => {
                Track { first: self.list.windows(queue), later: &self.later, row, detour: None }
            }
        };
        self.with_detour(track)
    }

    pub(super) fn class_list(&self, queue: usize) -> Option<&GateControlList> {
        let of_queue = |(classes, _): &&(GateStates, GateControlList)| classes.is_open(queue);
        self.classes.iter().rev().find(of_queue).map(|(_, list)| list)
    }
}

impl GateControlList {
    /// A list that keeps the state at the end of a cycle for ever.
    fn last_entry(&self) -> Self {
        let last = self.entries()[self.entries().len() - 1];
        let entry = Entry { operation: self.last_operation(), ..last };
        Self::of_entries(self.base_time(), &[entry]).expect("an entry of a valid list")
    }
}

fn local_base(list: &GateControlList) -> i64 {
    i64::try_from(list.base_time().as_ps()).unwrap_or(i64::MAX)
}
