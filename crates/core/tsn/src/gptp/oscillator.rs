//! The clocks of a node: a free-running oscillator, and a clock steered by a servo.

use stats::random::Random;
use wire::{Duration, Instant};

use crate::{Clock, LocalTime};

/// A bounded random walk of an oscillator's frequency, as in INET's `RandomDriftOscillator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The largest single change, in parts per 10^12; changes are uniformly distributed.
    pub step_ppt: i64,
    /// Time between two changes, above 0.
    pub every: Duration,
    /// Limit of the frequency error in both directions, in parts per 10^12.
    pub limit_ppt: i64,
}

/// The parameters of a node's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockConfig {
    /// Offset of both clocks from true time at the beginning, in picoseconds.
    pub offset_ps: i64,
    /// The oscillator's frequency error at the beginning, in parts per 10^12.
    pub drift_ppt: i64,
    /// The random walk, if any.
    pub walk: Option<Walk>,
    /// Time stamps are multiples of this time, which is above 0 (timestamp granularity; IEEE
    /// 802.1AS-2020, B.1.2, allows 40 ns at most).
    pub grain: Duration,
    /// Seed of the walk.
    pub seed: u64,
}

impl Default for ClockConfig {
    /// A perfect clock with time stamps in steps of 8 ns, the period of 125 MHz.
    fn default() -> Self {
        let grain = Duration::from_ns(8);
        Self { offset_ps: 0, drift_ppt: 0, walk: None, grain, seed: 0 }
    }
}

/// The time of one event on both clocks of a node, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// On the free-running oscillator: LocalClock (IEEE 802.1AS-2020, 10.1.2.1).
    pub free: i64,
    /// On the steered clock.
    pub steered: i64,
}

/// The clocks of a node. Queries are valid for instants after the last change.
#[derive(Clone, Debug)]
pub struct NodeClock {
    config: ClockConfig,
    free: Clock,
    steered: Clock,
    /// Frequency of the steered clock against the oscillator, in parts per 10^12.
    adjustment_ppt: i64,
    random: Random,
    next_walk: Option<Instant>,
}

impl NodeClock {
    /// The clocks at the beginning; both show the same time.
    pub fn new(config: ClockConfig) -> Self {
        let free = Clock::default().stepped(config.offset_ps);
        let free = free.with_rate(Instant::ZERO, config.drift_ppt);
        Self {
            config,
            free,
            steered: free,
            adjustment_ppt: 0,
            random: Random::new(config.seed),
            next_walk: config.walk.map(|walk| Instant::ZERO + walk.every),
        }
    }

    /// The free-running oscillator's clock.
    pub fn free(&self) -> &Clock {
        &self.free
    }

    /// The clock that gates, shapers and talkers use.
    pub fn steered(&self) -> &Clock {
        &self.steered
    }

    /// Takes the step of the random walk that is due at `now`, if any. Returns whether the
    /// frequency may have changed.
    pub fn run(&mut self, now: Instant) -> bool {
        let (Some(walk), Some(due)) = (self.config.walk, self.next_walk) else { return false };
        if due > now {
            return false;
        }
        let step = self.random.within(0..=2 * walk.step_ppt.unsigned_abs()) as i64 - walk.step_ppt;
        let drift = self.free.drift_ppt() + step;
        self.free = self.free.with_rate(now, drift.clamp(-walk.limit_ppt, walk.limit_ppt));
        self.next_walk = Some(due + walk.every);
        self.follow(now);
        true
    }

    /// When the random walk takes its next step. `None` without a walk.
    pub fn next_walk(&self) -> Option<Instant> {
        self.next_walk
    }

    /// Sets the frequency of the steered clock from `now` on: it gains `ppt` picoseconds per second
    /// relative to the oscillator.
    pub fn adjust(&mut self, now: Instant, ppt: i64) {
        self.adjustment_ppt = ppt;
        self.follow(now);
    }

    /// Steps the steered clock by `ps` picoseconds at `now`.
    pub fn step(&mut self, now: Instant, ps: i64) {
        self.steered = self.steered.with_rate(now, self.steered.drift_ppt()).stepped(ps);
    }

    /// Frequency of the steered clock against the oscillator, in parts per 10^12.
    pub fn adjustment_ppt(&self) -> i64 {
        self.adjustment_ppt
    }

    /// The hardware time stamp of an event at `at`, rounded down to the grain.
    pub fn stamp(&self, at: Instant) -> Stamp {
        let grain = self.config.grain.as_ps() as i64;
        let floor = |time: LocalTime| time.as_ps().div_euclid(grain) * grain;
        Stamp { free: floor(self.free.local(at)), steered: floor(self.steered.local(at)) }
    }

    fn follow(&mut self, now: Instant) {
        const ONE: i128 = 1_000_000_000_000;
        let rate = (ONE + i128::from(self.free.drift_ppt()))
            * (ONE + i128::from(self.adjustment_ppt))
            / ONE;
        self.steered = self.steered.with_rate(now, (rate - ONE) as i64);
    }
}
