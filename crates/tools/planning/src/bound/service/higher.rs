//! Classes with precedence, and what limits them.

use super::load::{Load, Measure};
use super::windows::Open;

/// A class with precedence.
#[derive(Clone, Debug)]
pub struct Higher {
    /// Its frames.
    pub load: Load,
    /// Frames that came this long before the busy period may still wait at its begin.
    pub before: u64,
    /// The longest time from the arrival of its frames to the end of their transmission.
    pub wait: u64,
    /// Its credit-based shaper, if it has one.
    pub credit: Option<Credit>,
    /// The time that each frame costs by cutting a preemptable frame in two.
    pub cut: u64,
    /// The windows of its gate; `None`: always open.
    pub open: Option<Open>,
    /// If the class shares the line with the class under analysis by weights.
    pub weights: Option<Weights>,
    /// If the flow takes turns with the flow under analysis: its longest frame, and the frames that
    /// go before the first turn.
    pub turns: Option<(u64, u64)>,
}

/// A flow of the same class that needs not wait for earlier frames of others, but needs credit,
/// windows and rounds as they do.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its frames.
    pub load: Load,
    /// As [`Higher::before`].
    pub before: u64,
    /// As [`Higher::wait`].
    pub wait: u64,
    /// As [`Higher::turns`].
    pub turns: Option<(u64, u64)>,
}

impl Peer {
    /// The most work in a time `t`, in which the flow under analysis sends `own` frames.
    pub(super) fn work(&self, t: u64, own: u64, measure: Measure) -> u64 {
        self.load.by(t.saturating_add(self.before), measure).min(in_turn(self.turns, own))
    }
}

/// The most work of turns while the flow under analysis sends `own` frames. A tunnel that has to
/// refill its connection may miss every other turn.
fn in_turn(turns: Option<(u64, u64)>, own: u64) -> u64 {
    turns.map_or(u64::MAX, |(longest, first)| {
        own.saturating_mul(2).saturating_add(first + 2).saturating_mul(longest)
    })
}

/// Deficit round robin between two classes (`tsn::ets`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The work of a round of the class under analysis.
    pub own: u64,
    /// The work of a round of this class.
    pub quantum: u64,
    /// Its longest frame.
    pub longest: u64,
    /// Rounds for the next frame, the present round, and one with a deficit.
    pub rounds: u64,
}

impl Weights {
    /// The most work of this class until the class under analysis has sent `before`: in the rounds
    /// for it, and `rounds` more.
    fn most(&self, before: u64) -> u64 {
        (before / self.own.max(1) + self.rounds)
            .saturating_mul(self.quantum)
            .saturating_add(self.longest)
    }
}

/// A credit-based shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// idleSlope and portTransmitRate, in the same unit.
    pub slope: (u64, u64),
    /// The highest and the lowest credit of a higher class together, in time of the line.
    pub range: u64,
    /// Preamble and gap, if they do not count.
    pub uncounted: u64,
}

impl Credit {
    /// The time in which credit rises by what `counted` costs.
    pub(super) fn regain(&self, counted: u64) -> u64 {
        let (idle, rate) = self.slope;
        let time = (u128::from(counted) * u128::from(rate)).div_ceil(u128::from(idle));
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// The work that the shaper lets pass in a time `t`.
    pub(super) fn passes(&self, t: u64) -> u64 {
        let (idle, rate) = self.slope;
        let passes = (u128::from(t) * u128::from(idle)).div_ceil(u128::from(rate));
        self.range.saturating_add(u64::try_from(passes).unwrap_or(u64::MAX))
    }
}

impl Higher {
    pub(super) fn work(&self, t: u64, (own, before): (u64, u64)) -> u64 {
        let t_all = t.saturating_add(self.before);
        let cuts = match self.cut {
            0 => 0,
            cut => self.load.frames(t_all).saturating_mul(cut),
        };
        let arrives = self.load.work(t_all).min(in_turn(self.turns, own));
        let passes = self.credit.map_or(u64::MAX, |credit| credit.passes(t));
        let open = self.open.as_ref().map_or(u64::MAX, |open| open.most(t));
        let shares = self.weights.map_or(u64::MAX, |weights| weights.most(before));
        arrives.min(passes).min(open).min(shares).saturating_add(cuts)
    }

    pub(super) fn rises(&self, until: u64) -> impl Iterator<Item = u64> {
        let rises = self.load.rises(until.saturating_add(self.before), Measure::Line);
        rises.into_iter().filter_map(|at| at.checked_sub(self.before))
    }

    pub(super) fn rate(&self, own: f64) -> f64 {
        let shares = self
            .weights
            .map_or(f64::INFINITY, |weights| own * weights.quantum as f64 / weights.own as f64);
        let open = self.open.as_ref().map_or(1.0, |open| {
            let windows = open.spans.len() as u64;
            let sum: u64 = open.spans.iter().map(|(from, to)| to - from).sum();
            (sum + windows * open.longest) as f64 / open.cycle as f64
        });
        let frames = self.load.groups.iter().flat_map(|group| &group.flows);
        let cuts: f64 = frames.map(|flow| flow.rate() * self.cut as f64).sum();
        self.load.rate(Measure::Line).min(open).min(shares) + if self.cut > 0 { cuts } else { 0.0 }
    }
}
