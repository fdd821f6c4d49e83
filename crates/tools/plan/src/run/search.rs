//! `--search`: trials that drive each host and stream towards its worst phase.
//!
//! Each trial changes the shifts of the best trial so far of one subject: a host, or a stream at a
//! listener. Some changes follow from what the subject met in that trial ([`Contention`]): other
//! streams are moved so that they reach a port together with its worst frame, and the clocks of
//! gates so that a gate closes just before it. Other changes are random, or join the best trials of
//! two subjects.

mod meet;
#[cfg(test)]
mod tests;

use super::document::SimReport;
use super::phases::latencies;
use crate::simulate::contention::Contention;
use crate::{Planned, Shift};
use meet::{Meeting, Places, Target};
use stats::random::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Duration;

/// Guaranteed latencies in nanoseconds by the name of the host or stream; `Err`: why there is none.
pub type LatencyBounds = BTreeMap<String, Result<u64, String>>;

/// A subject whose bound is at most one thousandth above its largest latency needs no trial: the
/// distance in parts per million.
const AT_BOUND: u128 = 1_001_000;

/// A host, or a stream at a listener.
#[derive(Debug, Default)]
struct Subject {
    /// Index of the shift of its own start.
    own: Option<usize>,
    bound_ns: Option<u64>,
    largest_ns: u64,
    /// The last trial with the largest latency, and what the subject met there.
    trial: usize,
    contention: Contention,
    /// Trials for this subject since its last gain.
    tries: u64,
    /// Trials for this subject that gained less than one percent.
    failures: u64,
}

impl Subject {
    /// Returns the subject in its best trial.
    fn target<'a>(&'a self, plans: &'a [Planned]) -> Target<'a> {
        (&self.contention, &plans[self.trial], self.own)
    }

    /// Returns how far the bound is above the largest latency, in parts per million.
    fn distance(&self) -> u128 {
        let ratio = |bound| u128::from(bound) * 1_000_000 / u128::from(self.largest_ns.max(1));
        self.bound_ns.map_or(u128::MAX, ratio)
    }
}

/// How a trial changes the best one of its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Meet(Meeting),
    /// Changes some values at random, or takes some from the best trial of another subject.
    Vary,
    /// Draws all values again.
    Redraw,
}

impl Change {
    /// Returns the change after `tries` without a gain.
    const fn after(tries: u64) -> Self {
        match tries % 8 {
            0 => Self::Meet(Meeting::First { predicted: true }),
            1 => Self::Meet(Meeting::One),
            2 => Self::Vary,
            4 => Self::Meet(Meeting::First { predicted: false }),
            6 => Self::Meet(Meeting::Any),
            _ => Self::Redraw,
        }
    }
}

/// The state of a search.
#[derive(Debug)]
pub(super) struct Search {
    places: Places,
    subjects: Vec<Subject>,
    /// Added times of each trial in picoseconds.
    trials: Vec<Vec<u64>>,
    known: BTreeSet<Vec<u64>>,
    random: Random,
}

impl Search {
    /// Begins a search. `planned` is the plan as written.
    pub fn new(shifts: &[Shift], planned: &Planned) -> Self {
        let places = Places::new(shifts, planned);
        let subject = |own| Subject { own, ..Subject::default() };
        Self {
            subjects: places.subjects(planned).map(subject).collect(),
            places,
            trials: Vec::new(),
            known: BTreeSet::new(),
            random: Random::for_component(planned.config.seed, "search of phases"),
        }
    }

    /// Adds the result of the next trial, which was made for the subjects `aims`. Takes what
    /// all subjects met from the document.
    pub fn learn(
        &mut self,
        (added, aims): (&[Duration], &[usize]),
        document: &mut SimReport,
        bounds: &LatencyBounds,
    ) {
        let trial = self.trials.len();
        let mut added: Vec<u64> = added.iter().map(|time| time.as_ps()).collect();
        added.resize(self.places.shifts.len(), 0);
        self.known.insert(added.clone());
        self.trials.push(added);
        let mut contention = std::mem::take(&mut document.measured.contention).into_iter();
        let named = latencies(document).into_iter();
        for (at, (subject, (name, ns))) in self.subjects.iter_mut().zip(named).enumerate() {
            let contention = contention.next().unwrap_or_default();
            let is_notable = ns > subject.largest_ns + subject.largest_ns / 100;
            subject.failures += u64::from(aims.contains(&at) && !is_notable);
            if trial == 0 {
                subject.bound_ns = bounds.get(&name).and_then(|bound| bound.clone().ok());
            }
            if ns > subject.largest_ns {
                subject.tries = 0;
            }
            // The search moves on among equal trials.
            if ns >= subject.largest_ns {
                *subject = Subject { largest_ns: ns, trial, contention, ..*subject };
            }
        }
    }

    /// Returns the added times and the subjects of each of the next `count` trials. `plans` are the
    /// trials so far.
    pub fn next(&mut self, count: usize, plans: &[Planned]) -> Vec<(Vec<Duration>, Vec<usize>)> {
        let all = 0..self.subjects.len();
        let is_open = |at: &usize| self.subjects[*at].distance() > AT_BOUND;
        let mut order: Vec<usize> = all.clone().filter(is_open).collect();
        if order.is_empty() {
            order = all.collect();
        }
        let urgency = |at: &usize| {
            let subject = &self.subjects[*at];
            (subject.failures, Reverse(subject.distance()))
        };
        order.sort_by_key(urgency);
        let mut turns: VecDeque<usize> = VecDeque::new();
        let mut next = || {
            if turns.is_empty() {
                turns.extend(&order);
            }
            let first = turns.pop_front().unwrap_or_default();
            let (mut added, mut taken) = self.propose(first, plans);
            let mut aims = vec![first];
            turns.retain(|at| {
                let joins = self.join((&mut added, &mut taken), *at, plans);
                aims.extend(joins.then_some(*at));
                !joins
            });
            self.known.insert(added.clone());
            (added.into_iter().map(Duration::from_ps).collect(), aims)
        };
        (0..count).map(|_| next()).collect()
    }

    /// Returns added times for a subject that no trial has had, unless there are too few, and the
    /// shifts that matter for it.
    fn propose(&mut self, at: usize, plans: &[Planned]) -> (Vec<u64>, BTreeSet<usize>) {
        const ATTEMPTS: usize = 16;
        let (mut added, mut taken) = (Vec::new(), BTreeSet::new());
        for _ in 0..ATTEMPTS {
            let change = Change::after(self.subjects[at].tries);
            self.subjects[at].tries += 1;
            let subject = &self.subjects[at];
            added.clone_from(&self.trials[subject.trial]);
            let target = subject.target(plans);
            taken = self.places.near(target);
            match change {
                Change::Meet(meeting) => {
                    let moves = self.places.meet(target, meeting, &mut self.random);
                    moves.into_iter().for_each(|(shift, ps)| self.shift(&mut added, shift, ps));
                }
                Change::Vary => {
                    let near = taken.iter().copied().collect();
                    self.vary(&mut added, at, near);
                    taken.extend(0..added.len());
                }
                Change::Redraw => {
                    for shift in 0..added.len() {
                        let within = self.places.shifts[shift].within.as_ps();
                        let ps = self.random.below(within).into();
                        self.shift(&mut added, shift, ps);
                    }
                    taken.extend(0..added.len());
                }
            }
            if !self.known.contains(&added) {
                break;
            }
        }
        (added, taken)
    }

    /// Adds to a trial what drives a further subject, if most of the shifts that matter for this
    /// subject are not `taken`. Returns whether they are.
    fn join(
        &mut self,
        (added, taken): (&mut [u64], &mut BTreeSet<usize>),
        at: usize,
        plans: &[Planned],
    ) -> bool {
        let subject = &self.subjects[at];
        let target = subject.target(plans);
        let near = self.places.near(target);
        let free: Vec<usize> = near.difference(taken).copied().collect();
        if free.is_empty()
            || 2 * free.len() < near.len()
            || subject.own.is_some_and(|own| taken.contains(&own))
        {
            return false;
        }
        let meeting = Meeting::First { predicted: subject.tries.is_multiple_of(2) };
        let moves = self.places.meet(target, meeting, &mut self.random);
        for shift in free {
            added[shift] = self.trials[subject.trial][shift];
            self.shift(added, shift, moves.get(&shift).copied().unwrap_or(0));
            taken.insert(shift);
        }
        self.subjects[at].tries += 1;
        true
    }

    /// Adds a time to an added time, within its range.
    fn shift(&self, added: &mut [u64], shift: usize, ps: i128) {
        let within = self.places.shifts[shift].within.as_ps();
        let grain = self.places.shifts[shift].grain();
        let sum = (i128::from(added[shift]) + ps).rem_euclid(within.into()) as u64;
        added[shift] = sum / grain * grain;
    }

    /// Changes up to three of the added times that are `near`, by small and large steps, or takes
    /// some from the best trial of another subject.
    fn vary(&mut self, added: &mut [u64], at: usize, near: Vec<usize>) {
        let mut random = self.random.clone();
        let other = &self.subjects[random.below(self.subjects.len() as u64) as usize];
        match random.below(3) {
            0 if other.trial != self.subjects[at].trial => {
                let pairs = added.iter_mut().zip(&self.trials[other.trial]);
                pairs.filter(|_| random.below(2) == 0).for_each(|(own, other)| *own = *other);
            }
            _ => {
                let all = (0..added.len()).collect();
                let near = if near.is_empty() { all } else { near };
                for _ in 0..=random.below(3) {
                    let shift = near[random.below(near.len() as u64) as usize];
                    let most = self.places.shifts[shift].within.as_ps() >> random.below(12);
                    let ps = i128::from(random.below(most.max(2)));
                    self.shift(added, shift, if random.below(2) == 0 { ps } else { -ps });
                }
            }
        }
        self.random = random;
    }
}
