//! Queue depths and ring positions over time, from events of the analyser.

use super::run::Finding;
use super::select::Selection;
use crate::commands::{Event, Ring, RingState};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Counts;
use std::collections::BTreeMap;
use wire::Bdf;

mod series;
#[cfg(test)]
mod tests;

pub use series::{Point, Series};

/// Maximum number of queues, each with up to 180 kB; further queues are left out.
const MOST_QUEUES: usize = 256;
/// Number of changes that are stored one by one, for a picture of a ring.
const FIRST: usize = 400;

/// The time for which each number of commands was outstanding.
#[derive(Clone, Debug, Default)]
struct Depth {
    outstanding: u64,
    /// Time of the last change; `None` before the first one.
    since: Option<u64>,
    life_ns: u64,
    /// Nonzero depths, weighted by their time in nanoseconds.
    busy: Counts,
}

impl Depth {
    /// Records that `outstanding` commands are outstanding from `at` on. Times are nanoseconds and
    /// within the window.
    fn change(&mut self, at: u64, outstanding: u64) {
        let before = self.since.replace(at);
        let ns = before.map_or(0, |since| at.saturating_sub(since));
        self.life_ns += ns;
        if self.outstanding > 0 {
            self.busy.record(self.outstanding, ns);
        }
        self.outstanding = outstanding;
    }

    fn summary(&self) -> QueueDepth {
        QueueDepth {
            life_ns: self.life_ns,
            busy_ns: self.busy.total(),
            p50: self.busy.quantile(0.5),
            p99: self.busy.quantile(0.99),
            max: self.busy.max(),
            mean: (self.busy.mean() * 1000.0).round() / 1000.0,
        }
    }
}

/// Number of commands outstanding, weighted by time. Only the time with at least one command
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct QueueDepth {
    /// Time from the creation of the queue to its end, or to the end of the trace or filter.
    pub life_ns: u64,
    /// Time with at least one command outstanding.
    pub busy_ns: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
    /// Mean, to three decimals.
    pub mean: f64,
}

/// One of the two rings of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "Ring")]
pub struct RingSummary {
    /// Size of the ring; one entry is always free.
    pub entries: u32,
    /// Maximum number of entries in the ring at once, from head to tail.
    pub most: u32,
    /// Number of times that the tail returned to entry 0.
    pub wraps: u64,
}

impl RingSummary {
    fn change(&mut self, entries: u32, before: Option<u32>, tail: Option<u32>, head: Option<u32>) {
        self.entries = entries;
        if let (Some(tail), Some(head)) = (tail, head) {
            self.most = self.most.max((tail + entries - head) % entries.max(1));
        }
        if let (Some(before), Some(tail)) = (before, tail) {
            self.wraps += u64::from(tail < before);
        }
    }
}

/// A queue pair over time.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    depth: Depth,
    /// The rings of the submission and the completion queue.
    pub rings: [RingSummary; 2],
    /// The current positions.
    here: Point,
    /// The positions over time.
    pub series: Series,
    /// The first changes, one by one.
    pub first: Vec<Point>,
}

impl Queue {
    /// Returns the distribution of outstanding commands.
    pub fn depth(&self) -> QueueDepth {
        self.depth.summary()
    }

    /// Processes a change at `at`. `seen`: whether the change is in the window.
    fn change(&mut self, at: u64, ring: Ring, seen: bool) {
        let mut next = Point { at_ns: at, ..self.here };
        match ring {
            Ring::Submission { entries, outstanding, tail, head } => {
                (next.outstanding, next.sq_tail, next.sq_head) = (outstanding, tail, head);
                if seen {
                    self.rings[0].change(entries, self.here.sq_tail, tail, head);
                }
            }
            Ring::Completion { entries, tail, head, phase } => {
                (next.cq_tail, next.cq_head, next.cq_phase) = (tail, head, phase);
                if seen {
                    self.rings[1].change(entries, self.here.cq_tail, tail, head);
                }
            }
            Ring::Gone => next = Point { at_ns: at, ..Point::default() },
        }
        self.here = next;
        self.depth.change(at, next.outstanding);
        if seen {
            self.series.push(next);
            if self.first.len() < FIRST {
                self.first.push(next);
            }
        }
    }
}

/// All selected queues over time, within the selection's window.
#[derive(Clone, Debug, Default)]
pub struct Rings {
    drive: Option<Bdf>,
    queue: Option<u16>,
    window: (u64, u64),
    queues: BTreeMap<(Bdf, u16), Queue>,
    /// The sum of all I/O queues.
    all: Queue,
    now: u64,
}

impl Rings {
    /// Creates an empty collection. Only drive, queue and times of the selection apply.
    pub fn new(selection: &Selection) -> Self {
        let Selection { drive, queue, from_ns, to_ns, .. } = *selection;
        let window = (from_ns.unwrap_or(0), to_ns.unwrap_or(u64::MAX));
        Self { drive, queue, window, ..Self::default() }
    }

    /// Processes a finding of an analysis. Returns the change if it is selected.
    pub fn observe<'a>(&mut self, found: &'a Finding<'_>) -> Option<&'a RingState> {
        match found {
            Finding::Tlp(.., at) => self.now = *at,
            Finding::Event(Event::Ring(state)) => return self.ring(state).then_some(state),
            Finding::End { .. } => self.finish(),
            _ => {}
        }
        None
    }

    fn ring(&mut self, state: &RingState) -> bool {
        let RingState { at, device, queue, ring } = *state;
        let selected = self.drive.is_none_or(|drive| drive == device)
            && self.queue.is_none_or(|selected| selected == queue);
        let full = self.queues.len() >= MOST_QUEUES && !self.queues.contains_key(&(device, queue));
        if !selected || full {
            return false;
        }
        let (from, to) = self.window;
        let seen = (from..=to).contains(&at.as_ns());
        // `clamp` would panic if the window is empty.
        let at = at.as_ns().max(from).min(to);
        let queue_rings = self.queues.entry((device, queue)).or_default();
        let before = queue_rings.depth.outstanding;
        queue_rings.change(at, ring, seen);
        if queue != 0 {
            let outstanding = (self.all.depth.outstanding + queue_rings.depth.outstanding) - before;
            let moves = outstanding != self.all.depth.outstanding || self.all.depth.since.is_none();
            self.all.depth.change(at, outstanding);
            if seen && moves {
                self.all.series.push(Point { at_ns: at, outstanding, ..Point::default() });
            }
        }
        seen
    }

    /// Ends the trace: the current depths count until the time of the last finding.
    fn finish(&mut self) {
        let at = self.now.max(self.window.0).min(self.window.1);
        for queue in self.queues.values_mut().chain([&mut self.all]) {
            if queue.depth.since.is_some() {
                queue.depth.change(at, queue.depth.outstanding);
            }
        }
    }

    /// Returns the queues by drive and number; number 0 is the admin queue.
    pub fn queues(&self) -> impl Iterator<Item = (Bdf, u16, &Queue)> {
        self.queues.iter().map(|((drive, queue), all)| (*drive, *queue, all))
    }

    /// Returns the sum of the I/O queues of all drives, which has no rings.
    pub fn all(&self) -> &Queue {
        &self.all
    }
}
