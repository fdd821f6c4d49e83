//! What a class certainly sends, as a rate and a latency, for methods of networks of servers.
//!
//! Staircases become token buckets: the smallest straight line above them.

use super::class::Class;
use super::higher::Higher;
use super::load::{Cap, Constraint, Entering, Group, Load};
use super::windows::Windows;
use calculus::{RateLatency, Rational, TokenBucket};

/// A whole number.
pub fn whole(number: u64) -> Rational {
    Rational::from_integer(number.into())
}

/// A fraction; `below` is above 0.
pub fn fraction(above: u64, below: u64) -> Rational {
    Rational::new(above.into(), below.into())
}

/// The bucket with the smallest rate.
fn slowest(buckets: impl Iterator<Item = TokenBucket>) -> Option<TokenBucket> {
    buckets.min_by(|a, b| (&a.rate, &a.burst).cmp(&(&b.rate, &b.burst)))
}

impl Constraint {
    fn bucket(&self) -> TokenBucket {
        let rate = fraction(self.steps.each, self.steps.interval);
        let late = self.steps.late.saturating_add(self.jitter);
        TokenBucket { burst: whole(self.steps.first) + &rate * whole(late), rate }
    }
}

impl Entering {
    /// Token buckets of the flow, if each frame is `size`.
    pub fn buckets(&self, size: u64) -> impl Iterator<Item = TokenBucket> {
        let size = whole(size) * whole(self.copies);
        self.constraints.iter().map(Constraint::bucket).map(move |frames| TokenBucket {
            burst: frames.burst * &size,
            rate: frames.rate * &size,
        })
    }
}

impl Cap {
    /// The limit as a token bucket of work.
    pub fn bucket(&self) -> TokenBucket {
        let rate = fraction(self.rate[0], self.per);
        // The limit is rounded up to a whole picosecond.
        let burst = whole(self.largest[0]) + &rate * whole(self.slack) + whole(1);
        TokenBucket { burst, rate }
    }
}

impl Group {
    fn bucket(&self) -> Option<TokenBucket> {
        let mut flows = self.flows.iter().map(|flow| slowest(flow.buckets(flow.line)));
        let flows = flows.try_fold(TokenBucket { burst: whole(0), rate: whole(0) }, |sum, one| {
            let one = one?;
            Some(TokenBucket { burst: sum.burst + one.burst, rate: sum.rate + one.rate })
        });
        slowest(flows.into_iter().chain(self.caps.iter().map(Cap::bucket)))
    }
}

impl Load {
    fn buckets(&self) -> Option<Vec<TokenBucket>> {
        self.groups.iter().map(Group::bucket).collect()
    }
}

/// What a class with precedence sends at most in a time `t`, while the class under analysis sends
/// `own`: `burst + rate * t + turns * own`.
struct Line {
    burst: Rational,
    rate: Rational,
    turns: Rational,
}

impl Higher {
    /// By its frames, or by its shaper or weight where it has one.
    fn line(&self, shaped: bool) -> Option<Line> {
        let none = || whole(0);
        match (self.credit, self.weights) {
            (Some(credit), _) if shaped => {
                let rate = fraction(credit.slope.0, credit.slope.1);
                // Rounded up to a whole picosecond.
                Some(Line { burst: whole(credit.range) + whole(1), rate, turns: none() })
            }
            (_, Some(weights)) if shaped => {
                let burst = whole(weights.rounds) * whole(weights.quantum) + whole(weights.longest);
                let turns = fraction(weights.quantum, weights.own.max(1));
                Some(Line { burst, rate: none(), turns })
            }
            _ => {
                let buckets = self.load.buckets()?;
                let rate: Rational = buckets.iter().map(|bucket| &bucket.rate).sum();
                let burst: Rational = buckets.iter().map(|bucket| &bucket.burst).sum();
                Some(Line { burst: burst + &rate * whole(self.before), rate, turns: none() })
            }
        }
    }
}

impl Windows {
    /// The least latency `l` so that `demand` has started after `l + demand / share`. `None`: there
    /// is no window.
    fn latency(&self) -> Option<Rational> {
        let count = self.spans.len();
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        let since = |at: usize| {
            let mut served = 0;
            (1..=count).map(move |step| {
                let (from, to) = self.spans[(at + step) % count];
                let begin = from + self.cycle * ((at + step) / count) as u64;
                let wait = i128::from(begin) - i128::from(self.spans[at].1);
                let late = wait * i128::from(sum) - i128::from(self.cycle) * i128::from(served);
                served += to - from;
                late
            })
        };
        let late = (0..count).flat_map(since).max().filter(|_| sum > 0)?;
        Some(Rational::new(late.into(), sum.into()))
    }
}

impl Class {
    /// Rate-latency functions of work: after `t` since the begin of a busy period, in which `w` and
    /// more of the class has arrived, a frame behind `w` has started if one of them is at least `w`.
    /// They are straight lines above [`Class::delays`]'s times, and the begin of a busy period is
    /// what min-plus service curves require (Le Boudec and Thiran, "Network Calculus", 1.3). Without
    /// higher classes, blocks of frames, gates and shapers of [`Class`] the line itself.
    ///
    /// There are none for preemptable frames, cyclic queues, and shapers in windows.
    pub fn guarantees(&self) -> Vec<RateLatency> {
        let cut = self.held > 0 || self.higher.iter().any(|class| class.cut > 0);
        let together = self.credit.is_some() && self.windows.is_some();
        if cut || together || self.cycle.is_some() {
            return Vec::new();
        }
        if let Some(credit) = &self.credit {
            let Some(wait) = self.blocked(credit) else { return Vec::new() };
            let rate = fraction(credit.slope.0, credit.slope.1);
            // The time in which credit rises is rounded up.
            let latency = whole(wait) + whole(credit.uncounted) + whole(1);
            return vec![RateLatency { rate, latency }];
        }
        [false, true].iter().filter_map(|shaped| self.guarantee(*shaped)).collect()
    }

    /// `t <= block + latency of windows + (w * (1 + turns) + burst + rate * t) / share`, solved.
    fn guarantee(&self, shaped: bool) -> Option<RateLatency> {
        let higher: Option<Vec<Line>> =
            self.higher.iter().map(|class| class.line(shaped)).collect();
        let mut sum = Line { burst: whole(0), rate: whole(0), turns: whole(1) };
        for line in higher? {
            sum.burst += line.burst;
            sum.rate += line.rate;
            sum.turns += line.turns;
        }
        let (share, wait, block) = match &self.windows {
            None => (whole(1), whole(0), self.block),
            Some(windows) => {
                let open: u64 = windows.spans.iter().map(|(from, to)| to - from).sum();
                let block = if windows.blocks { self.block } else { 0 };
                (fraction(open, windows.cycle), windows.latency()?, block)
            }
        };
        let left = &share - sum.rate;
        (left > whole(0)).then(|| RateLatency {
            latency: ((whole(block) + wait) * share + sum.burst) / &left,
            rate: left / sum.turns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Credit, Open, Weights};
    use super::*;
    use crate::bound::arrivals::Steps;
    use stats::random::Random;

    /// One or two flows, and a line that limits them.
    fn load(random: &mut Random) -> Load {
        let flow = |random: &mut Random| {
            let (first, each) = (1 + random.below(4), 1 + random.below(2));
            let (interval, late) = (2_000 + random.below(9_000), random.below(6_000));
            let constraint = Constraint {
                steps: Steps { first, each, interval, late },
                jitter: random.below(9_000),
            };
            let line = 50 + random.below(300);
            let (constraints, copies) = (vec![constraint], 1 + random.below(2));
            Entering { constraints, copies, line, counted: line, in_flight: None, pieces: 1 }
        };
        let flows = (0..1 + random.below(2)).map(|_| flow(random)).collect();
        let cap = Cap { largest: [350; 2], rate: [random.below(3) + 1; 2], per: 2, slack: 40 };
        let caps = if random.below(2) == 0 { vec![cap] } else { Vec::new() };
        Load { groups: vec![Group { flows, caps }] }
    }

    fn higher(random: &mut Random) -> Higher {
        let credit = Credit { slope: (1 + random.below(3), 8), range: 500, uncounted: 0 };
        let own = 300 + random.below(900);
        let weights = Weights { own, quantum: 300 + random.below(900), longest: 350, rounds: 3 };
        let open = Open { cycle: 5_000, spans: vec![(0, 2_000)], longest: 350 };
        let kind = random.below(4);
        Higher {
            load: load(random),
            before: random.below(3_000),
            wait: 0,
            credit: (kind == 0).then_some(credit),
            cut: 0,
            open: (kind == 1).then_some(open),
            weights: (kind == 2).then_some(weights),
            turns: None,
        }
    }

    fn class(random: &mut Random) -> Class {
        let windows = Windows {
            cycle: 10_000,
            spans: vec![(500, 501 + random.below(4_000)), (6_000, 6_001 + random.below(4_400))],
            blocks: random.below(2) == 0,
            margin: 350,
        };
        let credit = Credit { slope: (3, 8), range: 0, uncounted: random.below(2) * 20 };
        let kind = random.below(4);
        Class {
            own: Load::default(),
            higher: (0..random.below(3)).map(|_| higher(random)).collect(),
            block: random.below(400),
            windows: (kind <= 1).then_some(windows),
            credit: (kind == 2).then_some(credit),
            peers: Vec::new(),
            held: 0,
            cycle: None,
        }
    }

    #[test]
    fn frames_start_no_later_than_guaranteed() {
        let (mut tight, mut checked) = (0, 0);
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let class = class(&mut random);
            let guarantees = class.guarantees().into_iter();
            // Without much overload, which takes long to find.
            for guarantee in guarantees.filter(|one| one.rate > fraction(1, 20)) {
                for step in 0..30 {
                    let before = if step == 0 { 0 } else { random.below(20_000) };
                    let latest = &guarantee.latency + whole(before) / &guarantee.rate;
                    let Some(start) = class.start(before) else { continue };
                    assert!(whole(start) <= latest, "seed {seed}, {before}: {start} > {latest}");
                    checked += 1;
                    tight += usize::from(whole(2 * start) > latest);
                }
            }
        }
        assert!(checked > 5_000 && tight > checked / 2, "{tight} of {checked}");
    }

    #[test]
    fn frames_that_are_cut_have_no_guarantee() {
        let mut random = Random::new(1);
        let class = |cut| {
            let higher = vec![Higher { cut, ..higher(&mut Random::new(3)) }];
            Class { higher, windows: None, credit: None, ..class(&mut random) }
        };
        let [whole, cut] = [0, 24].map(class);
        assert!(!whole.guarantees().is_empty() && cut.guarantees().is_empty());
    }
}
