//! The event kernel: determines which component runs next, and when.
//!
//! Every component has at most one armed wake-up. Arming again moves the wake-up, so memory does
//! not grow with time. Wake-ups come in the order of time, and at the same time in the order of
//! arming. The kernel mixes all events into a running `Digest`: the same plan and seed give the
//! same digest on every machine.

mod digest;
mod wakes;

use digest::Digest;

use stats::random::Random;
use std::collections::VecDeque;
use thiserror::Error;
use wakes::Wakes;
use wire::Instant;

/// Takes the first item of a queue if it is due.
pub(crate) fn pop_if<T>(queue: &mut VecDeque<T>, due: impl FnOnce(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(due) { queue.pop_front() } else { None }
}

/// Identifies a component of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Component(u32);

impl Component {
    /// The number of the component, from 0 in the order of `Kernel::add`.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most wake-ups of a simulation. Keys of wake-ups have 40 bits for the sequence of arming
/// (`wakes::COMPONENT`), and components arm less than eight times per wake-up.
pub const MOST_EVENTS: u64 = 1 << 37;

/// Limits of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most wake-ups.
    pub events: u64,
    /// The latest virtual time of a wake-up.
    pub time: Instant,
}

impl Default for Limits {
    /// 10^10 wake-ups and one hour of virtual time.
    fn default() -> Self {
        Self { events: 10_000_000_000, time: Instant::from_ns(3_600_000_000_000) }
    }
}

/// The limit that ended a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitReached {
    /// The number of events.
    #[error("the limit of {limit} events was reached at {at}")]
    Events {
        /// The limit.
        limit: u64,
        /// Virtual time.
        at: Instant,
    },
    /// Virtual time.
    #[error("the limit of {limit} of virtual time was reached after {events} events")]
    Time {
        /// The limit.
        limit: Instant,
        /// Events so far.
        events: u64,
    },
}

/// The most wake-ups per component at one instant, averaged over at least `FEW` components. With
/// more wake-ups, components wake each other in an endless loop.
const MOST_AT_ONCE: u64 = 10_000;
const FEW: u64 = 100;

/// The event kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    seed: u64,
    limits: Limits,
    now: Instant,
    events: u64,
    /// Number of events when time last advanced.
    events_before: u64,
    wakes: Wakes,
    /// The component that runs now; its wake-up is still in `wakes`.
    running: Option<u32>,
    digest: Digest,
}

impl Kernel {
    /// A kernel at time zero without components.
    pub(crate) fn new(seed: u64, limits: Limits) -> Self {
        let mut digest = Digest::default();
        digest.word(seed);
        Self { seed, limits, digest, ..Self::default() }
    }

    /// Adds a component, without a wake-up.
    pub(crate) fn add(&mut self) -> Component {
        Component(self.wakes.add())
    }

    /// Random numbers for the component `name`. They depend only on the seed and the name, so that
    /// a new component does not change the random numbers of others.
    pub(crate) fn rng(&self, name: &str) -> Random {
        Random::for_component(self.seed, name)
    }

    /// Arms the wake-up of a component at `at`, or now if `at` is past. Replaces the previous
    /// wake-up of the component.
    pub(crate) fn arm(&mut self, component: Component, at: Instant) {
        let at = at.max(self.now).as_ps();
        if self.running == Some(component.0) {
            self.running = None;
            self.wakes.move_to(component.0, at);
        } else {
            self.wakes.arm(component.0, at);
        }
    }

    /// Arms the wake-up of a component at `at`, unless an earlier one is armed.
    pub(crate) fn arm_by(&mut self, component: Component, at: Instant) {
        let armed = self.wakes.armed(component.0).filter(|_| self.running != Some(component.0));
        if armed.is_none_or(|armed| armed > at.max(self.now).as_ps()) {
            self.arm(component, at);
        }
    }

    /// Like [`arm_by`](Self::arm_by), if `at` is given.
    pub(crate) fn arm_by_next(&mut self, component: Component, at: Option<Instant>) {
        if let Some(at) = at {
            self.arm_by(component, at);
        }
    }

    /// Arms the wake-up at `at`, or disarms it if `at` is `None`.
    pub(crate) fn arm_or_disarm(&mut self, component: Component, at: Option<Instant>) {
        match at {
            Some(at) => self.arm(component, at),
            None => {
                self.running = self.running.filter(|running| *running != component.0);
                self.wakes.disarm(component.0);
            }
        }
    }

    /// Takes the next wake-up and advances to its time; `None` if none is armed.
    ///
    /// # Errors
    /// If a limit is reached; the wake-up stays armed.
    pub(crate) fn pop(&mut self) -> Result<Option<Component>, LimitReached> {
        self.forget_running();
        let Some((at, component)) = self.wakes.first() else { return Ok(None) };
        if self.events >= self.limits.events {
            return Err(LimitReached::Events { limit: self.limits.events, at: self.now });
        }
        if at > self.limits.time.as_ps() {
            return Err(LimitReached::Time { limit: self.limits.time, events: self.events });
        }
        assert!(at >= self.now.as_ps(), "time goes forward");
        // The wake-up stays in `wakes`, because most components arm themselves again.
        self.running = Some(component);
        if at > self.now.as_ps() {
            self.events_before = self.events;
            self.now = Instant::from_ps(at);
        }
        self.events += 1;
        assert!(
            self.events - self.events_before <= MOST_AT_ONCE * self.wakes.components().max(FEW),
            "time does not advance at {}: component {component} and others wake each other",
            self.now
        );
        self.digest.word(at);
        self.digest.word(u64::from(component));
        Ok(Some(Component(component)))
    }

    /// Disarms the last taken wake-up, unless it was armed again.
    fn forget_running(&mut self) {
        if let Some(component) = self.running.take() {
            self.wakes.disarm(component);
        }
    }

    /// The time of the next wake-up.
    pub(crate) fn next_time(&mut self) -> Option<Instant> {
        self.forget_running();
        self.wakes.first().map(|(at, _)| Instant::from_ps(at))
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The digest, to mix in events.
    pub(crate) fn digest_mut(&mut self) -> &mut Digest {
        &mut self.digest
    }

    /// The digest of everything so far.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn wake_ups_are_ordered_by_time_then_arming() {
        let mut kernel = Kernel::new(1, Limits::default());
        let c: Vec<_> = (0..4).map(|_| kernel.add()).collect();
        kernel.arm(c[2], at(5));
        kernel.arm(c[0], at(5));
        kernel.arm(c[1], at(3));
        kernel.arm(c[3], at(1));
        kernel.arm(c[3], at(9));
        kernel.arm_by(c[1], at(4));
        let order: Vec<_> =
            std::iter::from_fn(|| kernel.pop().unwrap().map(|c| (kernel.now(), c.index())))
                .collect();
        assert_eq!(order, [(at(3), 1), (at(5), 2), (at(5), 0), (at(9), 3)]);
        assert_eq!(kernel.events(), 4);
    }

    /// A large network may have more wake-ups at one instant than a small one.
    #[test]
    fn many_components_wake_at_one_instant() {
        let mut kernel = Kernel::new(1, Limits::default());
        let all: Vec<_> = (0..1_100).map(|_| kernel.add()).collect();
        for _ in 0..1_000 {
            all.iter().for_each(|component| kernel.arm(*component, at(5)));
            all.iter().for_each(|_| assert!(kernel.pop().unwrap().is_some()));
        }
        assert_eq!((kernel.now(), kernel.events()), (at(5), 1_100_000));
    }

    #[test]
    fn limits_are_errors_and_keep_the_wake_up() {
        let mut kernel = Kernel::new(1, Limits { events: 2, time: at(100) });
        let c = kernel.add();
        kernel.arm(c, at(101));
        let limit = LimitReached::Time { limit: at(100), events: 0 };
        assert_eq!(kernel.pop(), Err(limit));
        assert_eq!(kernel.next_time(), Some(at(101)));
        for ns in [10, 20] {
            kernel.arm(c, at(ns));
            assert_eq!(kernel.pop(), Ok(Some(c)));
        }
        kernel.arm(c, at(30));
        assert_eq!(kernel.pop(), Err(LimitReached::Events { limit: 2, at: at(20) }));
    }

    #[test]
    fn a_wake_up_of_the_past_is_one_of_now() {
        let mut kernel = Kernel::new(1, Limits::default());
        let c = kernel.add();
        kernel.arm(c, at(10));
        kernel.pop().unwrap();
        kernel.arm(c, at(3));
        assert_eq!(kernel.next_time(), Some(at(10)));
        kernel.arm_or_disarm(c, None);
        assert_eq!(kernel.pop(), Ok(None));
    }
}
